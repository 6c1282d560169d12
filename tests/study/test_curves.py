"""Learning curves are read from what a run wrote, and drawn."""

from pathlib import Path

from nmt.study.curves import draw_curves, read_curve


def test_only_validations_with_bleu_are_points_and_a_cut_line_is_left_out(tmp_path: Path) -> None:
    lines = [
        '{"update": 1, "train/nll": 3.0, "target_pieces": 10}',
        '{"update": 2, "valid/nll": 2.0, "valid/bleu": 7.5, "target_pieces": 20}',
        '{"update": 3, "valid/nll": 2.0, "valid/bleu": null, "target_pieces": 30}',
        '{"update": 4, "valid/',
    ]
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines))
    assert read_curve(tmp_path) == [(20, 7.5)]
    assert read_curve(tmp_path / "absent") == read_curve(None) == []


def test_a_curve_of_one_point_and_one_of_many_are_drawn(tmp_path: Path) -> None:
    png = draw_curves({"a": [(1, 0.0)], "b": [(1_000_000, 1.0), (2_000_000, 30.0)]}, tmp_path / "new" / "curves")
    assert png.stat().st_size > 1000
    assert sorted(path.suffix for path in png.parent.iterdir()) == [".pdf", ".png", ".svg"]
