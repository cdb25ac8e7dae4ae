"""``/healthz`` in the form of kube-controller-manager."""

from __future__ import annotations

import pytest

from steersman.manager.serving.health import Health

WELL = """\
[+]leaderElection ok
[+]job-controller ok
healthz check passed
"""
EXCLUDED = """\
[+]leaderElection excluded: ok
[+]job-controller ok
warn: some health checks cannot be excluded: no matches for "bar","foo"
healthz check passed
"""
ILL = """\
[+]leaderElection ok
[-]job-controller failed: reason withheld
healthz check failed
"""
SPARED = """\
[+]leaderElection ok
[+]job-controller excluded: ok
healthz check passed
"""


@pytest.mark.parametrize(
    ("query", "ill", "code", "body"),
    [
        ({}, None, 200, "ok"),
        ({"verbose": [""]}, None, 200, WELL),
        ({"verbose": [""], "exclude": ["leaderElection", "foo", "bar"]}, None, 200, EXCLUDED),
        ({}, "it crashes", 500, ILL),
        ({"verbose": [""], "exclude": ["job-controller"]}, "it crashes", 200, SPARED),
        ({"exclude": ["job-controller"]}, "it crashes", 200, "ok"),
    ],
)
def test_all_checks_make_one_answer(
    query: dict[str, list[str]], ill: str | None, code: int, body: str
) -> None:
    health = Health()
    health.add({"leaderElection": lambda: None, "job-controller": lambda: ill})
    answer = health.answer(query)
    assert (answer.status, answer.body.decode()) == (code, body)


@pytest.mark.parametrize(
    ("name", "code", "body"),
    [
        ("well", 200, "ok"),
        ("ill", 500, "internal server error: it crashes\n"),
        ("ping", 200, "ok"),
        ("nothing", 404, "404 page not found\n"),
    ],
)
def test_each_check_has_an_answer_that_says_why(name: str, code: int, body: str) -> None:
    health = Health()
    health.add({"well": lambda: None, "ill": lambda: "it crashes"})
    answer = health.check(name)
    assert (answer.status, answer.body.decode()) == (code, body)


def test_where_there_is_nothing_to_look_at_it_answers_at_least() -> None:
    assert Health().answer({"verbose": [""]}).body == b"[+]ping ok\nhealthz check passed\n"


def test_how_checks_turned_out_is_counted() -> None:
    health, wrong = Health(), ["it crashes", None, None]
    health.add({"b": lambda: wrong.pop(0), "a": lambda: None})
    for _ in range(3):
        health.answer({})
    assert (
        health.slis().body.decode()
        == """\
# HELP kubernetes_healthcheck [STABLE] This metric records the result of a single healthcheck.
# TYPE kubernetes_healthcheck gauge
kubernetes_healthcheck{name="a",type="healthz"} 1
kubernetes_healthcheck{name="b",type="healthz"} 1
# HELP kubernetes_healthchecks_total [STABLE] This metric records the results of all healthcheck.
# TYPE kubernetes_healthchecks_total counter
kubernetes_healthchecks_total{name="a",status="success",type="healthz"} 3
kubernetes_healthchecks_total{name="b",status="error",type="healthz"} 1
kubernetes_healthchecks_total{name="b",status="success",type="healthz"} 2
"""
    )
    health.reset()
    assert health.slis().body == b""
