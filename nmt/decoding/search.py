"""Beam search over the contract of `Seq2Seq`: nothing here knows a model, a vocabulary or a text.

Each step keeps the best continuations of a sentence, whichever hypothesis they continue. One that ends in EOS
takes its place in the beam with it, so the beam narrows as hypotheses finish; with one place this is greedy
search. Only live hypotheses are computed: finished sentences leave the batch, finished hypotheses too.
"""

import math
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from nmt.data.tokenizer import BOS, EOS, PAD
from nmt.decoding.beam import Live, ballast, end_here, follow, grow, normalise, pick, piece_scores
from nmt.errors import ConfigError
from nmt.models.seq2seq import Seq2Seq


@dataclass(frozen=True)
class SearchSettings:
    """How to search. ConfigError where a value cannot be used.

    A hypothesis scores log_prob / length ** length_penalty, its EOS counted in both: 0 compares plain
    log-probabilities, 1 their mean over pieces. It has at most max_ratio x source pieces + max_extra pieces.
    """

    beam: int = 5  # 1 is greedy search
    n_best: int = 1
    length_penalty: float = 1.0
    max_ratio: float = 2.0
    max_extra: int = 50
    batch: int = 64  # sentences searched at a time; no translation depends on it

    def __post_init__(self) -> None:
        for name in ("beam", "n_best", "batch"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise ConfigError(f"{name}={value}: give a whole number, 1 or more")
        for name in ("length_penalty", "max_ratio", "max_extra"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or not 0 <= value < float("inf"):
                raise ConfigError(f"{name}={value}: give a number, 0 or more")
        if self.n_best > self.beam:
            raise ConfigError(f"n_best={self.n_best} needs beam={self.n_best} or more, not {self.beam}")

    def cap(self, source_pieces: int) -> int:
        """The most pieces a hypothesis for a source of that many pieces may have, EOS not counted."""
        return int(self.max_ratio * source_pieces + self.max_extra)


class Candidate(NamedTuple):
    """One translation that ended in EOS."""

    ids: list[int]  # without EOS
    score: float  # log_prob / length ** length_penalty
    log_prob: float  # nats, EOS included
    capped: bool  # it has as many pieces as were allowed, and EOS was the only way on


class Finished:
    """Per sentence its ended hypotheses, and what they mean for the live ones."""

    def __init__(self, caps: Tensor, settings: SearchSettings, same: Callable[[list[int]], Hashable]) -> None:
        self.caps = caps  # (B,)
        self.settings = settings
        self.same = same
        self.found: list[dict[Hashable, Candidate]] = [{} for _ in range(len(caps))]
        self.room = torch.full_like(caps, settings.beam)  # (B,) places in the beam not yet taken
        self.bar = torch.full(caps.shape, -torch.inf, device=caps.device)  # (B,) n_best-th score so far

    def add(self, ended: Live) -> None:
        """Take in hypotheses whose last piece is EOS. Of two that are the `same`, the better one stays."""
        length = ended.ids.shape[1] - 1  # EOS counted, BOS not
        scores = normalise(ended.log_prob, length, self.settings.length_penalty)
        capped = (self.caps[ended.owner] == length - 1).tolist()
        rows = zip(ended.ids[:, 1:-1].tolist(), scores.tolist(), ended.log_prob.tolist(), capped, strict=True)
        owners = ended.owner.tolist()
        for owner, row in zip(owners, rows, strict=True):
            candidate = Candidate(*row)
            key = self.same(candidate.ids)
            if key not in self.found[owner] or candidate.score > self.found[owner][key].score:
                self.found[owner][key] = candidate
        for owner in set(owners):
            best = self.best(owner)
            self.room[owner] = self.settings.beam - len(self.found[owner])
            self.bar[owner] = best[-1].score if len(best) == self.settings.n_best else -torch.inf

    def best(self, owner: int) -> list[Candidate]:
        return by_score(self.found[owner].values())[: self.settings.n_best]

    def filled(self, owner: int, spare: "Finished") -> list[Candidate]:
        """The best; where they are fewer than n_best, spare ones that are not better than the first fill up."""
        best = self.best(owner)
        others = [
            candidate
            for key, candidate in spare.found[owner].items()
            if best and key not in self.found[owner] and candidate.score <= best[0].score
        ]
        return by_score(best + by_score(others)[: self.settings.n_best - len(best)])

    def hopeful(self, live: Live) -> Tensor:
        """(N,) False for all hypotheses of a sentence of which none can still change its n best.

        Log-probabilities only fall, and at most cap + 1 pieces share the fall: a bound, not a guess, so that
        asking for more translations never changes the best one.
        """
        reach = normalise(live.log_prob, self.caps[live.owner] + 1, self.settings.length_penalty)
        sentence = torch.zeros_like(self.caps, dtype=torch.bool)
        sentence[live.owner[reach > self.bar[live.owner]]] = True
        return sentence[live.owner]


def by_score(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Best first; of equal ones, the earlier first."""
    return sorted(candidates, key=lambda candidate: -candidate.score)


@torch.inference_mode()
def search(
    model: Seq2Seq,
    src: Tensor,
    settings: SearchSettings,
    same: Callable[[list[int]], Hashable] = tuple,
    fill: bool = False,
) -> list[list[Candidate]]:
    """The n_best candidates of each sentence of src (B, S), best first; none where no score is finite.

    Candidates for which `same` gives one value count as one, so that a beam may end with fewer than n_best of
    them. `fill` then adds hypotheses that could have ended on the way, but not as well as to stay in the beam.
    """
    lengths = (src != PAD).sum(dim=1).tolist()
    caps = torch.tensor([settings.cap(length - 1) for length in lengths], device=src.device)
    limits = set(caps.tolist())
    everyone = torch.arange(len(src), device=src.device)
    live = Live(everyone, torch.full_like(src[:, :1], BOS), torch.zeros(len(src), device=src.device))
    finished = Finished(caps, settings, same)
    spare = Finished(caps, settings, same)

    rows = ballast(everyone)  # the sentence of every row that the model sees
    memory = model.encode(src[rows])
    state = model.start(memory)
    tokens = torch.full_like(rows, BOS)
    for length in range(max(limits) + 1):
        logits, state = model.step(tokens, state, memory)
        must_end = caps[live.owner] == length if length in limits else None
        scores = piece_scores(logits[: len(live.owner)], must_end)
        if fill:
            spare.add(end_here(live, scores))
        parents, live = grow(live, scores, finished.room, settings.beam)

        # ended hypotheses leave, and so do sentences that are decided
        ended = live.ids[:, -1] == EOS
        if ended.any():
            finished.add(live.at(ended))
        stay = (~ended & finished.hopeful(live)).nonzero().squeeze(1)
        if len(stay) == 0:
            break
        parents, live = parents[stay], live.at(stay)

        # the others take their parents' states along
        index = ballast(parents)
        state = pick(state, index, len(rows))
        memory, rows = follow(memory, rows, index)
        tokens = ballast(live.ids[:, -1])
    return [finished.filled(sentence, spare) for sentence in range(len(src))]


def batches(lengths: Iterable[int], settings: SearchSettings, positions: int = 65_536) -> list[list[int]]:
    """Indices of sentences to search together: longest first, at most settings.batch at a time.

    Only sentences of one length share a batch: without padding, no sentence's numbers depend on its company.
    `positions` bounds the memory: hypotheses times the pieces each may have.
    """
    by_length: dict[int, list[int]] = {}
    for index, length in enumerate(lengths):
        by_length.setdefault(length, []).append(index)
    result = []
    for length in sorted(by_length, reverse=True):
        size = min(settings.batch, max(1, positions // (settings.beam * (length + settings.cap(length)))))
        group = by_length[length]
        size = math.ceil(len(group) / math.ceil(len(group) / size))  # 33 and 32 rather than 64 and 1
        result += [group[start : start + size] for start in range(0, len(group), size)]
    return result
