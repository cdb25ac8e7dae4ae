"""Volumes of pods in scheduling: rows of claims and volumes, and what becomes of the pod."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from steersman.api.generated import core_v1 as v1
from steersman.sim.scheduler.filters import BIND_CONFLICT, NODE_CONFLICT, ZONE_CONFLICT
from steersman.sim.scheduler.node_info import NodeInfo, NodeInfos, pod_info
from steersman.sim.scheduler.placement import Ranking, Scheduled, Unschedulable
from steersman.sim.scheduler.volumes import (
    EXCEEDED,
    IN_USE,
    UNBOUND,
    PodClaims,
    PodVolumes,
    check_claims,
    filter_volumes,
    find_matching_volume,
)
from tests.harness.storage_objects import SELECTED, Storage, claim, node, pod, storage_class, volume

ZONE = "topology.kubernetes.io/zone"


def deleted(found: v1.PersistentVolumeClaim) -> v1.PersistentVolumeClaim:
    stamp = datetime(2026, 1, 1, tzinfo=UTC)
    return replace(found, metadata=replace(found.metadata, deletionTimestamp=stamp))


@pytest.mark.parametrize(
    ("what", "new", "objects", "why"),
    [
        ("it does not exist", pod("p", "c"), (), 'persistentvolumeclaim "c" not found'),
        (
            "one of two does not exist",
            pod("p", "c", "d"),
            (claim("c", "pv"), volume(claim="c")),
            'persistentvolumeclaim "d" not found',
        ),
        (
            "it is ephemeral and does not exist yet",
            pod("p", ephemeral=("tmp",)),
            (),
            'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-tmp"',
        ),
        (
            "it is ephemeral and another pod's",
            pod("p", ephemeral=("tmp",)),
            (claim("p-tmp", owner="q"),),
            "PVC default/p-tmp was not created for pod default/p (pod is not owner)",
        ),
        (
            "it has lost its volume",
            pod("p", "c"),
            (claim("c", "pv", phase="Lost"),),
            'persistentvolumeclaim "c" bound to non-existent persistentvolume "pv"',
        ),
        (
            "it is being deleted",
            pod("p", "c"),
            (deleted(claim("c", "pv")),),
            'persistentvolumeclaim "c" is being deleted',
        ),
        ("it is to be bound at once", pod("p", "c"), (claim("c", sc="now"),), UNBOUND),
        ("it has no class", pod("p", "c"), (claim("c", sc=""),), UNBOUND),
        ("its class does not exist", pod("p", "c"), (claim("c", sc="gone"),), UNBOUND),
        ("a user has bound it half", pod("p", "c"), (claim("c", "pv", bound=False),), UNBOUND),
        (
            "one of two is to be bound at once",
            pod("p", "c", "d"),
            (claim("c", "pv"), claim("d", sc="now"), volume(claim="c")),
            UNBOUND,
        ),
        ("its volume does not exist", pod("p", "c"), (claim("c", "pv"),), 'persistentvolume "pv" not found'),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_no_node_is_considered_for_a_pod_with_a_claim(
    what: str, new: v1.Pod, objects: tuple[Any, ...], why: str
) -> None:
    assert check_claims(pod_info(new), Storage(*objects), ()) == why


def test_claims_are_bound_or_wait_for_the_pod_the_smallest_first() -> None:
    large, small, bound = claim("large", size="5Gi"), claim("small"), claim("bound", "pv")
    held = volume(claim="bound")
    found = check_claims(
        pod_info(pod("p", "large", "small", "bound")), Storage(large, small, bound, held), ()
    )
    assert found == PodClaims(((bound, held),), (small, large), {"wait": (held,)})


def test_an_ephemeral_claim_of_the_pod_waits_for_it() -> None:
    own = claim("p-tmp", owner="p")
    found = check_claims(pod_info(pod("p", ephemeral=("tmp",))), Storage(own), ())
    assert isinstance(found, PodClaims)
    assert found.unbound == (own,)


# -- one node ---------------------------------------------------------------------------------

Result = PodVolumes | tuple[str, ...]


def filtered(new: v1.Pod, storage: Storage, *others: v1.Pod, labels: dict[str, str] | None = None) -> Result:
    node_info = NodeInfo(node("a", **(labels or {})), 1)
    for other in others:
        node_info.add(pod_info(other))
    claims = check_claims(pod_info(new), storage, node_info.pods.values())
    assert isinstance(claims, PodClaims), claims
    return filter_volumes(pod_info(new), claims, node_info, storage)


FREE, SMALL, FAR = volume("free"), volume("small", size="1Mi"), volume("far", node="b")


@pytest.mark.parametrize(
    ("what", "objects", "expected"),
    [
        ("bound", (claim("c", "pv"), volume(claim="c")), PodVolumes()),
        ("bound, for this node", (claim("c", "pv"), volume(claim="c", node="a")), PodVolumes()),
        ("bound, for another node", (claim("c", "pv"), volume(claim="c", node="b")), (NODE_CONFLICT,)),
        ("a volume is free", (claim("c"), FREE), PodVolumes(((claim("c"), FREE),))),
        ("the free volume is too small", (claim("c"), SMALL), PodVolumes((), (claim("c"),))),
        ("the free volume is elsewhere", (claim("c"), FAR), PodVolumes((), (claim("c"),))),
        ("to be provisioned", (claim("c"),), PodVolumes((), (claim("c"),))),
        (
            "to be provisioned on this node",
            (claim("c", selected="a"), FREE),
            PodVolumes((), (claim("c", selected="a"),)),
        ),
        ("to be provisioned on another node", (claim("c", selected="b"), FREE), (BIND_CONFLICT,)),
        ("nothing provisions it", (claim("c", sc="static"),), (BIND_CONFLICT,)),
        (
            "nothing provisions it, and the volume is elsewhere",
            (claim("c", sc="static"), volume(sc="static", node="b")),
            (BIND_CONFLICT,),
        ),
        (
            "the class has no volumes in this zone",
            (
                claim("c", sc="zonal"),
                storage_class(
                    "zonal",
                    allowedTopologies=[{"matchLabelExpressions": [{"key": "host", "values": ["b"]}]}],
                ),
            ),
            (BIND_CONFLICT,),
        ),
        (
            "the class has volumes in this zone",
            (
                claim("c", sc="zonal"),
                storage_class(
                    "zonal",
                    allowedTopologies=[
                        {"matchLabelExpressions": [{"key": "host", "values": ["b"]}]},
                        {"matchLabelExpressions": [{"key": "host", "values": ["a", "c"]}]},
                    ],
                ),
            ),
            PodVolumes((), (claim("c", sc="zonal"),)),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_node_fits_the_claim_of_a_pod(what: str, objects: tuple[Any, ...], expected: Result) -> None:
    assert filtered(pod("p", "c"), Storage(*objects)) == expected


def test_two_claims_get_two_volumes_the_smaller_one_the_smaller() -> None:
    large, small = claim("large", size="2Gi"), claim("small")
    two, one = volume("two", size="2Gi"), volume("one")
    found = filtered(pod("p", "large", "small"), Storage(large, small, two, one))
    assert found == PodVolumes(((small, one), (large, two)))


def test_one_volume_is_not_bound_to_two_claims() -> None:
    first, second = claim("first"), claim("second")
    found = filtered(pod("p", "first", "second"), Storage(first, second, FREE))
    assert found == PodVolumes(((first, FREE),), (second,))


def test_all_reasons_about_bound_and_unbound_claims_are_reported() -> None:
    objects = (claim("c", "pv"), volume(claim="c", node="b"), claim("d", sc="static"))
    assert filtered(pod("p", "c", "d"), Storage(*objects)) == (NODE_CONFLICT, BIND_CONFLICT)


@pytest.mark.parametrize(
    ("what", "labels", "node_labels", "expected"),
    [
        ("the same zone", {ZONE: "x"}, {ZONE: "x"}, PodVolumes()),
        ("another zone", {ZONE: "y"}, {ZONE: "x"}, (ZONE_CONFLICT,)),
        ("one of its zones", {ZONE: "y__x"}, {ZONE: "x"}, PodVolumes()),
        ("a node without zones", {ZONE: "y"}, {}, PodVolumes()),
        ("the beta label", {"failure-domain.beta.kubernetes.io/zone": "y"}, {ZONE: "x"}, (ZONE_CONFLICT,)),
        ("another label", {"color": "red"}, {ZONE: "x"}, PodVolumes()),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_zone_labels_of_volumes_restrict_nodes(
    what: str, labels: dict[str, str], node_labels: dict[str, str], expected: Result
) -> None:
    storage = Storage(claim("c", "pv"), volume(claim="c", labels=labels))
    assert filtered(pod("p", "c"), storage, labels=node_labels) == expected


# -- matching ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "wanted", "available", "expected"),
    [
        ("the smallest", claim(), (volume("big", size="9Gi"), volume("fit", size="2Gi")), "fit"),
        ("the first of equals", claim(), (volume("one"), volume("two")), "one"),
        ("not too small", claim(size="3Gi"), (volume("one"), volume("four", size="4Gi")), "four"),
        ("not another class", claim(), (volume("other", sc="now"),), None),
        ("not another claim's", claim(), (volume("taken", claim="other"),), None),
        (
            "its own before smaller ones",
            claim(),
            (volume("one"), volume("own", size="9Gi", claim="data")),
            "own",
        ),
        ("its own by name", claim(), (volume("own", claim="data", uid=""),), "own"),
        ("not that of an older claim", claim(), (volume("old", claim="data", uid="older"),), None),
        ("not its own elsewhere", claim(), (volume("one"), volume("own", claim="data", node="b")), None),
        ("not one that is not available", claim(), (volume("released", phase="Released"),), None),
        ("not another mode", claim(volumeMode="Block"), (volume("file"),), None),
        ("the same mode", claim(volumeMode="Block"), (volume("block", volumeMode="Block"),), "block"),
        ("a file system by default", claim(), (volume("file", volumeMode="Filesystem"),), "file"),
        ("not fewer access modes", claim(modes=("ReadWriteMany",)), (volume("once"),), None),
        (
            "more access modes",
            claim(),
            (volume("many", modes=("ReadWriteMany", "ReadWriteOnce")),),
            "many",
        ),
        (
            "by labels",
            claim(selector={"matchLabels": {"disk": "ssd"}}),
            (volume("hdd", labels={"disk": "hdd"}), volume("ssd", labels={"disk": "ssd"})),
            "ssd",
        ),
        ("not another attributes class", claim(volumeAttributesClassName="gold"), (volume("plain"),), None),
        ("not elsewhere", claim(), (volume("far", node="b"),), None),
        ("here", claim(), (volume("far", node="b"), volume("near", size="2Gi", node="a")), "near"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_claim_is_matched_with(
    what: str,
    wanted: v1.PersistentVolumeClaim,
    available: tuple[v1.PersistentVolume, ...],
    expected: str | None,
) -> None:
    found = find_matching_volume(wanted, available, {"host": "a"})
    assert (found.metadata.name if found is not None else None) == expected


def test_an_excluded_volume_and_one_that_is_being_deleted_are_not_matched() -> None:
    assert find_matching_volume(claim(), (FREE,), {"host": "a"}, {"free"}) is None
    gone = deleted(claim()).metadata.deletionTimestamp
    going = replace(FREE, metadata=replace(FREE.metadata, deletionTimestamp=gone))
    assert find_matching_volume(claim(), (going,), {"host": "a"}) is None


# -- limits -----------------------------------------------------------------------------------


def disks(*names: str, driver: str = "disk") -> tuple[Any, ...]:
    """Claims that are bound to volumes of a CSI driver."""
    claims = [claim(name, f"pv-{name}") for name in names]
    return (*claims, *(volume(f"pv-{name}", claim=name, driver=driver) for name in names))


NEW = storage_class("new", provisioner="disk")


@pytest.mark.parametrize(
    ("what", "new", "others", "storage", "fits"),
    [
        ("room for one", pod("p", "a"), (), Storage(*disks("a"), limits={"disk": 1}), True),
        (
            "one is there",
            pod("p", "a"),
            (pod("q", "b"),),
            Storage(*disks("a", "b"), limits={"disk": 1}),
            False,
        ),
        (
            "one is there, of another driver",
            pod("p", "a"),
            (pod("q", "b"),),
            Storage(*disks("a"), *disks("b", driver="other"), limits={"disk": 1, "other": 1}),
            True,
        ),
        (
            "the same volume is there",
            pod("p", "a"),
            (pod("q", "a"),),
            Storage(*disks("a"), limits={"disk": 1}),
            True,
        ),
        ("two at once", pod("p", "a", "b"), (), Storage(*disks("a", "b"), limits={"disk": 1}), False),
        ("no limit", pod("p", "a", "b"), (), Storage(*disks("a", "b"), limits={}), True),
        ("no CSINode", pod("p", "a", "b"), (), Storage(*disks("a", "b")), True),
        (
            "not provisioned yet",
            pod("p", "a"),
            (pod("q", "b"),),
            Storage(claim("a", sc="new"), *disks("b"), NEW, limits={"disk": 1}),
            False,
        ),
        (
            "one is attached without a pod",
            pod("p", "a"),
            (),
            Storage(*disks("a", "b"), limits={"disk": 1}, attached=("pv-b",)),
            False,
        ),
        (
            "it is attached already",
            pod("p", "a"),
            (),
            Storage(*disks("a"), limits={"disk": 1}, attached=("pv-a",)),
            True,
        ),
        (
            "a pod whose claim is gone",
            pod("p", "a"),
            (pod("q", "gone"),),
            Storage(*disks("a"), limits={"disk": 1}),
            True,
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_node_takes_as_many_volumes_as_its_drivers_allow(
    what: str, new: v1.Pod, others: tuple[v1.Pod, ...], storage: Storage, fits: bool
) -> None:
    found = filtered(new, storage, *others)
    assert (found != (EXCEEDED,)) is fits


def test_a_driver_may_have_to_be_installed() -> None:
    missing = Storage(*disks("a"), limits={}, required=True)
    assert filtered(pod("p", "a"), missing) == ("disk CSI driver is not installed on the node",)
    installed = Storage(*disks("a"), limits={"disk": 1}, required=True)
    assert filtered(pod("p", "a"), installed) == PodVolumes()


def test_a_claim_for_one_pod_is_not_used_by_two() -> None:
    single = claim("c", "pv", modes=("ReadWriteOncePod",))
    storage = Storage(single, volume(claim="c"))
    assert filtered(pod("p", "c"), storage) == PodVolumes()
    assert filtered(pod("p", "c"), storage, pod("q", "c")) == (IN_USE,)


# -- placement --------------------------------------------------------------------------------


def place(new: v1.Pod, storage: Storage, *names: str) -> Scheduled | Unschedulable:
    node_infos = NodeInfos()
    for name in names:
        node_infos.put_node(node(name))
    info = pod_info(new)
    claims = check_claims(info, storage, ())
    assert isinstance(claims, PodClaims)
    return Ranking(node_infos).schedule(
        info, lambda node_info: filter_volumes(info, claims, node_info, storage)
    )


def test_a_pod_goes_where_its_volume_is() -> None:
    storage = Storage(claim("c", "pv"), volume(claim="c", node="b"))
    assert place(pod("p", "c"), storage, "a", "b") == Scheduled("b")


def test_a_pod_goes_to_the_node_that_is_selected_for_its_claim() -> None:
    wanted = claim("c", selected="b")
    assert SELECTED in wanted.metadata.annotations
    found = place(pod("p", "c"), Storage(wanted), "a", "b")
    assert found == Scheduled("b", PodVolumes((), (wanted,)))


def test_a_pod_without_a_node_is_told_why_and_that_preemption_does_not_help() -> None:
    storage = Storage(claim("c", "pv"), volume(claim="c", node="elsewhere"))
    found = place(pod("p", "c"), storage, "a", "b")
    assert isinstance(found, Unschedulable)
    assert found.message == f"0/2 nodes are available: 2 {NODE_CONFLICT}."
    helpful = "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    assert found.preemption_message == helpful


def test_a_refused_claim_is_the_whole_message() -> None:
    refused = Unschedulable({"a": (UNBOUND,), "b": (UNBOUND,)}, UNBOUND)
    assert refused.message == "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims."
    assert refused.preemption_message.endswith("2 Preemption is not helpful for scheduling.")
