"""A month of CronJobs: nights go by in milliseconds, the clocks go forward, and one report hangs.

A hundred schedules that nobody has seen fire are a hundred guesses. Here they fire by the cluster's own clock,
in the time zone they name, on nodes that take as long for a Job as its command says.
"""

from datetime import UTC, datetime
from typing import Any

from steersman.testing import Cluster


def nightly(name: str, schedule: str, seconds: int, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "report:v1", "command": ["sleep", str(seconds)]}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name},
        "spec": {"schedule": schedule, **spec, "jobTemplate": {"spec": {"template": template}}},
    }


def starts(cluster: Cluster, name: str) -> list[datetime]:
    """When it has started a Job."""
    return [entry.at for entry in cluster.history("CronJob", name) if "SuccessfulCreate" in entry.description]


def test_every_night_of_a_month_has_its_report(cluster: Cluster) -> None:
    cluster.apply(nightly("report", "0 3 * * *", 90))

    cluster.advance(days=30)

    nights = starts(cluster, "report")
    assert len(nights) == 30
    assert {(night.hour, night.minute, night.second) for night in nights} == {(3, 0, 0)}
    assert len(cluster.list("Job")) == 3, "the last three are kept, unless it says otherwise"


def test_a_report_that_hangs_holds_up_those_after_it_or_makes_room_for_them(cluster: Cluster) -> None:
    three_days = 3 * 24 * 3600
    cluster.apply(nightly("patient", "0 3 * * *", three_days, concurrencyPolicy="Forbid"))
    cluster.apply(nightly("restless", "0 3 * * *", three_days, concurrencyPolicy="Replace"))

    cluster.advance(days=30)

    patient, restless = cluster.get("CronJob", "patient"), cluster.get("CronJob", "restless")
    assert 7 <= len(starts(cluster, "patient")) <= 10, "one every third or fourth night"
    assert patient.status.lastSuccessfulTime is not None
    assert len(starts(cluster, "restless")) == 30
    assert restless.status.lastSuccessfulTime is None, "and none of them came to an end"
    assert len(restless.status.active) == 1


def test_a_night_without_half_past_two_has_no_report(cluster: Cluster) -> None:
    # In March 2026 New York goes from 2:00 to 3:00 in the night to the eighth.
    cluster.advance(seconds=(datetime(2026, 3, 1, tzinfo=UTC) - cluster.now).total_seconds())
    cluster.apply(nightly("report", "30 2 * * *", 90, timeZone="America/New_York"))

    cluster.advance(days=30)

    nights = starts(cluster, "report")
    assert len(nights) == 29
    assert [night.day for night in nights][:9] == [1, 2, 3, 4, 5, 6, 7, 9, 10]
    assert [night.hour for night in nights][6:8] == [7, 6], "an hour earlier by everybody else's clock"
