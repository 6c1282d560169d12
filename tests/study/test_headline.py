"""The sentence of the headline: true whoever leads. All numbers are invented."""

import numpy as np
import pytest

from nmt.evaluation.by_length import Bin
from nmt.evaluation.metrics import Statistics
from nmt.study import headline
from nmt.study.headline import Headline, compared_variants, headlines, limits
from tests.study.fakes import choices, report_of, systems_in

GROUPS = (Bin(1, 20), Bin(40, None))


def found(short: float, long: float) -> Headline:
    change = long - short
    ends = (change - 0.5, change + 0.5)
    return Headline("b", "a", "1–19", "40+", 200, 200, change, ends, [change], short, ends, long, ends, False)


@pytest.mark.parametrize(
    ("short", "long", "said"),
    [
        (1.0, 5.0, "b leads a by 1.0 BLEU on sources of 1–19 words and by 5.0 on sources of 40+ words: a difference "
                   "of +4.0 [+3.5, +4.5] (the gap grows with length;"),
        (5.0, 1.0, "b leads a by 5.0 BLEU on sources of 1–19 words and by 1.0 on sources of 40+ words: a difference "
                   "of -4.0 [-4.5, -3.5] (the gap shrinks with length;"),
        (-5.0, -1.0, "b trails a by 5.0 BLEU on sources of 1–19 words and by 1.0 on sources of 40+ words: a difference "
                     "of +4.0 [+3.5, +4.5] (the gap shrinks with length;"),
        (-1.0, -5.0, "b trails a by 1.0 BLEU on sources of 1–19 words and by 5.0 on sources of 40+ words: a difference "
                     "of -4.0 [-4.5, -3.5] (the gap grows with length;"),
        (-1.0, 3.0, "b trails a by 1.0 BLEU on sources of 1–19 words and leads it by 3.0 on sources of 40+ words: a "
                    "difference of +4.0 [+3.5, +4.5] (length moves the difference towards b;"),
        (3.0, -1.0, "(length moves the difference away from b;"),
        (0.0, -0.01, "b leads a by 0.0 BLEU on sources of 1–19 words and by 0.0 on sources of 40+"),
    ],
)  # fmt: skip
def test_who_leads_and_whether_the_gap_grows(short, long, said):
    assert said in headline._sentence(found(short, long))


def test_without_a_headline_the_reason_is_one_that_holds(tmp_path):
    alone = report_of(systems_in(tmp_path, ("rnn",)))
    assert alone.headlines == []
    assert "it takes two systems" in alone.limits[0]


def test_one_run_of_a_system_is_not_called_a_training():
    assert "there is one run of each system" in limits([found(1.0, 2.0)], seeds=1)[0]


def test_one_sentence_makes_no_interval_and_so_no_headline():
    row = np.array([[9, 9, 9, 8, 7, 6, 9, 8, 7, 6]])
    rows = {label: [Statistics(row.repeat(3, axis=0), {}, {})] for label in "ab"}
    assert headlines(rows, [("b", "a")], [5, 5, 45], GROUPS, choices().resampling) == []


def test_other_searches_are_held_against_the_baselines_own_search_and_equal_time_against_the_baseline() -> None:
    generator = np.random.default_rng(2)
    lengths = [5] * 20 + [45] * 20

    def system(right: float) -> list[Statistics]:
        rows = [[n, n, *(int(right * (n - k)) for k in range(4)), *(n - k for k in range(4))] for n in lengths]
        return [
            Statistics(np.array(rows) - generator.integers(0, 2, (40, 10)) * [0, 0, 1, 1, 1, 1, 0, 0, 0, 0], {}, {})
        ]

    systems = {"rnn": system(0.5), "luong": system(0.8)}
    variants = {name: system(0.7) for name in ("rnn, beam=1", "luong, beam=1", "luong at rnn's CPU time (1:00)")}
    rows = headlines({**systems, **variants}, compared_variants(variants, "rnn"), lengths, GROUPS, choices().resampling)
    assert [(row.system, row.baseline) for row in rows] == [
        ("luong, beam=1", "rnn, beam=1"), ("luong at rnn's CPU time (1:00)", "rnn"),
    ]  # fmt: skip
    assert all(row.interval[0] < row.estimate < row.interval[1] and row.descriptive for row in rows)


def test_of_texts_nothing_is_said_about_seeds() -> None:
    assert "training" not in limits([found(1.0, 2.0)], 1, trained=False)[0]
