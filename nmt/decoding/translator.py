"""Sentences in, sentences out: tokenization, search, detokenization."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import NamedTuple, overload

import torch
from torch import Tensor

from nmt.data.tokenizer import BOS, EOS, Tokenizer
from nmt.decoding.beam_search import Candidate, batch_by_length, search
from nmt.decoding.long_lines import Hypothesis, join_parts, split_line
from nmt.errors import UserError
from nmt.models.seq2seq import Seq2Seq
from nmt.progress import Advance
from nmt.progress import progress as progress_bar
from nmt.settings import SearchSettings


class AttentionMap(NamedTuple):
    """The attention of a model for one sentence pair. The last piece of both sides is the end of the sentence."""

    source_pieces: list[str]  # S
    target_pieces: list[str]  # T
    weights: Tensor  # (L, H, T, S) on the CPU; the row of a target piece belongs to its prediction


class Translator:
    """A model between two tokenizers."""

    def __init__(
        self, model: Seq2Seq, source: Tokenizer, target: Tokenizer, max_src_pieces: int, device: str = "cpu"
    ) -> None:
        """The model is on `device` already. Longer sources than `max_src_pieces` are translated in parts."""
        self.model = model
        self.source = source
        self.target = target
        self.max_src_pieces = max_src_pieces
        self.device = device

    @overload
    def translate(  # type: ignore[overload-overlap]
        self, sentences: str, settings: SearchSettings | None = None, progress: bool = False
    ) -> str: ...
    @overload
    def translate(
        self, sentences: Sequence[str], settings: SearchSettings | None = None, progress: bool = False
    ) -> list[str]: ...
    def translate(
        self, sentences: str | Sequence[str], settings: SearchSettings | None = None, progress: bool = False
    ) -> str | list[str]:
        """The best translation of a sentence, or of each; an empty string where there is nothing to translate."""
        if isinstance(sentences, str):
            return self.translate([sentences], settings, progress)[0]
        return [hypotheses[0].text for hypotheses in self.hypotheses(sentences, settings, progress)]

    def hypotheses(
        self, sentences: Sequence[str], settings: SearchSettings | None = None, progress: bool | Advance = False
    ) -> list[list[Hypothesis]]:
        """For each sentence its n_best translations, different texts, best first; fewer (never 0) if there are fewer.

        A sentence may be any text. What holds no pieces (empty, spaces, invisible characters) is translated by
        an empty text and never reaches the model. progress=True shows a bar; a function is called with the
        number of parts done. UserError where the model's scores are no numbers.
        """
        settings = settings or SearchSettings.defaults()
        parts = [self._split_to_fit(ids, text) for ids, text in zip(self.encode(sentences), sentences, strict=True)]
        sources = [ids for line in parts for ids in line]
        shown: AbstractContextManager[Advance] = (
            progress_bar("translating", len(sources), progress) if isinstance(progress, bool) else nullcontext(progress)
        )
        with eval_mode(self.model), shown as advance:
            hypotheses = iter(self._search(sources, settings, advance))
        return [
            join_parts([next(hypotheses) for _ in line], settings.n_best) if line else [Hypothesis("", 0.0, False, 0)]
            for line in parts
        ]

    def encode(self, sentences: Sequence[str]) -> list[list[int]]:
        return self.source.encode_batch(sentences)

    def _split_to_fit(self, ids: list[int], text: str) -> list[list[int]]:
        """A sentence as the ids of its parts, none empty: one part where it is short enough."""
        if len(ids) <= self.max_src_pieces:
            return [ids] if ids else []
        texts = split_line(text, lambda part: len(self.source.encode(part)) <= self.max_src_pieces)
        # one character may have several pieces, so that even one may be too long
        return [part[: self.max_src_pieces] for part in self.encode(texts) if part]

    def _search(
        self, sources: Sequence[list[int]], settings: SearchSettings, advance: Advance
    ) -> list[list[Hypothesis]]:
        """Searched in batches of one length, returned in the order of the sources.

        Different ids may decode to one text (other segmentations, bytes that are no character). Sources for which
        the beam holds fewer than n_best texts are searched again for more.
        """
        results: list[list[Hypothesis]] = [[] for _ in sources]
        for fill in (False, True):
            short = [index for index, hypotheses in enumerate(results) if len(hypotheses) < settings.n_best]
            for group in batch_by_length([len(sources[index]) for index in short], settings):
                members = [short[position] for position in group]
                src = torch.tensor([[*sources[index], EOS] for index in members], device=self.device)
                results_of_group = search(self.model, src, settings, self.text, fill)
                for index, candidates in zip(members, results_of_group, strict=True):
                    best = require_finite(candidates)
                    results[index] = [Hypothesis(self.text(c.ids), c.score, c.capped, 1) for c in best]
                advance(0 if fill else len(group))
        return results

    def text(self, ids: list[int]) -> str:
        return self.target.decode(ids)

    def attention(self, source: str, target: str | None = None) -> AttentionMap | None:
        """Attention while decoding `target` (by default the model's own translation); None without attention.

        UserError where the source has no pieces or more than max_src_pieces.
        """
        src = self.source.encode(source)
        if not 0 < len(src) <= self.max_src_pieces:
            raise UserError(f"attention needs 1 to {self.max_src_pieces} source pieces; this text has {len(src)}")
        src_row = torch.tensor([[*src, EOS]], device=self.device)
        with torch.inference_mode(), eval_mode(self.model):
            if target is None:
                tgt = require_finite(search(self.model, src_row, SearchSettings.defaults(), self.text)[0])[0].ids
            else:
                tgt = self.target.encode(target)
            weights = self.model.weights(src_row, torch.tensor([[BOS, *tgt]], device=self.device))
        if weights is None:
            return None
        # a clone outside inference mode: an ordinary tensor, usable everywhere
        return AttentionMap(
            self.source.pieces([*src, EOS]), self.target.pieces([*tgt, EOS]), weights[0].float().cpu().clone()
        )


def require_finite(candidates: list[Candidate]) -> list[Candidate]:
    """The candidates; UserError where there are none, which happens only with weights that are not finite."""
    if not candidates:
        raise UserError(
            "the model gives no finite score to any translation: its weights hold NaN or infinity; "
            "use another checkpoint of the run, or train it with a lower learning rate"
        )
    return candidates


@contextmanager
def eval_mode(model: Seq2Seq) -> Iterator[None]:
    """No dropout inside; the previous mode is restored, since validation borrows the model that is training."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)
