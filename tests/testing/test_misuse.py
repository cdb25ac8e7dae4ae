"""Mistakes in a test are refused where they are made, by one error that names the way out."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest

from steersman.api.errors import BadRequest
from steersman.sim import faults
from steersman.sim.kubelet import KubeletSettings
from steersman.testing import Cluster, UnusedFault
from tests.testing.test_cluster import CRD, TAB, WEB

ANY: Any = faults
"""The same without types."""


@pytest.fixture(scope="module")
def shared() -> Iterator[Cluster]:
    """Nothing here changes it."""
    with Cluster() as cluster:
        cluster.apply(CRD)
        cluster.apply(WEB)
        yield cluster


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"nodes": -1}, ValueError, "nodes must be 0 or more, not -1"),
        ({"nodes": "node-1"}, TypeError, "nodes must be a number or several names"),
        ({"nodes": ["a", "a"]}, ValueError, "node 'a' is there twice"),
        ({"nodes": ["Node_1"]}, ValueError, "'Node_1' is no name of a node"),
        ({"node": 3}, TypeError, "a cluster has no option 'node'; did you mean 'nodes'?"),
        ({"seed": "7"}, TypeError, "a seed is a whole number, not '7'"),
        ({"controllers": ["deploymnet"]}, LookupError, "did you mean 'deployment'?"),
        ({"controllers": "deployment"}, TypeError, "such as ['deployment'], not one"),
        (
            {"flags": {"node-monitor-grace-perod": 5.0}},
            LookupError,
            "did you mean 'node-monitor-grace-period'?",
        ),
        ({"flags": {"--cluster-cidr": ""}}, LookupError, "did you mean 'cluster-cidr'?"),
        ({"flags": {"leader-elect-x": True}}, LookupError, "unknown flag 'leader-elect-x'"),
        ({"flags": {"node-monitor-grace-period": "40s"}}, TypeError, "must be a number of seconds"),
        ({"flags": {"node-monitor-grace-period": -1}}, ValueError, "must be 0 or more, not -1"),
        ({"flags": {"concurrent-job-syncs": "5"}}, TypeError, "must be a whole number, not '5'"),
        ({"flags": {"concurrent-job-syncs": True}}, TypeError, "must be a whole number, not True"),
        ({"flags": {"allocate-node-cidrs": "true"}}, TypeError, "must be True or False, not 'true'"),
        ({"gates": {"GenericWorklod": True}}, LookupError, "did you mean 'GenericWorkload'?"),
        ({"gates": {"GenericWorkload": "on"}}, TypeError, "must be True or False, not 'on'"),
        ({"start": datetime(2026, 1, 1)}, ValueError, "start must have a time zone"),  # noqa: DTZ001
        ({"settings": KubeletSettings(start_delay=-1)}, ValueError, "start_delay of the kubelets must be"),
        ({"write_latency": (0.3, 0.001)}, ValueError, "must be seconds in order"),
        ({"faults": ["crash_after_write(3)"]}, TypeError, "faults.parse() reads text"),
        ({"faults": [faults.crash_after_write]}, TypeError, "a fault is a value such as"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_options_that_cannot_work_are_refused(options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        Cluster(**options)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda c: c.advance(seconds=-5), ValueError, "seconds must be 0 or more, not -5"),
        (lambda c: c.advance(days=float("nan")), ValueError, "days must be 0 or more"),
        (lambda c: c.advance(hours="2"), TypeError, "hours must be a number, not '2'"),
        (lambda c: c.settle(-1), ValueError, "horizon must be 0 or more"),
        (lambda c: c.settle(limit=float("inf")), ValueError, "limit must be 0 or more"),
        (lambda c: c.wait_until(lambda: True, timeout=-1), ValueError, "timeout must be 0 or more"),
        (lambda c: c.wait_until(True), TypeError, "such as a lambda, not True"),
        (lambda c: c.serve(speed=0), ValueError, "speed must be above 0"),
        (lambda c: c.node("node-4"), LookupError, "no node 'node-4'; did you mean 'node-"),
        (lambda c: c.node("node-1").set_devices(-1), ValueError, "count must be 0 or more"),
        (lambda c: c.scale("deploy", "web", -1), ValueError, "replicas must be 0 or more"),
        (lambda c: c.get("Deploymnet", "web"), LookupError, "did you mean 'Deployment'?"),
        (lambda c: c.list("crontasb"), LookupError, "did you mean 'crontab'?"),
        (lambda c: c.list("zzz"), LookupError, "is its CustomResourceDefinition applied?"),
        (lambda c: c.apply({"apiVersion": "v1", "kind": "Deployment"}), LookupError, "apiVersion 'apps/v1'?"),
        (lambda c: c.apply({"apiVersion": "v1", "kind": "Podd"}), LookupError, "did you mean 'Pod'?"),
        (lambda c: c.delete("Deployment"), TypeError, "the name is missing"),
        (lambda c: c.delete("deploy", "web", propagation="foreground"), ValueError, "'Foreground'?"),
        (lambda c: c.delete("deploy", "web", grace=-1), ValueError, "grace must be 0 or more"),
        (lambda c: c.patch("deploy", "web", "x"), TypeError, "a patch is a document or a list"),
    ],
    ids=lambda value: "",
)
def test_calls_that_cannot_work_are_refused(
    shared: Cluster, call: Callable[[Any], object], error: type[Exception], message: str
) -> None:
    before = shared.now
    with pytest.raises(error) as caught:
        call(shared)
    assert message in str(caught.value)
    assert shared.now == before


PODS = {"spec": {"template": {"spec": {"containers": [{"name": "web", "imgae": "web:v2"}]}}}}


@pytest.mark.parametrize(
    ("body", "subresource", "message"),
    [
        ({"spec": {"replicsa": 4}}, "", "unknown field \"spec.replicsa\"; did you mean 'replicas'?"),
        (PODS, "", "unknown field \"spec.template.spec.containers[0].imgae\"; did you mean 'image'?"),
        ({"spec": {"replica": 4}}, "scale", "unknown field \"spec.replica\"; did you mean 'replicas'?"),
        ([{"op": "add", "path": "/spec/replicsa", "value": 3}], "", "did you mean 'replicas'?"),
        ({"zzz": 1}, "", 'unknown field "zzz"'),
    ],
)
def test_a_patch_has_the_fields_of_its_kind(
    shared: Cluster, body: Any, subresource: str, message: str
) -> None:
    with pytest.raises(BadRequest) as caught:
        shared.patch("deploy", "web", body, subresource=subresource)
    assert message in str(caught.value)


def test_directives_maps_and_open_schemas_are_no_unknown_fields(shared: Cluster) -> None:
    with shared.fork() as cluster:
        cluster.patch("deploy", "web", {"metadata": {"labels": {"any": "thing"}}})
        cluster.patch("deploy", "web", [{"op": "add", "path": "/metadata/labels/a~1b", "value": "c"}])
        gone = {"$patch": "delete", "name": "web"}
        other = {"name": "other", "image": "o:v1"}
        cluster.patch("deploy", "web", {"spec": {"template": {"spec": {"containers": [gone, other]}}}})
        cluster.apply(TAB)
        cluster.patch("crontab", "a", {"spec": {"whatever": 1}})
        assert cluster.get("deploy", "web").metadata.labels == {"any": "thing", "a/b": "c"}


def test_an_object_is_created_with_the_fields_of_its_kind(shared: Cluster) -> None:
    with pytest.raises(BadRequest, match="unknown field"):
        shared.create(WEB.replace("replicas", "replicaz").replace("name: web}\nspec", "name: other}\nspec"))
    with pytest.raises(BadRequest, match="unknown field"):
        shared.apply(WEB.replace("replicas", "replicaz"), server_side=False)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: faults.crash_after_write(0), ValueError, "crash_after_write: n counts from 1, not 0"),
        (lambda: faults.crash_after_write(1, down=-1), ValueError, "down must be a time in seconds"),
        (lambda: ANY.crash_after_write("3"), TypeError, "n must be a whole number, not '3'"),
        (lambda: faults.crash_after_write(True), TypeError, "n must be a whole number, not True"),
        (lambda: faults.frozen_watch("Pod", 30), ValueError, "unknown kind 'Pod'; did you mean 'pods'?"),
        (lambda: faults.frozen_watch("deploy", 30), ValueError, "did you mean 'deployments'?"),
        (lambda: faults.frozen_watch("podz", 30), ValueError, "did you mean 'pods'?"),
        (lambda: faults.frozen_watch("pods", -1), ValueError, "seconds must be a time in seconds"),
        (lambda: faults.error_response(200), ValueError, "400 to 599, not 200"),
        (lambda: faults.error_response(500, verb="creat"), ValueError, "did you mean 'create'?"),
        (lambda: faults.error_response(500, times=0), ValueError, "times counts from 1, not 0"),
        (lambda: faults.clock_rate(0), ValueError, "rate must be above 0"),
        (lambda: ANY.crash_after_write(1, secs=3), TypeError, "secs"),
        (lambda: faults.parse("crash_after_wirte(1)"), faults.InvalidFault, "'crash_after_write'?"),
        (lambda: faults.parse("watch_cut(pods, dwon=1)"), faults.InvalidFault, "its form is watch_cut(kind"),
        (lambda: faults.parse("watch_cut(podz)"), faults.InvalidFault, "watch_cut(podz): unknown kind"),
    ],
    ids=lambda value: "",
)
def test_faults_that_could_never_strike_are_refused(
    make: Callable[[], object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as caught:
        make()
    assert message in str(caught.value)


def test_faults_of_custom_resources_and_of_clocks_that_go_back_are_fine() -> None:
    assert faults.frozen_watch("widgets.example.com", 3).kind == "widgets.example.com"
    assert faults.clock_jump(-3600).seconds == -3600


# -- faults that never struck -----------------------------------------------------------------


def test_a_fault_that_never_struck_is_a_warning() -> None:
    early, late = faults.crash_after_write(2), faults.crash_after_write(5000)

    def play() -> None:
        with Cluster(faults=[early, late], write_latency=(0.0, 0.0)) as cluster:
            assert set(cluster.unused_faults) == {early, late}
            cluster.apply(WEB)
            cluster.settle()
            assert set(cluster.unused_faults) == {late}

    with pytest.warns(UnusedFault, match=r"^never struck: crash_after_write\(5000\)$"):
        play()


def test_faults_of_a_served_cluster_that_did_not_strike_before_never_will() -> None:
    late = faults.crash_after_write(1)
    cluster = Cluster(faults=[late])
    cluster.serve()
    assert cluster.unused_faults == (late,)
    cluster.close()


def test_faults_that_struck_and_a_test_that_failed_are_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with Cluster(faults=[faults.clock_rate(1.5), faults.crash_after_write(1)]) as cluster:
            cluster.apply(WEB)
            cluster.settle()
        with pytest.raises(ZeroDivisionError), Cluster(faults=[faults.crash_after_write(1)]):
            raise ZeroDivisionError
