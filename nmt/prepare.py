"""Program: a corpus cleaned, encoded and accounted for, ready to be trained on.      python -m nmt.prepare data=..."""

from typing import Any

from omegaconf import DictConfig, OmegaConf

from nmt.cli import program, say
from nmt.corpora import prepared_corpus


@program("prepare")
def main(cfg: DictConfig) -> None:
    config: dict[str, Any] = OmegaConf.to_container(cfg, resolve=True)  # type: ignore[assignment]
    prepared = prepared_corpus(config)
    print(prepared.card.read_text(encoding="utf-8"), flush=True)
    say(f"prepared: {prepared.folder}")
    say("next: python -m nmt.train experiment=bahdanau, with the same settings")


if __name__ == "__main__":
    main()
