"""Prints sentence pairs with their alignment: `python -m nmt.data.grammar [how many] [seed]`."""

import sys
from itertools import islice

from nmt.data.grammar import GrammarCorpus


def main(arguments: list[str]) -> None:
    """Three lines a pair: English, German, and i-j links."""
    count = int(arguments[0]) if arguments else 10
    seed = int(arguments[1]) if len(arguments) > 1 else 1
    corpus = GrammarCorpus(seed=seed, train_pairs=count, valid_pairs=1, test_pairs=1)
    for pair in islice(corpus.train(), count):
        print(pair.source, pair.target, " ".join(f"{i}-{j}" for i, j in pair.alignment), "", sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
