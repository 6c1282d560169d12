"""Invented statistics of sentences whose truth is known: many sentences, two systems equally good by construction.

Sentences differ in length and in difficulty; both systems find the same ones hard. Words come out right in
streaks, as they do in translations.
"""

import numpy as np

from nmt.evaluation.bootstrap import bleu_of_sums

LONGEST = 80  # words


class Population:
    """Rows (M, 10) of systems a and b, drawn alike given the sentence; BLEU around 25."""

    def __init__(self, size: int, seed: int) -> None:
        generator = np.random.default_rng(seed)
        self.lengths = np.clip(np.exp(generator.normal(2.85, 0.6, size)).astype(np.int64), 1, LONGEST)
        ease = generator.beta(5, 5, size)
        self.a, self.b = (self._rows(ease, generator) for _ in "ab")

    def _rows(self, ease: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        size = len(ease)
        spread = np.rint(generator.normal(0, 0.12, size) * self.lengths).astype(np.int64)
        words = np.clip(self.lengths + spread, 1, LONGEST)
        right = np.zeros((size, LONGEST), dtype=bool)
        right[:, 0] = generator.random(size) < ease
        for place in range(1, LONGEST):
            again = generator.random(size) < 0.3  # as the word before it
            right[:, place] = np.where(again, right[:, place - 1], generator.random(size) < ease)
        right &= np.arange(LONGEST) < words[:, None]
        correct, total = [], []
        streak = right
        for order in range(4):
            if order:
                streak = streak[:, :-1] & right[:, order:]
            correct.append(streak.sum(axis=1))
            total.append(np.maximum(words - order, 0))
        return np.stack([words, self.lengths, *correct, *total], axis=1)

    def sample(self, n: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Rows (n, 10) of two systems on n sentences; which is which is tossed for each sentence: no difference."""
        members = generator.integers(len(self.a), size=n)
        a, b = self.a[members], self.b[members]
        swap = generator.random((n, 1)) < 0.5
        return np.where(swap, b, a), np.where(swap, a, b)


def bleu(rows: np.ndarray) -> float:
    return float(bleu_of_sums(rows.sum(axis=0, keepdims=True).astype(float))[0])
