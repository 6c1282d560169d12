"""Time and memory of attention against length, on logarithmic axes."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from nmt.study.figure import FAINT, plot_settings, save, style_of

Line = Sequence[tuple[int, float, float]]  # length, milliseconds, MiB


def draw(
    lines: Mapping[tuple[str, str], Line], cases: Sequence[str], names: Sequence[str], title: str, path: Path
) -> None:
    """A column for each case, times above, memory below, a line for each backend."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(plot_settings()):
        figure = Figure(figsize=(3.1 * len(cases), 6.4), layout="constrained")
        axes = figure.subplots(2, len(cases), sharex=True, sharey="row", squeeze=False)
        for column, case in enumerate(cases):
            for row, unit in enumerate(("milliseconds", "MiB at the peak")):
                panel = axes[row, column]
                for index, name in enumerate(names):
                    style, points = style_of(index, len(names)), lines[case, name]
                    ns, heights = [point[0] for point in points], [point[1 + row] for point in points]
                    panel.plot(ns, heights, color=style.colour, marker=style.marker, markersize=4, label=name)
                panel.set_xscale("log", base=2)
                panel.set_yscale("log")
                for axis in (panel.xaxis, panel.yaxis):
                    axis.set_major_formatter(lambda value, _: f"{value:,g}")
                panel.grid(color=FAINT, linewidth=0.8)
                panel.spines[["top", "right"]].set_visible(False)
                if column == 0:
                    panel.set_ylabel(unit)
            axes[0, column].set_title(case, fontsize=9.5)
            axes[1, column].set_xlabel("places")
            axes[1, column].tick_params(axis="x", labelrotation=45)
        figure.legend(
            *axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=len(names), frameon=False
        )
        figure.suptitle(f"Attention by length: {title}", fontweight="bold")
        path.parent.mkdir(parents=True, exist_ok=True)
        save(figure, path)
