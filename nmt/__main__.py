"""What there is: python -m nmt."""

import json
import platform

from nmt import __version__
from nmt.provenance import git_commit, machine_description, package_version

PROGRAMS = {
    "prepare": "clean, encode a corpus:  python -m nmt.prepare data=wmt14_en_fr",
    "train": "train one system:        python -m nmt.train experiment=bahdanau",
    "translate": "lines in, lines out:     echo 'the old dog sleeps' | python -m nmt.translate checkpoint=RUN",
    "evaluate": "BLEU, chrF, TER, length: python -m nmt.evaluate checkpoint=RUN",
    "compare": "all systems, one figure: python -m nmt.compare",
    "benchmark": "how fast the parts are:  python -m nmt.benchmark",
}


def main() -> None:
    print(f"nmt {__version__}: neural machine translation with and without attention\n")
    for name, line in PROGRAMS.items():
        print(f"  nmt.{name:<10} {line}")
    print("\nEach explains itself: python -m nmt.train --help\n\nFor a bug report:")
    packages = ("torch", "sentencepiece", "sacrebleu", "hydra-core", "datasets", "numpy", "safetensors")
    print(
        json.dumps(
            {
                "nmt": __version__,
                "commit": git_commit(),
                "python": platform.python_version(),
                "system": platform.platform(),
                "machine": machine_description(),
                **{name: package_version(name) for name in packages},
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
