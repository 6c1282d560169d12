"""Beam search over the contract of `Seq2Seq`, independent of model, vocabulary and text.

Each step keeps the best continuations of a sentence, whichever hypothesis they extend. A hypothesis that ends in EOS
keeps its beam, so the search narrows as hypotheses finish; with one beam it is greedy search. Only live hypotheses
are computed: finished ones leave the batch, and so do finished sentences.

    B sentences in a batch      N live hypotheses of all of them, grouped by sentence, best first
    K beams of a sentence, live and finished together      V pieces in the target vocabulary
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from typing import NamedTuple

import torch
from torch import Tensor

from nmt.data.tokenizer import BOS, EOS, PAD, UNK
from nmt.models.seq2seq import Seq2Seq, reorder
from nmt.settings import SearchSettings

# Matrix products with very few rows use another kernel, which sums in another order. With no fewer rows than this,
# and no padding, a sentence's scores are the same to the last bit, whatever else is in its batch.
# (Measured with MKL: 1 to 3 rows differ from all larger counts.)
MIN_ROWS = 8


class LiveHypotheses(NamedTuple):
    """Unfinished hypotheses, grouped by sentence, best first."""

    sentence: Tensor  # (N,) from 0 to B - 1
    ids: Tensor  # (N, 1 + length) from BOS on
    log_prob: Tensor  # (N,)

    def select(self, index: Tensor) -> LiveHypotheses:
        return LiveHypotheses(self.sentence[index], self.ids[index], self.log_prob[index])


class Candidate(NamedTuple):
    """One translation that ended in EOS."""

    ids: list[int]  # without EOS
    score: float  # log_prob / length ** length_penalty
    log_prob: float  # nats, EOS included
    capped: bool  # it reached the maximum length, where only EOS was allowed


class FinishedHypotheses:
    """The finished hypotheses of each sentence, and the bounds that they set for the live ones."""

    def __init__(
        self, max_lengths: Tensor, settings: SearchSettings, dedup_key: Callable[[list[int]], Hashable]
    ) -> None:
        self.max_lengths = max_lengths  # (B,)
        self.settings = settings
        self.dedup_key = dedup_key
        self.candidates: list[dict[Hashable, Candidate]] = [{} for _ in range(len(max_lengths))]
        self.free_beams = torch.full_like(max_lengths, settings.beam)  # (B,) beams that no finished hypothesis holds
        self.worst_kept = torch.full(max_lengths.shape, -torch.inf, device=max_lengths.device)  # (B,) n_best-th score

    def add(self, ended: LiveHypotheses) -> None:
        """Adds hypotheses whose last piece is EOS. Of two with one dedup key the better is kept."""
        length = ended.ids.shape[1] - 1  # EOS counted, BOS not
        scores = normalised_score(ended.log_prob, length, self.settings.length_penalty)
        capped = (self.max_lengths[ended.sentence] == length - 1).tolist()
        rows = zip(ended.ids[:, 1:-1].tolist(), scores.tolist(), ended.log_prob.tolist(), capped, strict=True)
        sentences = ended.sentence.tolist()
        for sentence, row in zip(sentences, rows, strict=True):
            candidate = Candidate(*row)
            key = self.dedup_key(candidate.ids)
            if key not in self.candidates[sentence] or candidate.score > self.candidates[sentence][key].score:
                self.candidates[sentence][key] = candidate
        for sentence in set(sentences):
            best = self.best(sentence)
            self.free_beams[sentence] = self.settings.beam - len(self.candidates[sentence])
            self.worst_kept[sentence] = best[-1].score if len(best) == self.settings.n_best else -torch.inf

    def best(self, sentence: int) -> list[Candidate]:
        return by_score(self.candidates[sentence].values())[: self.settings.n_best]

    def best_with_fallback(self, sentence: int, fallback: FinishedHypotheses) -> list[Candidate]:
        """The best; where they are fewer than n_best, filled up from `fallback` by none that beats the first."""
        best = self.best(sentence)
        others = [
            candidate
            for key, candidate in fallback.candidates[sentence].items()
            if best and key not in self.candidates[sentence] and candidate.score <= best[0].score
        ]
        return by_score(best + by_score(others)[: self.settings.n_best - len(best)])

    def can_improve(self, live: LiveHypotheses) -> Tensor:
        """(N,) False for all hypotheses of a sentence of which none can still enter its n best.

        Log-probabilities only fall, and are divided by a length of at most max_length + 1: a bound, not a heuristic,
        so that a larger n_best never changes the best translation.
        """
        bound = normalised_score(live.log_prob, self.max_lengths[live.sentence] + 1, self.settings.length_penalty)
        open_sentences = torch.zeros_like(self.max_lengths, dtype=torch.bool)
        open_sentences[live.sentence[bound > self.worst_kept[live.sentence]]] = True
        return open_sentences[live.sentence]


def by_score(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Best first; of equal ones, the earlier first."""
    return sorted(candidates, key=lambda candidate: -candidate.score)


