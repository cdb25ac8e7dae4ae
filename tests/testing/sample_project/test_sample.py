"""A user's tests, type-checked by `tests/testing/test_types.py` and never run."""

from __future__ import annotations

from datetime import datetime
from typing import Any, assert_type

import pytest
from operator_under_test import scale_down_at_night

from steersman.api.generated import apps_v1, core_v1
from steersman.api.kinds import PODS, Pod
from steersman.sim import faults
from steersman.testing import Cluster, ClusterOptions, Entry, Manager, Node

SMALL: ClusterOptions = {"nodes": 1, "controllers": ["deployment", "replicaset"]}


@pytest.mark.cluster(nodes=2, faults=[faults.crash_after_write(2)], strict_faults=True)
def test_reads_have_the_type_of_their_kind(cluster: Cluster) -> None:
    assert_type(cluster.get("Deployment", "web"), apps_v1.Deployment)
    assert_type(cluster.get("deploy", "web"), apps_v1.Deployment)
    assert_type(cluster.get("deployments.apps", "web").spec.replicas, int | None)
    assert_type(cluster.list("pods"), list[core_v1.Pod])
    assert_type(cluster.list("po", selector="app=web")[0].spec.nodeName, str)
    assert_type(cluster.get("svc", "web").spec.clusterIP, str)
    assert_type(cluster.list(core_v1.ConfigMap), list[core_v1.ConfigMap])
    assert_type(cluster.list(PODS), list[Pod])
    assert_type(cluster.get("widgets", "one"), Any)
    assert_type(cluster.events(), list[core_v1.Event])
    assert_type(cluster.node("node-1"), Node)
    assert_type(cluster.node("node-1").pods, list[core_v1.Pod])
    assert_type(cluster.history(), list[Entry])
    assert_type(cluster.now, datetime)
    assert_type(cluster.manager, Manager)
    assert_type(cluster.wait_until(lambda: cluster.list("pods")), list[core_v1.Pod])


async def test_coroutines(cluster: Cluster) -> None:
    cluster.spawn(scale_down_at_night(cluster.client, "default"))
    await cluster.aio.advance(days=2)
    assert_type(await cluster.client.get("pods", "default", "a"), core_v1.Pod)
    assert_type((await cluster.client.list("Job")).items[0].spec.backoffLimit, int | None)


def test_without_the_fixture() -> None:
    with Cluster(seed=7, **SMALL) as cluster:
        assert_type(cluster, Cluster)


def mistakes(cluster: Cluster) -> None:
    assert cluster.get("Deployment", "web").spec.replicsa  # type: ignore[attr-defined]
    assert cluster.list("pods")[0].status.phase + 1  # type: ignore[operator]
    cluster.advance(secs=3)  # type: ignore[call-arg]
    cluster.delete("Deployment", "web", propagation="foreground")  # type: ignore[arg-type]
    Cluster(knots=3)  # type: ignore[call-arg]
    Cluster(nodes=1.5)  # type: ignore[arg-type]
