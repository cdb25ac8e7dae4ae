"""The model of ``steersman top``: rows from answers."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.manager.top.answer import read_answer
from steersman.manager.top.columns import seconds, text
from steersman.manager.top.model import KEPT, SORTS, advance, document, sort_rows
from steersman.manager.verb import evaluate
from steersman.manager.verbs import TOP
from tests.harness.top import answer, changed, controller, fight, round_


def test_a_row_has_the_figures_of_a_controller() -> None:
    told = controller(
        ready=4, waiting=3, working=2, oldest=7.5, rate=1.5, p50=0.001, p99=0.2, wait=0.3, writes={"create": 2},
        refused=1, retries=5, failed=6, crashes=1, rounds=99,
    )  # fmt: skip
    (row,) = advance(None, answer(told)).rows
    assert (row.queue, row.waiting, row.working, row.oldest) == (4, 3, 2, 7.5)
    assert (row.rate, row.p50, row.p99, row.wait, row.written) == (1.5, 0.001, 0.2, 0.3, 2)
    assert (row.refused, row.retries, row.failures, row.crashes, row.rounds) == (1, 5, 6, 1, 99)
    assert not row.idle


@pytest.mark.parametrize(
    ("by", "first"),
    [
        ("rate", "b"), ("queue", "c"), ("oldest", "d"), ("p99", "e"), ("wait", "f"), ("writes", "g"),
        ("refused", "h"), ("retries", "i"), ("failures", "j"), ("controller", "a"),
    ],
)  # fmt: skip
def test_rows_are_sorted_by_any_column_the_largest_first(by: str, first: str) -> None:
    rows = advance(
        None,
        answer(
            controller("a"), controller("b", rate=9.0), controller("c", ready=9), controller("d", oldest=9.0),
            controller("e", p99=9.0), controller("f", wait=9.0), controller("g", writes={"patch": 9}),
            controller("h", refused=9), controller("i", retries=9), controller("j", failed=9),
        ),
    ).rows  # fmt: skip
    assert sort_rows(rows, by)[0].controller == first


def test_the_flag_sort_has_the_columns_of_the_model() -> None:
    (sort,) = (each for each in evaluate(TOP.flags) if each.name == "sort")
    for name in SORTS:
        assert sort.type.read(name) == name
    with pytest.raises(ValueError, match="rate"):
        sort.type.read("fame")


def test_busy_keys_come_from_all_controllers_with_their_rates() -> None:
    # A full ring covers less than a minute: ten rounds in five seconds are more than thirty in a minute.
    picture = advance(
        None,
        answer(
            controller("a-controller", hottest=[("shop", "slow", 30)]),
            controller("b-controller", hottest=[("shop", "fast", 10)], seconds=5.0),
        ),
    )
    assert [(each.key, each.controller, each.rate) for each in picture.hottest] == [
        ("shop/fast", "b-controller", 2.0),
        ("shop/slow", "a-controller", 0.5),
    ]


CAUSES: list[tuple[str, list[dict[str, Any]], str]] = [
    (
        "another client comes before the echo of own writes",
        [
            round_(1, causes=[changed()]),
            round_(2, causes=[changed(by=1)]),
            round_(3, causes=[changed(by=2)]),
        ],
        "Deployment web changed by another client ×1, Deployment web changed by deployment ×2",
    ),
    (
        "pods are counted together",
        [
            round_(1, "replicaset-controller", "web-1"),
            round_(2, causes=[changed("web-a", "Pod", by=1), changed("web-b", "Pod", by=1)]),
            round_(3, causes=[changed("web-c", "Pod", by=1)]),
        ],
        "Pod changed by replicaset ×2",
    ),
    (
        "a failed round says why there are more",
        [
            round_(
                4, causes=[{"type": "retry", "text": "retry"}], ending={"failure": "quota", "retryAfter": 5}
            )
        ],
        "failed: quota, retry ×1",
    ),
    (
        "timers differ in numbers only",
        [
            round_(1, causes=[{"type": "timer", "text": "rollout in progress: 1 of 2"}]),
            round_(2, causes=[{"type": "timer", "text": "rollout in progress: 2 of 2"}]),
        ],
        "timer: rollout in progress ×2",
    ),
    ("a minute ago does not count", [round_(1, causes=[changed()], ago=61)], ""),
    (
        "a writer that is no longer known is a controller",
        [round_(7, causes=[changed(by=3)])],
        "Deployment web changed by a controller ×1",
    ),
]


@pytest.mark.parametrize(("rounds", "told"), [row[1:] for row in CAUSES], ids=[row[0] for row in CAUSES])
def test_a_busy_key_has_the_causes_of_its_last_rounds(rounds: list[dict[str, Any]], told: str) -> None:
    (hot,) = advance(None, answer(controller(hottest=[("shop", "web", 9)]), rounds=rounds)).hottest
    assert hot.why == told


def test_rounds_are_kept_from_answer_to_answer_and_bounded() -> None:
    first = advance(None, answer(controller(), rounds=[round_(1), round_(2, "job-controller")]))
    second = advance(first, answer(controller(), rounds=[round_(3)]))
    assert [each.number for each in second.rounds["deployment-controller"]] == [1, 3]
    assert [each.number for each in second.rounds["job-controller"]] == [2]
    many = advance(second, answer(controller(), rounds=[round_(number) for number in range(4, 4 + KEPT)]))
    assert len(many.rounds["deployment-controller"]) == KEPT


def test_a_restarted_manager_begins_a_new_picture() -> None:
    before = advance(None, answer(controller(), rounds=[round_(500)]))
    after = advance(before, answer(controller(), rounds=[round_(1)]))
    assert [each.number for each in after.rounds["deployment-controller"]] == [1]


def test_a_fight_names_the_object_the_actors_and_how_often() -> None:
    told = answer(controller(), fights=[fight("another client", "horizontal-pod-autoscaler-controller")])
    (row,) = advance(None, told).fights
    assert (row.object, row.between) == (
        "Deployment shop/web",
        "another client <-> horizontal-pod-autoscaler",
    )
    assert (row.turns, row.seconds, row.ago) == (6, 30.0, 2.0)
    assert advance(None, told, "job-controller").fights == ()
    assert len(advance(None, told, "horizontal-pod-autoscaler-controller").fights) == 1


def test_the_text_for_pipes_has_all_columns_and_what_a_reader_must_know() -> None:
    told = answer(
        controller(rate=0.5, writes={"create": 1, "update/status": 2}, hottest=[("shop", "we\x1bb", 3)]),
        fights=[fight("another client", "deployment-controller")],
        running=False,
        enabled=False,
    )
    lines = text(advance(None, told), "rate").splitlines()
    assert lines[0].startswith("the trace is off (STEERSMAN_TRACE=off)")
    assert lines[1].startswith("no controllers run here")
    assert lines[3].split()[:3] == ["CONTROLLER", "KIND", "QUEUE"]
    assert lines[4].endswith("create 1, update/status 2")
    assert "shop/we b" in lines[7], "no escape sequence reaches the terminal"
    assert lines[10].split() == [
        *["Deployment", "shop/web", "6", "5.0s", "2.0s", "ago"],
        "another",
        "client",
        "<->",
        "deployment",
    ]


def test_the_document_for_programs_has_rows_keys_and_fights() -> None:
    told = document(advance(None, answer(controller("b"), controller("a"))), "controller")
    assert list(told) == ["now", "running", "recording", "controllers", "hottest", "fights"]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (0.0, "-"),
        (0.0004, "1ms"),
        (0.25, "250ms"),
        (4.04, "4.0s"),
        (42.0, "42s"),
        (240.0, "4m"),
        (7200, "2h"),
    ],
)
def test_durations_fit_a_narrow_column(value: float, told: str) -> None:
    assert seconds(value) == told


def test_an_answer_of_another_kind_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match=r"is not one that this version reads: .*`now`"):
        read_answer({"kind": "Status"})
