"""One step of a beam search, as functions of tensors.

B sentences in a batch      N live hypotheses of all of them, grouped by sentence, best first
K hypotheses a sentence may have, live and ended together      V pieces in the target vocabulary
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from nmt.data.tokenizer import BOS, EOS, PAD, UNK
from nmt.models.seq2seq import reorder

# A product of matrices with very few rows takes another kernel, which sums in another order. With never fewer
# rows than this, and no padding, a sentence's numbers are the same to the last bit, whatever else is in its batch.
# (Measured with MKL: 1 to 3 rows differ from all larger counts.)
FEWEST_ROWS = 8


class Live(NamedTuple):
    """Hypotheses without an end, grouped by sentence, best first."""

    owner: Tensor  # (N,) the sentence, 0 to B - 1
    ids: Tensor  # (N, 1 + length) from BOS on
    log_prob: Tensor  # (N,)

    def at(self, index: Tensor) -> "Live":
        return Live(self.owner[index], self.ids[index], self.log_prob[index])


def normalise(log_prob: Tensor, length: Tensor | int, length_penalty: float) -> Tensor:
    """log_prob / length ** length_penalty."""
    return log_prob / torch.as_tensor(length, device=log_prob.device, dtype=log_prob.dtype) ** length_penalty


def piece_scores(logits: Tensor, must_end: Tensor | None) -> Tensor:
    """Logits (N, V) -> log-probabilities (N, V), -inf where a piece may not follow.

    PAD, UNK and BOS never do; where must_end (N,) is True, EOS alone does. The rest is not made to sum to 1:
    a hypothesis scores what the model gives to the whole sentence.
    """
    scores = logits.float().log_softmax(dim=-1)
    scores[:, [PAD, UNK, BOS]] = -torch.inf
    if must_end is not None:
        only_end = torch.full_like(scores, -torch.inf)
        only_end[:, EOS] = scores[:, EOS]
        scores = torch.where(must_end[:, None], only_end, scores)
    return scores


def grow(live: Live, scores: Tensor, room: Tensor, beam: int) -> tuple[Tensor, Live]:
    """One piece more: the best room[b] continuations of each sentence b.

    scores (N, V) and room (B,) -> the parents' rows (N',) and the continuations, also grouped and best first.
    """
    best, pieces = best_of_rows(scores, min(beam, scores.shape[1]))  # (N, k) each
    count = torch.bincount(live.owner, minlength=len(room))
    first = count.cumsum(0) - count  # (B,) a sentence's first row
    place = torch.arange(len(live.owner), device=first.device) - first[live.owner]

    table = best.new_full((len(room), beam, best.shape[1]), -torch.inf)  # (B, K, k)
    table[live.owner, place] = live.log_prob[:, None] + best
    log_prob, cell = table.flatten(1).topk(beam)  # (B, K)
    taken = (log_prob > -torch.inf) & (torch.arange(beam, device=room.device) < room[:, None])

    owner = taken.nonzero()[:, 0]
    cell = cell[taken]
    parents = first[owner] + cell // best.shape[1]
    piece = pieces[parents, cell % best.shape[1]]
    return parents, Live(owner, torch.cat([live.ids[parents], piece[:, None]], dim=1), log_prob[taken])


def end_here(live: Live, scores: Tensor) -> Live:
    """Every live hypothesis with EOS as its next piece, where the scores (N, V) allow one."""
    ended = torch.cat([live.ids, torch.full_like(live.ids[:, :1], EOS)], dim=1)
    log_prob = live.log_prob + scores[:, EOS]
    return Live(live.owner, ended, log_prob).at(log_prob > -torch.inf)


def best_of_rows(scores: Tensor, k: int, group: int = 16) -> tuple[Tensor, Tensor]:
    """topk(k) of (N, V), in a third of the time where V is large and k small.

    The k best pieces lie in the k groups of columns with the best maxima, and only those need sorting.
    """
    columns = scores.shape[1] // group
    if columns < 16 * k:
        return scores.topk(k)
    even = columns * group
    maxima = scores[:, :even].unflatten(1, (group, columns)).amax(dim=1)  # (N, columns): strided groups
    offsets = torch.arange(0, even, columns, device=scores.device)
    rest = torch.arange(even, scores.shape[1], device=scores.device).expand(len(scores), -1)
    chosen = (maxima.topk(k).indices[:, :, None] + offsets).flatten(1)
    chosen = torch.cat([chosen, rest], dim=1)
    best, position = scores.gather(1, chosen).topk(k)
    return best, chosen.gather(1, position)


def ballast(rows: Tensor) -> Tensor:
    """(N,) -> at least (FEWEST_ROWS,): the first row again and again. See FEWEST_ROWS."""
    missing = FEWEST_ROWS - len(rows)
    return rows if missing <= 0 else torch.cat([rows, rows[:1].expand(missing)])


def pick(state: Any, index: Tensor, size: int) -> Any:
    """reorder(state, index), without the copy where all `size` rows stay where they are."""
    if len(index) == size and torch.equal(index, torch.arange(size, device=index.device)):
        return state
    return reorder(state, index)


def follow(memory: Any, rows: Tensor, index: Tensor) -> tuple[Any, Tensor]:
    """The memory for the parents' rows `index`, and the sentence of each row.

    Hypotheses of one sentence have equal memories, so most steps copy nothing.
    """
    chosen = rows[index]
    if torch.equal(chosen, rows):
        return memory, rows
    return reorder(memory, index), chosen
