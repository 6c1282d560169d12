"""Program: a corpus cleaned, encoded and accounted for, ready to be trained on.      python -m nmt.prepare data=..."""

from hydra.utils import instantiate

from nmt.cli import Composed, program, say
from nmt.data.preparation.prepared_corpus import prepare_from_config


@program("prepare")
def main(composed: Composed) -> None:
    prepared = prepare_from_config(composed.config, lambda: instantiate(composed.config["data"]))
    print(prepared.card.read_text(encoding="utf-8"), flush=True)
    say(f"prepared: {prepared.folder}")
    say("next: python -m nmt.train experiment=bahdanau, with the same settings")


if __name__ == "__main__":
    main()
