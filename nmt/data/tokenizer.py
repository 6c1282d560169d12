"""SentencePiece: trained inside the run, kept in the run directory. Special ids live here.

The model itself normalises nothing (`identity`): whatever a normaliser rewrites on the target side could
never be produced again. The source is cleaned in `normalise` instead, so that six spellings of one
sentence reach the model as one.
"""

import io
import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import sentencepiece as spm

from nmt.errors import ConfigError, UserError
from nmt.progress import say
from nmt.training_settings import TokenizerSettings

PAD, UNK, BOS, EOS = 0, 1, 2, 3
FIRST_BYTE = 4  # the 256 pieces of byte fallback follow the special ones
SOURCE_MODEL, TARGET_MODEL = "source.model", "target.model"
SPACE = "\u2581"  # SentencePiece's mark for a space
MODEL_LIMIT = 1 << 26  # bytes of a SentencePiece model
LONGEST_TRAINING_LINE = 65_536  # bytes; the library's own default of 4,192 skips long lines silently

# Joiners (U+200C, U+200D) carry meaning in Persian, Hindi and emoji; the other format characters carry none.
_INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_LIMIT = re.compile(r"value <= (\d+)")


def normalise(text: str) -> str:
    """The source as a reader sees it: NFKC, no invisible format characters, ordinary spaces."""
    return _CONTROL.sub(" ", _INVISIBLE.sub("", unicodedata.normalize("NFKC", text)))


class Tokenizer:
    """One side's pieces: text to ids and back. A source tokenizer cleans its input, a target one does not."""

    def __init__(self, model: bytes, normalises: bool) -> None:
        self.model = model
        self._normalises = normalises
        self._processor = spm.SentencePieceProcessor(model_proto=model)

    @classmethod
    def from_file(cls, path: Path, normalises: bool) -> "Tokenizer":
        """UserError where the file is missing, or not a model that this program has learned."""
        try:
            with path.open("rb") as file:
                model = file.read(MODEL_LIMIT + 1)
        except OSError as error:
            raise UserError(f"cannot read {path}: {error.strerror}") from None
        if len(model) > MODEL_LIMIT:
            raise UserError(f"{path} has over {MODEL_LIMIT:,} bytes; no SentencePiece model of this program does")
        try:
            tokenizer = cls(model, normalises)
        except Exception as error:  # SentencePiece raises several unrelated kinds
            raise UserError(f"{path} is no SentencePiece model ({type(error).__name__})") from None
        special = tuple(getattr(tokenizer._processor, f"{name}_id")() for name in ("pad", "unk", "bos", "eos"))
        if special != (PAD, UNK, BOS, EOS):
            raise UserError(f"{path} is not a SentencePiece model of this program: its special pieces are others")
        return tokenizer

    @property
    def vocab_size(self) -> int:
        return self._processor.get_piece_size()

    def encode(self, text: str) -> list[int]:
        """Ids without special ones; empty where nothing but spaces and invisible characters is left."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return self.encode_cleaned(self.cleaned(texts))

    def cleaned(self, texts: Sequence[str]) -> list[str]:
        """The texts as this tokenizer reads them."""
        return [normalise(text) for text in texts] if self._normalises else list(texts)

    def encode_cleaned(self, texts: list[str]) -> list[list[int]]:
        """Ids of texts that `cleaned` has given."""
        return self._processor.encode(texts, num_threads=1)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The pieces as SentencePiece spells them, spaces shown as U+2581."""
        return [self._processor.id_to_piece(int(i)) for i in ids]

    def spelled(self, ids: Sequence[int]) -> list[bytes]:
        """The bytes of the text that each piece stands for, spaces left out."""
        return [
            bytes([i - FIRST_BYTE]) if FIRST_BYTE <= i < FIRST_BYTE + 256 else piece.replace(SPACE, "").encode("utf-8")
            for i, piece in zip(ids, self.pieces(ids), strict=True)
        ]

    def decode(self, ids: Sequence[int]) -> str:
        """One clean line: byte pieces may spell control or broken characters, and these do not leave here."""
        return self.decode_batch([[int(i) for i in ids if i > EOS]])[0]

    def decode_batch(self, sequences: Sequence[Sequence[int]]) -> list[str]:
        """The texts of sequences that hold no special ids."""
        texts = self._processor.decode(list(sequences)) if sequences else []
        return [_CONTROL.sub(" ", text.replace("\ufffd", "").replace(SPACE, " ")).strip() for text in texts]


def load_tokenizers(folder: Path) -> tuple[Tokenizer, Tokenizer]:
    """The pieces of a run or of a prepared corpus."""
    source = Tokenizer.from_file(folder / SOURCE_MODEL, normalises=True)
    return source, Tokenizer.from_file(folder / TARGET_MODEL, normalises=False)


def train_tokenizer(lines: Iterable[str], settings: TokenizerSettings, normalises: bool) -> Tokenizer:
    """Raises ConfigError, naming the smallest or largest size that works, where vocab_size does not fit."""
    unique = list(dict.fromkeys(normalise(line) if normalises else line for line in lines))
    usable = [line for line in unique if line.strip() and len(line.encode()) <= LONGEST_TRAINING_LINE]
    if not usable:
        raise UserError(
            f"no text to learn pieces from: {len(unique)} different lines, none with any words "
            f"and under {LONGEST_TRAINING_LINE} bytes"
        )
    if skipped := sum(len(line.encode()) > LONGEST_TRAINING_LINE for line in unique):
        say(f"{skipped:,} lines of over {LONGEST_TRAINING_LINE:,} bytes were not used to learn pieces from")
    size, attempt = settings.vocab_size, partial(_attempt, usable, settings)
    model, complaint = attempt(size)
    if model is None and (limit := _LIMIT.search(complaint)):
        # SentencePiece's own limit is at times one or two too high for its next attempt: step down until one works
        sizes = range(int(limit[1]), max(0, int(limit[1]) - 8), -1)
        largest, model = next(((n, smaller) for n in sizes if (smaller := attempt(n)[0])), (int(limit[1]), None))
        if model is None or not settings.shrink:
            raise ConfigError(
                f"tokenizer.vocab_size={size} is more than this corpus supports; the largest that works is {largest} "
                f"(or tokenizer.shrink=true takes the largest)"
            )
    if model is None:  # specials, bytes and characters are the floor
        floor = FIRST_BYTE + 256 + len(set("".join(usable).replace(" ", SPACE)) | {SPACE})
        smallest = next((n for n in range(max(floor, size + 1), floor + 24) if attempt(n)[0]), None)
        if smallest is None:
            reason = complaint.split("\n")[0]
            raise ConfigError(f"SentencePiece cannot learn {size} pieces from this corpus: {reason}")
        raise ConfigError(
            f"tokenizer.vocab_size={size} is too small for this corpus; the smallest that works is {smallest}"
        )
    return Tokenizer(model, normalises)


def _attempt(lines: list[str], settings: TokenizerSettings, size: int) -> tuple[bytes | None, str]:
    """A trained model, or None and the message of SentencePiece."""
    model = io.BytesIO()
    try:
        spm.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=model,
            vocab_size=size,
            model_type=settings.model_type,
            character_coverage=settings.character_coverage,
            normalization_rule_name="identity",
            byte_fallback=True,
            pad_id=PAD,
            unk_id=UNK,
            bos_id=BOS,
            eos_id=EOS,
            max_sentence_length=LONGEST_TRAINING_LINE,
            num_threads=1,
            minloglevel=2,
        )
    except (RuntimeError, OSError) as error:
        return None, str(error)
    return model.getvalue(), ""
