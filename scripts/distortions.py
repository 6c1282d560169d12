"""What the choice of axis does to BLEU by length: python -m scripts.distortions FOLDER [SYSTEM ...]

FOLDER holds the submissions to WMT21 German-English (newstest2021.de-en.*.gz); all systems are pooled unless some
are named. Nothing about an output changes here, only the bin it is put into. Writes numbers and a figure, never
text, to outputs/reference/distortions/; docs/measuring.md shows both.
"""

import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sacrebleu.metrics import BLEU

from nmt.data.text import read_lines
from nmt.evaluation.bootstrap import bleu_of_sums, percentile_interval, resampled_sums
from nmt.evaluation.by_length import MIN_SENTENCES, bins_of_ten, source_length
from nmt.evaluation.metrics import CORRECT, HYPOTHESIS, REFERENCE, TOTAL, statistics
from nmt.evaluation.stored import to_json
from nmt.files import write_whole
from nmt.settings import BootstrapSettings
from nmt.study.figures import COLOURS, FAINT, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OUTPUT = Path(__file__).resolve().parent.parent / "outputs" / "reference" / "distortions"
SET = "newstest2021.de-en"
BINS = bins_of_ten(40)
AXES = ("source", "reference", "output")
MARKERS = ("o", "s", "^", "D")
DPI, MAX_PIXELS = 200, 8_000  # a side
TITLES = ("output tokens / reference tokens", "corpus BLEU", "by source: two kinds of BLEU")


def sentence_bleu(row: np.ndarray) -> float:
    """sacreBLEU's BLEU of one sentence: smoothed, and of the n-grams that fit into it."""
    counts = row.tolist()
    return BLEU.compute_bleu(
        counts[CORRECT], counts[TOTAL], counts[HYPOTHESIS], counts[REFERENCE], "exp", effective_order=True
    ).score


