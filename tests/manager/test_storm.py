"""An API server that is away for ten minutes fills no disk with complaints about it."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from steersman.manager.logs import LoggingOptions, handlers
from steersman.sim.faults.requests import ErrorResponse
from steersman.testing.cluster import Cluster

AWAY = 600.0


@contextmanager
def logged(cluster: Cluster) -> Iterator[tuple[io.StringIO, io.StringIO]]:
    """What a manager in a cluster says, in the cluster's time; and all that would be said if each line were written."""
    said, everything = io.StringIO(), io.StringIO()
    (handler,) = handlers(LoggingOptions(), io.StringIO(), said)
    plain = logging.StreamHandler(everything)

    def dated(record: logging.LogRecord) -> bool:
        record.created = cluster.now.timestamp()
        return True

    handler.filters.insert(0, dated)
    log = logging.getLogger("steersman")
    before = log.propagate
    log.propagate = False
    log.addHandler(handler)
    log.addHandler(plain)
    try:
        yield said, everything
    finally:
        log.removeHandler(handler)
        log.removeHandler(plain)
        log.propagate = before


def test_a_server_that_is_away_for_ten_minutes_is_complained_about_now_and_then() -> None:
    with (
        Cluster(seed=3, nodes=1, faults=(ErrorResponse(503, "write", seconds=AWAY),)) as cluster,
        logged(cluster) as (said, everything),
    ):
        cluster.apply(DEPLOYMENT)
        cluster.advance(seconds=AWAY - 1)
        lines, all_lines = (stream.getvalue().splitlines() for stream in (said, everything))
        assert 0 < len(lines) < len(all_lines)
        messages = [line.partition("] ")[2].partition(" repeated=")[0] for line in lines]
        most = max(map(messages.count, messages))
        assert most <= 12, "one complaint is not made more often than this in ten minutes"
        # And then all goes on without a restart.
        cluster.advance(minutes=20)
        assert cluster.get("Deployment", "web").status.replicas == 2


DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: web}]}}
"""
