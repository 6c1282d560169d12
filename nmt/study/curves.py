"""Learning curves: BLEU on the validation text against target pieces seen, one line a run."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from nmt.study.figure import FAINT, SUFFIXES, label_ends, plot_settings, save, style_of
from nmt.study.results import System, logged

Curve = list[tuple[int, float]]  # (target pieces, validation BLEU)


def curves_of(systems: Sequence[System]) -> dict[str, Curve]:
    """Each system's curve (its first run's), where the run directory has one."""
    found = {system.label: read_curve(system.results[0].run_dir) for system in systems}
    return {label: curve for label, curve in found.items() if curve}


def read_curve(run_dir: Path | None) -> Curve:
    """The validations of a run; none where there is no run directory, or nothing in it."""
    lines = logged(run_dir) if run_dir else []
    return [(line["target_pieces"], line["valid/bleu"]) for line in lines if line.get("valid/bleu") is not None]


def draw_curves(curves: Mapping[str, Curve], stem: Path) -> Path:
    """Writes <stem>.png, .svg and .pdf; gives the PNG's path."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(plot_settings()):
        figure = Figure(figsize=(7.6, 4.0))
        axes = figure.add_axes((0.085, 0.14, 0.745, 0.73))
        for index, curve in enumerate(curves.values()):
            style = style_of(index, len(curves))
            pieces, bleu = zip(*curve, strict=True)
            axes.plot([n / 1e6 for n in pieces], bleu, color=style.colour, marker=style.marker, markersize=4)
        axes.set_ylim(bottom=0)
        axes.set_xlim(left=0)
        axes.set_xlabel("target pieces seen in training, millions")
        axes.set_ylabel("BLEU on the validation text, greedy")
        axes.grid(axis="y", color=FAINT, linewidth=0.8)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(length=0, pad=5)
        label_ends(axes, [(curve[-1][1], index) for index, curve in enumerate(curves.values())], list(curves))
        figure.text(0.02, 0.94, "Learning curves", fontsize=13, fontweight="bold", va="center")
        stem.parent.mkdir(parents=True, exist_ok=True)
        for suffix in SUFFIXES:
            save(figure, stem.with_suffix(suffix))
    return stem.with_suffix(".png")