def measure_distortions(
    sources: Sequence[str], references: Sequence[str], outputs: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """A row a bin for each axis, and how many outputs change bin with it."""
    rows = np.stack([statistics(texts, [references]).bleu for texts in outputs.values()])
    of_source = np.array([source_length(line) for line in sources])
    lengths = {
        "source": np.broadcast_to(of_source, rows.shape[:2]),
        "reference": rows[:, :, REFERENCE],
        "output": rows[:, :, HYPOTHESIS],
    }
    scores = np.apply_along_axis(sentence_bleu, 2, rows)
    stacked = np.concatenate([rows, scores[:, :, None], np.ones_like(scores)[:, :, None]], axis=2)
    starts = [where.low for where in BINS]
    binned = {axis: np.digitize(values, starts) for axis, values in lengths.items()}
    return {
        "test": SET,
        "systems": list(outputs),
        "sentences": len(sources),
        "axes": {
            axis: [_row(where.label, stacked, binned[axis] == place) for place, where in enumerate(BINS, start=1)]
            for axis in AXES
        },
        "moved": {axis: float((binned["source"] != binned[axis]).mean()) for axis in AXES[1:]},
    }


def _row(label: str, stacked: np.ndarray, members: np.ndarray) -> dict[str, Any]:
    """BLEU, length ratio and mean sentence BLEU of one bin; members (systems, sentences) are the outputs in it.

    Sentences are resampled, each with the outputs of all systems that are in the bin, for these stand or fall
    together.
    """
    rows = (stacked * members[:, :, None]).sum(axis=0)[members.any(axis=0)]
    if not len(rows):
        return {"label": label, "sentences": 0, "outputs": 0}
    row: dict[str, Any] = {"label": label, "sentences": len(rows), "outputs": int(members.sum())}
    drawn, whole = resampled_sums(rows, BootstrapSettings.defaults()), rows.sum(axis=0, keepdims=True)
    for name, values in (("bleu", bleu_of_sums), ("ratio", _ratio), ("mean_sentence_bleu", _mean)):
        row[name] = float(values(whole)[0])
        row[f"{name}_interval"] = list(percentile_interval(values(drawn)))
    return row


def _ratio(sums: np.ndarray) -> np.ndarray:
    return sums[:, HYPOTHESIS] / sums[:, REFERENCE]


def _mean(sums: np.ndarray) -> np.ndarray:
    return sums[:, -2] / sums[:, -1]


def markdown(results: Mapping[str, Any]) -> str:
    """The results as Markdown."""
    axes = results["axes"]
    head = ["tokens", *(f"by {axis}: sentences | BLEU | ratio" for axis in AXES), "by source: mean sentence BLEU"]
    table = [f"| {' | '.join(head)} |", f"|---|{'--:|' * 10}"]
    for rows in zip(*(axes[axis] for axis in AXES), strict=True):
        cells = [rows[0]["label"]]
        for row in rows:
            known = row["sentences"] > 0
            cells += [
                str(row["sentences"]),
                f"{row['bleu']:.1f}" if known else "–",
                f"{row['ratio']:.3f}" if known else "–",
            ]
        cells.append(f"{rows[0]['mean_sentence_bleu']:.1f}" if rows[0]["sentences"] else "–")
        table.append(f"| {' | '.join(cells)} |")
    moved = {axis: f"{100 * share:.0f}%" for axis, share in results["moved"].items()}
    notes = [
        f"- {results['test']}, reference A, {results['sentences']:,} sentences; {len(results['systems'])} systems, "
        "pooled: the statistics of all outputs in a bin are summed. The length of the output differs between systems, "
        "so that a sentence can be in several bins by output.",
        f"- {moved['reference']} of the outputs are in another bin by reference than by source; "
        f"{moved['output']} by output.",
        f"- A bin of under {MIN_SENTENCES} sentences only describes.",
    ]
    return "\n".join(table) + "\n\n" + "\n".join(notes) + "\n"


def save_figure(figure: "Figure", path: Path) -> None:
    """Writes the figure whole, as path's suffix says, without a time stamp; 200 dpi, fewer where it is huge."""
    stamp: dict[str, dict[str, str | None]] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    dpi = min(DPI, MAX_PIXELS / max(figure.get_size_inches()))
    with warnings.catch_warnings():  # letters that no installed font has are drawn as boxes
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        kind, metadata = path.suffix[1:], stamp.get(path.suffix)
        write_whole(path, lambda to: figure.savefig(to, format=kind, dpi=dpi, metadata=metadata))


def plot_settings() -> Any:  # matplotlib types the keys as 300 literals
    return {
        "font.size": 9.5,
        "text.color": INK,
        "axes.labelcolor": INK,
        "axes.edgecolor": "#888888",
        "xtick.color": INK,
        "ytick.color": INK,
        "text.parse_math": False,  # a name is text, whatever signs it holds
        "svg.hashsalt": "nmt",  # the same figure, the same bytes
        "svg.fonttype": "none",
        "pdf.fonttype": 42,
    }


def draw(results: Mapping[str, Any], stem: Path) -> None:
    """Length ratio and BLEU by each axis; corpus BLEU and mean sentence BLEU by source."""
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.ticker import MultipleLocator

    axes = results["axes"]
    with matplotlib.rc_context(plot_settings()):
        figure = Figure(figsize=(10.6, 4.3))
        panels = figure.subplots(1, 3)
        figure.subplots_adjust(left=0.055, right=0.985, top=0.715, bottom=0.15, wspace=0.2)
        names = {axis: f"by {axis}" for axis in AXES}
        for index, axis in enumerate(AXES):
            for panel, name in ((panels[0], "ratio"), (panels[1], "bleu")):
                _line(panel, axes[axis], name, names[axis], index)
        _line(panels[2], axes["source"], "bleu", "corpus BLEU", 0)
        _line(panels[2], axes["source"], "mean_sentence_bleu", "mean of sentence BLEU", 3)
        panels[0].axhline(1, color="#888888", linewidth=0.8, zorder=1)
        for panel, title in zip(panels, TITLES, strict=True):
            _dress(panel, title)
        panels[0].yaxis.set_major_locator(MultipleLocator(0.02))
        for panel in panels[1:]:
            panel.set_ylim(*_range(axes))
        _title(figure, results)
        for suffix in (".png", ".svg"):
            save_figure(figure, stem.with_suffix(suffix))


def _range(axes: Mapping[str, Sequence[Mapping[str, Any]]]) -> tuple[float, float]:
    """Multiples of 5 BLEU around all intervals."""
    known = [row for rows in axes.values() for row in rows if row["sentences"]]
    ends = [end for row in known for name in ("bleu", "mean_sentence_bleu") for end in row[f"{name}_interval"]]
    return 5 * (min(ends) // 5), 5 * (max(ends) // 5 + 1)


def _line(panel: "Axes", rows: Sequence[Mapping[str, Any]], name: str, label: str, index: int) -> None:
    colour, shift = COLOURS[index], (min(index, 2) - 1) * 0.12
    points = [(place + shift, row) for place, row in enumerate(rows) if row["sentences"]]
    panel.plot([x for x, _ in points], [row[name] for _, row in points], color=colour, linewidth=1.6, zorder=3)
    style = {"marker": MARKERS[index], "markersize": 5.6, "linestyle": "none", "zorder": 4}
    panel.plot(
        [], [], color=colour, label=label, markerfacecolor=colour, markeredgecolor="white", **style | {"linestyle": "-"}
    )
    for x, row in points:
        panel.vlines(x, *row[f"{name}_interval"], color=colour, linewidth=1.2, alpha=0.75, zorder=2)
        few = row["sentences"] < MIN_SENTENCES
        face, edge = ("white", colour) if few else (colour, "white")
        panel.plot(
            [x], [row[name]], markerfacecolor=face, markeredgecolor=edge, markeredgewidth=1.4 if few else 0.7, **style
        )


def _dress(panel: "Axes", title: str) -> None:
    panel.set_xticks(range(len(BINS)), [where.label for where in BINS])
    panel.set_xlabel("tokens", labelpad=5)
    panel.set_title(title, loc="left", fontsize=9.5, fontweight="bold", pad=24)
    panel.grid(axis="y", color=FAINT, linewidth=0.8)
    panel.set_axisbelow(True)
    panel.spines[["top", "right", "left"]].set_visible(False)
    panel.tick_params(length=0, pad=5)
    panel.set_xlim(-0.4, len(BINS) - 0.6)
    panel.legend(
        frameon=False,
        fontsize=8.5,
        loc="lower left",
        bbox_to_anchor=(-0.02, 1.0),
        ncols=3,
        borderaxespad=0.2,
        columnspacing=0.9,
        handletextpad=0.4,
    )


def _title(figure: Any, results: Mapping[str, Any]) -> None:
    count = len(results["systems"])
    details = (
        f"WMT21 German→English, {count} system{'s' * (count > 1)} pooled, {results['sentences']:,} sentences · "
        f"bars: 95% bootstrap intervals over sentences · hollow: under {MIN_SENTENCES} sentences"
    )
    figure.text(
        0.012, 0.945, "The same outputs, put into bins in three ways", fontsize=13, fontweight="bold", va="center"
    )
    figure.text(0.012, 0.882, details, fontsize=8.5, color="#555555", va="center")


def main(folder: Path, systems: Sequence[str]) -> None:
    outputs = {path.name.split(".")[3]: path for path in sorted(folder.glob(f"{SET}.hyp.*.gz"))}
    unknown = sorted(set(systems) - set(outputs))
    if unknown or not outputs:
        sys.exit(f"no output of {', '.join(unknown) or 'any system'} in {folder}; there are: {', '.join(outputs)}")
    texts = {name: list(read_lines(outputs[name])) for name in systems or outputs}
    results = measure_distortions(
        list(read_lines(folder / f"{SET}.src.de.gz")), list(read_lines(folder / f"{SET}.ref.A.en.gz")), texts
    )
    OUTPUT.mkdir(parents=True, exist_ok=True)
    (OUTPUT / "distortions.json").write_text(to_json(results) + "\n", encoding="utf-8")
    (OUTPUT / "distortions.md").write_text(markdown(results), encoding="utf-8")
    draw(results, OUTPUT / "distortions")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python -m scripts.distortions FOLDER [SYSTEM ...]")
    main(Path(sys.argv[1]), sys.argv[2:])