@torch.inference_mode()
def search(
    model: Seq2Seq,
    src: Tensor,
    settings: SearchSettings,
    dedup_key: Callable[[list[int]], Hashable] = tuple,
    fill: bool = False,
) -> list[list[Candidate]]:
    """The n_best candidates of each sentence of src (B, S), best first; none where no score is finite.

    Candidates with one `dedup_key` count as one, so a search may end with fewer than n_best of them. `fill` then adds
    hypotheses that could have ended earlier, though not well enough to stay in the beam.
    """
    lengths = (src != PAD).sum(dim=1).tolist()
    max_lengths = torch.tensor([settings.max_length(length - 1) for length in lengths], device=src.device)
    distinct_lengths = set(max_lengths.tolist())
    sentences = torch.arange(len(src), device=src.device)
    live = LiveHypotheses(sentences, torch.full_like(src[:, :1], BOS), torch.zeros(len(src), device=src.device))
    finished = FinishedHypotheses(max_lengths, settings, dedup_key)
    fallback = FinishedHypotheses(max_lengths, settings, dedup_key)

    rows = pad_rows(sentences)  # the sentence of every row of the model's batch
    memory = model.encode(src[rows])
    state = model.start(memory)
    tokens = torch.full_like(rows, BOS)
    for length in range(max(distinct_lengths) + 1):
        logits, state = model.step(tokens, state, memory)
        must_end = max_lengths[live.sentence] == length if length in distinct_lengths else None
        scores = allowed_log_probs(logits[: len(live.sentence)], must_end)
        if fill:
            fallback.add(force_eos(live, scores))
        parents, live = extend(live, scores, finished.free_beams, settings.beam)

        # finished hypotheses leave, and so do sentences whose n best are settled
        ended = live.ids[:, -1] == EOS
        if ended.any():
            finished.add(live.select(ended))
        stay = (~ended & finished.can_improve(live)).nonzero().squeeze(1)
        if len(stay) == 0:
            break
        parents, live = parents[stay], live.select(stay)

        # the others continue from their parents' states
        index = pad_rows(parents)
        if not torch.equal(index, torch.arange(len(rows), device=index.device)):
            state = reorder(state, index)
        if not torch.equal(rows[index], rows):  # hypotheses of one sentence have equal memories: mostly no copy
            memory = reorder(memory, index)
        rows, tokens = rows[index], pad_rows(live.ids[:, -1])
    return [finished.best_with_fallback(sentence, fallback) for sentence in range(len(src))]


