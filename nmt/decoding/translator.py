"""Sentences in, sentences out: pieces, search, and text again."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor

from nmt.data.tokenizer import BOS, EOS, Tokenizer
from nmt.decoding.lines import Hypothesis, join, split
from nmt.decoding.search import Candidate, SearchSettings, batches, search
from nmt.errors import UserError
from nmt.models.seq2seq import Seq2Seq
from nmt.progress import Advance, progress

__all__ = ["AttentionMap", "Hypothesis", "Translator"]


class AttentionMap(NamedTuple):
    """Where a model looks. The last piece of both sides is the end of the sentence."""

    source_pieces: list[str]  # S
    target_pieces: list[str]  # T
    weights: Tensor  # (L, H, T, S) on the CPU; the row of a target piece belongs to its prediction


class Translator:
    """A model between two tokenizers."""

    def __init__(
        self, model: Seq2Seq, source: Tokenizer, target: Tokenizer, max_src_pieces: int, device: str = "cpu"
    ) -> None:
        """The model is on `device` already. Longer sources than `max_src_pieces` are translated in parts."""
        if max_src_pieces < 1:
            raise UserError(f"max_src_pieces={max_src_pieces}: give 1 or more")
        self.model = model
        self.source = source
        self.target = target
        self.max_src_pieces = max_src_pieces
        self.device = device

    def translate(
        self, sentences: Sequence[str], settings: SearchSettings | None = None, progress: bool = False
    ) -> list[str]:
        """The best translation of each sentence; an empty string where there is nothing to translate."""
        return [hypotheses[0].text for hypotheses in self.hypotheses(sentences, settings, progress)]

    def hypotheses(
        self,
        sentences: Sequence[str],
        settings: SearchSettings | None = None,
        progress: bool | Advance = False,
    ) -> list[list[Hypothesis]]:
        """For each sentence its n_best translations, different texts, best first; fewer (never 0) if there are fewer.

        A sentence may be any text. What holds no pieces (empty, spaces, invisible characters) is translated by
        an empty text and never reaches the model. progress=True shows a bar; a function is called with the
        number of parts done. UserError where the model's scores are no numbers.
        """
        settings = settings or SearchSettings()
        parts = [self.parts(ids, text) for ids, text in zip(self.encode(sentences), sentences, strict=True)]
        found = iter(self.search_all([ids for line in parts for ids in line], settings, progress))
        return [
            join([next(found) for _ in line], settings.n_best) if line else [Hypothesis("", 0.0, False, 0)]
            for line in parts
        ]

    def encode(self, sentences: Sequence[str]) -> list[list[int]]:
        return self.source.encode_batch(sentences)

    def parts(self, ids: list[int], text: str) -> list[list[int]]:
        """A sentence as the ids of its parts, none empty: one part where it is short enough."""
        if len(ids) <= self.max_src_pieces:
            return [ids] if ids else []
        texts = split(text, lambda part: len(self.source.encode(part)) <= self.max_src_pieces)
        # one character may have several pieces, so that even one may be too long
        return [part[: self.max_src_pieces] for part in self.encode(texts) if part]

    def search_all(
        self, sources: Sequence[list[int]], settings: SearchSettings, shown: bool | Advance
    ) -> list[list[Hypothesis]]:
        """Different ids may spell one text (pieces in two ways, bytes that are no character). Sources for which
        the beam holds fewer than n_best texts are searched again for more.
        """
        with evaluating(self.model), advancing(shown, len(sources)) as advance:
            found = self.searched(sources, settings, advance)
            short = [index for index, hypotheses in enumerate(found) if len(hypotheses) < settings.n_best]
            filled = self.searched([sources[index] for index in short], settings, lambda done: None, fill=True)
            for index, hypotheses in zip(short, filled, strict=True):
                found[index] = hypotheses
        return found

    def searched(
        self, sources: Sequence[list[int]], settings: SearchSettings, advance: Advance, fill: bool = False
    ) -> list[list[Hypothesis]]:
        """In order, searched by length."""
        found: dict[int, list[Hypothesis]] = {}
        for group in batches([len(ids) for ids in sources], settings):
            src = torch.tensor([[*sources[index], EOS] for index in group], device=self.device)
            results = search(self.model, src, settings, self.text, fill)
            for index, candidates in zip(group, results, strict=True):
                found[index] = [Hypothesis(self.text(c.ids), c.score, c.capped, 1) for c in finite(candidates)]
            advance(len(group))
        return [found[index] for index in range(len(sources))]

    def text(self, ids: list[int]) -> str:
        return self.target.decode(ids)

    def attention(self, source: str, target: str | None = None) -> AttentionMap | None:
        """Where the model looks while it writes `target` (its own translation if None); None if it cannot look.

        UserError where the source has no pieces or more than max_src_pieces.
        """
        src = self.source.encode(source)
        if not 0 < len(src) <= self.max_src_pieces:
            raise UserError(f"attention needs 1 to {self.max_src_pieces} source pieces; this text has {len(src)}")
        src_row = torch.tensor([[*src, EOS]], device=self.device)
        with torch.inference_mode(), evaluating(self.model):
            if target is None:
                tgt = finite(search(self.model, src_row, SearchSettings(), self.text)[0])[0].ids
            else:
                tgt = self.target.encode(target)
            weights = self.model.weights(src_row, torch.tensor([[BOS, *tgt]], device=self.device))
        if weights is None:
            return None
        # a clone outside inference mode: an ordinary tensor, usable everywhere
        return AttentionMap(
            self.source.pieces([*src, EOS]), self.target.pieces([*tgt, EOS]), weights[0].float().cpu().clone()
        )


def finite(candidates: list[Candidate]) -> list[Candidate]:
    """The candidates; UserError where there are none, which only a broken model brings about."""
    if not candidates:
        raise UserError(
            "the model gives no finite score to any translation: its weights hold NaN or infinity; "
            "use another checkpoint of the run, or train it with a lower learning rate"
        )
    return candidates


@contextmanager
def evaluating(model: Seq2Seq) -> Iterator[None]:
    """Without dropout inside, as before outside: a training's model may be asked in between."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


@contextmanager
def advancing(shown: bool | Callable[[int], None], total: int) -> Iterator[Advance]:
    """A bar of one's own, none, or the caller's."""
    if isinstance(shown, bool):
        with progress("translating", total, shown) as advance:
            yield advance
    else:
        yield shown