def batch_by_length(lengths: Iterable[int], settings: SearchSettings, positions: int = 65_536) -> list[list[int]]:
    """Indices of sentences to search together: longest first, at most settings.batch at a time.

    Only sentences of one length share a batch: without padding, no sentence's scores depend on its batch.
    `positions` bounds the memory: hypotheses times the pieces that each may have.
    """
    by_length: dict[int, list[int]] = {}
    for index, length in enumerate(lengths):
        by_length.setdefault(length, []).append(index)
    result = []
    for length in sorted(by_length, reverse=True):
        size = min(settings.batch, max(1, positions // (settings.beam * (length + settings.max_length(length)))))
        group = by_length[length]
        size = math.ceil(len(group) / math.ceil(len(group) / size))  # 33 and 32 rather than 64 and 1
        result += [group[start : start + size] for start in range(0, len(group), size)]
    return result


def normalised_score(log_prob: Tensor, length: Tensor | int, length_penalty: float) -> Tensor:
    """log_prob / length ** length_penalty."""
    return log_prob / torch.as_tensor(length, device=log_prob.device, dtype=log_prob.dtype) ** length_penalty


def allowed_log_probs(logits: Tensor, must_end: Tensor | None) -> Tensor:
    """Logits (N, V) -> log-probabilities (N, V), -inf where a piece may not follow.

    PAD, UNK and BOS never may; where must_end (N,) is True, only EOS may. The rest is not renormalised: a hypothesis
    scores what the model assigns to the whole sentence.
    """
    scores = logits.float().log_softmax(dim=-1)
    scores[:, [PAD, UNK, BOS]] = -torch.inf
    if must_end is not None:
        only_end = torch.full_like(scores, -torch.inf)
        only_end[:, EOS] = scores[:, EOS]
        scores = torch.where(must_end[:, None], only_end, scores)
    return scores


def extend(live: LiveHypotheses, scores: Tensor, free_beams: Tensor, beam: int) -> tuple[Tensor, LiveHypotheses]:
    """The best free_beams[b] one-piece extensions of each sentence b.

    scores (N, V) and free_beams (B,) -> the parents' rows (N',) and the extensions, also grouped and best first.
    """
    best, pieces = topk_of_rows(scores, min(beam, scores.shape[1]))  # (N, k) each
    count = torch.bincount(live.sentence, minlength=len(free_beams))
    first = count.cumsum(0) - count  # (B,) a sentence's first row
    rank = torch.arange(len(live.sentence), device=first.device) - first[live.sentence]

    table = best.new_full((len(free_beams), beam, best.shape[1]), -torch.inf)  # (B, K, k)
    table[live.sentence, rank] = live.log_prob[:, None] + best
    log_prob, entry = table.flatten(1).topk(beam)  # (B, K)
    kept = (log_prob > -torch.inf) & (torch.arange(beam, device=free_beams.device) < free_beams[:, None])

    sentence = kept.nonzero()[:, 0]
    entry = entry[kept]
    parents = first[sentence] + entry // best.shape[1]
    piece = pieces[parents, entry % best.shape[1]]
    return parents, LiveHypotheses(sentence, torch.cat([live.ids[parents], piece[:, None]], dim=1), log_prob[kept])


def force_eos(live: LiveHypotheses, scores: Tensor) -> LiveHypotheses:
    """Every live hypothesis with EOS as its next piece, where the scores (N, V) allow one."""
    ended = torch.cat([live.ids, torch.full_like(live.ids[:, :1], EOS)], dim=1)
    log_prob = live.log_prob + scores[:, EOS]
    return LiveHypotheses(live.sentence, ended, log_prob).select(log_prob > -torch.inf)


def topk_of_rows(scores: Tensor, k: int, group: int = 16) -> tuple[Tensor, Tensor]:
    """topk(k) of (N, V), in a third of the time where V is large and k small.

    The k best pieces lie in the k groups of columns with the best maxima, and only those need sorting.
    """
    columns = scores.shape[1] // group
    if columns < 16 * k:
        return scores.topk(k)
    grouped_columns = columns * group
    maxima = scores[:, :grouped_columns].unflatten(1, (group, columns)).amax(dim=1)  # (N, columns): strided groups
    offsets = torch.arange(0, grouped_columns, columns, device=scores.device)
    remainder = torch.arange(grouped_columns, scores.shape[1], device=scores.device).expand(len(scores), -1)
    chosen = (maxima.topk(k).indices[:, :, None] + offsets).flatten(1)
    chosen = torch.cat([chosen, remainder], dim=1)
    best, position = scores.gather(1, chosen).topk(k)
    return best, chosen.gather(1, position)


def pad_rows(rows: Tensor) -> Tensor:
    """(N,) -> at least (MIN_ROWS,), the first row repeated."""
    missing = MIN_ROWS - len(rows)
    return rows if missing <= 0 else torch.cat([rows, rows[:1].expand(missing)])
