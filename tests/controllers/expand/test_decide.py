"""persistentvolume-expander: upstream's rows, FlexVolumes, and claims that grow in a cluster."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from steersman.api.errors import ApiError, Conflict, Forbidden, NotFound
from steersman.api.kinds import Condition, ObjectMeta, ObjectReference
from steersman.api.kinds.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
    PersistentVolumeSpec,
    VolumeResourceRequirements,
)
from steersman.api.kinds.volume_sources import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    AzureFilePersistentVolumeSource,
    CinderPersistentVolumeSource,
    CSIPersistentVolumeSource,
    FlexPersistentVolumeSource,
    GCEPersistentDiskVolumeSource,
    HostPathVolumeSource,
    NFSVolumeSource,
    PortworxVolumeSource,
    VsphereVirtualDiskVolumeSource,
)
from steersman.api.scheme import Key
from steersman.controllers.expand import RESIZER, controller
from steersman.controllers.expand.resize import (
    CONTROLLER_IN_PROGRESS,
    FILE_SYSTEM_PENDING,
    NODE_IN_PROGRESS,
    NODE_INFEASIBLE,
    NODE_PENDING,
    PRE_RESIZE_CAPACITY,
    RESIZING,
)
from steersman.controllers.shared.volumes import OPERATION_SECONDS
from steersman.intent.actions import Action, Emit, Patch, Read, UpdateStatus
from steersman.intent.controller import Change
from steersman.intent.metrics import Measure
from steersman.intent.verdict import InvalidSpec
from steersman.testing.cluster import Cluster
from steersman.testing.decision_driver import USUAL, StaticCaches, walk
from tests.harness import volumes

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
EBS: dict[str, Any] = {"awsElasticBlockStore": AWSElasticBlockStoreVolumeSource(volumeID="vol")}
CEPH: dict[str, Any] = {"csi": CSIPersistentVolumeSource(driver="com.csi.ceph", volumeHandle="vol")}
FLEX: dict[str, Any] = {"flexVolume": FlexPersistentVolumeSource(driver="example.com/flex")}


def claim(
    requested: str = "2Gi", capacity: str = "1Gi", *, phase: str = "Bound", **status: Any
) -> PersistentVolumeClaim:
    return PersistentVolumeClaim(
        metadata=ObjectMeta(name="data", namespace="shop", uid="claim-uid", resourceVersion="7"),
        spec=PersistentVolumeClaimSpec(
            volumeName="disk", resources=VolumeResourceRequirements(requests={"storage": requested})
        ),
        status=PersistentVolumeClaimStatus(phase=phase, capacity={"storage": capacity}, **status),
    )


def volume(
    capacity: str = "1Gi", *, before: str = "", owner: str = "claim-uid", namespace: str = "shop", **spec: Any
) -> PersistentVolume:
    """A volume that is bound to the claim of a uid; ``before`` is the capacity before a resize."""
    annotations = {PRE_RESIZE_CAPACITY: before} if before else {}
    return PersistentVolume(
        metadata=ObjectMeta(name="disk", uid="disk-uid", annotations=annotations),
        spec=PersistentVolumeSpec(
            capacity={"storage": capacity},
            claimRef=ObjectReference(namespace=namespace, name="data", uid=owner),
            **(spec or EBS),
        ),
    )


class Round:
    """One round of a claim: its writes, events and error. ``cached`` is the volume in the cache, ``live`` the other."""

    def __init__(
        self,
        found: PersistentVolumeClaim,
        live: PersistentVolume | ApiError,
        cached: PersistentVolume | None = None,
        refusals: dict[type[Action[Any]], ApiError] | None = None,
    ) -> None:
        caches = StaticCaches(controller, found, *(() if cached is None else (cached,)))
        seen = controller.see(caches, found.key)
        assert seen is not None
        self.actions: list[Action[Any]] = []
        self.error: Exception | None = None

        def answer(action: Action[Any]) -> Any:
            if isinstance(action, Read):
                return live
            return (refusals or {}).get(type(action), USUAL)

        try:
            walk(controller.decide(seen, NOW), answer, recorded=self.actions)
        except (ApiError, InvalidSpec) as error:
            self.error = error

    def of(self, *types: type[Action[Any]]) -> list[Any]:
        return [each for each in self.actions if isinstance(each, types)]

    @property
    def reads(self) -> int:
        return len(self.of(Read))

    @property
    def statuses(self) -> list[PersistentVolumeClaimStatus]:
        return [each.status for each in self.of(UpdateStatus)]

    @property
    def resizers(self) -> list[str]:
        return [each.annotations[RESIZER] for each in self.of(UpdateStatus) if each.annotations is not None]

    @property
    def patches(self) -> list[Any]:
        return [each.body for each in self.of(Patch)]

    @property
    def events(self) -> list[tuple[str, str, str]]:
        return [(each.type, each.reason, each.message) for each in self.of(Emit)]


WAITING = ("Normal", "ExternalExpanding", "waiting for an external controller to expand this PVC")


def migrated(plugin: str) -> tuple[str, str, str]:
    message = f"CSI migration enabled for {plugin}; waiting for external resizer to expand the pvc"
    return "Normal", "ExternalExpanding", message


# -- upstream's rows ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "live", "resizers", "events", "error"),
    [
        (
            replace(claim("1Gi"), spec=PersistentVolumeClaimSpec()),
            NotFound("no volume"),
            [],
            [],
            "claim shop/data is bound and names no volume",
        ),
        (claim(), volume(), ["ebs.csi.aws.com"], [migrated("kubernetes.io/aws-ebs")], None),
        (
            claim("2Gi", "2Gi"),
            volume("2Gi", before="1Gi"),
            ["ebs.csi.aws.com"],
            [migrated("kubernetes.io/aws-ebs")],
            None,
        ),
        (claim(), volume(**CEPH), [], [WAITING], None),
        (claim(), NotFound("not found"), [], [], 'failed to get PV "disk": not found'),
        (
            claim(),
            volume(owner="another"),
            [],
            [],
            "persistent Volume is not bound to PVC being updated : shop/data",
        ),
        (
            claim(),
            volume(namespace="other"),
            [],
            [],
            "persistent Volume is not bound to PVC being updated : shop/data",
        ),
        (
            claim(),
            replace(volume(), spec=replace(volume().spec, claimRef=None)),
            [],
            [],
            "persistent Volume is not bound to PVC being updated : shop/data",
        ),
        (claim("1Gi"), volume(), [], [], None),
        (claim("1Gi", "2Gi"), volume("2Gi"), [], [], None),
        (claim(), volume(hostPath=HostPathVolumeSource(path="/disk")), [], [WAITING], None),
        (claim(), volume(nfs=NFSVolumeSource(server="nfs", path="/")), [], [WAITING], None),
        (claim("2Gi", "2Gi"), volume("2Gi", before="1Gi", **CEPH), [], [WAITING], None),
    ],
    ids=[
        "no volume",
        "in-tree plugin",
        "in-tree plugin, the node has not resized yet",
        "CSI",
        "the volume is gone",
        "the volume is bound to an earlier claim",
        "the volume is bound to a claim of another namespace",
        "the volume is not bound",
        "nothing is requested",
        "the request was lowered",
        "host path",
        "NFS",
        "CSI, the node has not resized yet",
    ],
)
def test_a_claim_is_handed_over(
    found: PersistentVolumeClaim,
    live: PersistentVolume | ApiError,
    resizers: list[str],
    events: list[tuple[str, str, str]],
    error: str | None,
) -> None:
    """The first four are upstream's."""
    round_ = Round(found, live)
    assert round_.resizers == resizers
    assert round_.events == events
    assert (str(round_.error) if round_.error is not None else None) == error
    assert round_.patches == []


@pytest.mark.parametrize(
    ("source", "plugin", "driver"),
    [
        (EBS, "aws-ebs", "ebs.csi.aws.com"),
        ({"azureDisk": AzureDiskVolumeSource(diskURI="d")}, "azure-disk", "disk.csi.azure.com"),
        ({"azureFile": AzureFilePersistentVolumeSource(shareName="s")}, "azure-file", "file.csi.azure.com"),
        ({"cinder": CinderPersistentVolumeSource(volumeID="v")}, "cinder", "cinder.csi.openstack.org"),
        ({"gcePersistentDisk": GCEPersistentDiskVolumeSource(pdName="p")}, "gce-pd", "pd.csi.storage.gke.io"),
        ({"portworxVolume": PortworxVolumeSource(volumeID="v")}, "portworx-volume", "pxd.portworx.com"),
        (
            {"vsphereVolume": VsphereVirtualDiskVolumeSource(volumePath="v")},
            "vsphere-volume",
            "csi.vsphere.vmware.com",
        ),
    ],
)
def test_each_in_tree_plugin_has_a_csi_driver(source: dict[str, Any], plugin: str, driver: str) -> None:
    round_ = Round(claim(), volume(**source))
    assert round_.resizers == [driver]
    assert round_.events == [migrated(f"kubernetes.io/{plugin}")]
    assert round_.statuses == [claim().status]


@pytest.mark.parametrize(("source", "resizer"), [(EBS, "ebs.csi.aws.com"), (FLEX, "example.com/flex")])
def test_other_annotations_of_the_claim_stay(source: dict[str, Any], resizer: str) -> None:
    noted = replace(claim(), metadata=replace(claim().metadata, annotations={"note": "mine"}))
    update, *_ = Round(noted, volume(**source)).of(UpdateStatus)
    assert update.annotations == {"note": "mine", RESIZER: resizer}
    assert update.target.metadata.resourceVersion == "7"


def test_an_annotation_that_cannot_be_written_is_reported_and_tried_again() -> None:
    round_ = Round(claim(), volume(), refusals={UpdateStatus: Conflict("changed")})
    message = (
        "error setting resizer annotation to pvc shop/data, with error "
        'patchPVCStatus failed to patch PVC "data": changed'
    )
    assert str(round_.error) == message
    assert round_.events[1:] == [("Warning", "ExternalExpanding", message)]


@pytest.mark.parametrize(
    ("found", "cached", "reads"),
    [
        (claim("1Gi"), volume(), 0),
        (claim("1Gi"), None, 1),
        (claim("1Gi"), volume(owner="another"), 1),
        (claim("1Gi"), volume(before="1Gi"), 1),
        (claim("2Gi"), volume(), 1),
    ],
)
def test_the_volume_is_read_only_where_the_cache_shows_something_to_do(
    found: PersistentVolumeClaim, cached: PersistentVolume | None, reads: int
) -> None:
    assert Round(found, volume(), cached).reads == reads


# -- FlexVolumes ----------------------------------------------------------------------------------


def in_state(
    state: str, allocated: str, requested: str = "2G", capacity: str = "1G"
) -> PersistentVolumeClaim:
    return claim(
        requested,
        capacity,
        allocatedResources={"storage": allocated},
        allocatedResourceStatuses={"storage": state},
    )


@pytest.mark.parametrize(
    ("found", "capacity", "block", "states", "allocated", "resized"),
    [
        (claim("2G", "1G"), "1G", False, [CONTROLLER_IN_PROGRESS, NODE_PENDING], "2G", "2G"),
        (claim("2G", "1G"), "2G", False, [CONTROLLER_IN_PROGRESS, NODE_PENDING], "2G", ""),
        (in_state(NODE_PENDING, "2G"), "2G", False, [], "", ""),
        (claim("2G", "1G"), "1G", True, [CONTROLLER_IN_PROGRESS, ""], "2G", "2G"),
        (in_state(NODE_INFEASIBLE, "2G"), "2G", False, [NODE_PENDING], "2G", ""),
        (
            in_state(CONTROLLER_IN_PROGRESS, "2G", "3G"),
            "1G",
            False,
            [CONTROLLER_IN_PROGRESS, NODE_PENDING],
            "2G",
            "2G",
        ),
        (
            in_state(CONTROLLER_IN_PROGRESS, "2G"),
            "2G",
            False,
            [CONTROLLER_IN_PROGRESS, NODE_PENDING],
            "2G",
            "",
        ),
    ],
    ids=[
        "requests more than the volume has",
        "the volume has it already",
        "the node has to resize: a manager ended before it wrote the old capacity",
        "no file system",
        "the node could not resize",
        "a manager ended before the volume was expanded",
        "a manager ended after the volume was expanded",
    ],
)
def test_a_flex_volume_is_expanded_up_to_its_file_system(
    found: PersistentVolumeClaim, capacity: str, block: bool, states: list[str], allocated: str, resized: str
) -> None:
    """The first five are upstream's of GenerateExpandAndRecoverVolumeFunc."""
    spec = {**FLEX, "volumeMode": "Block"} if block else FLEX
    round_ = Round(found, volume(capacity, **spec))
    assert round_.error is None
    assert [each.allocatedResourceStatuses.get("storage", "") for each in round_.statuses] == states
    assert {each.allocatedResources["storage"] for each in round_.statuses} == (
        {allocated} if allocated else set()
    )
    bodies: list[Any] = []
    if resized:
        bodies.append({"metadata": {"uid": "disk-uid"}, "spec": {"capacity": {"storage": resized}}})
    if not block:
        annotations = {PRE_RESIZE_CAPACITY: "1G"}
        bodies.append({"metadata": {"uid": "disk-uid", "annotations": annotations}})
    assert round_.patches == bodies
    done = ("Normal", "VolumeResizeSuccessful", "ExpandVolume succeeded for volume shop/data")
    assert round_.events == ([done] if block else [])
    assert [(each.metric, each.labels) for each in round_.of(Measure)] == [
        (OPERATION_SECONDS, ("example.com/flex", "expand_volume", "success", "false"))
    ]


@pytest.mark.parametrize("state", [NODE_PENDING, NODE_IN_PROGRESS])
def test_nothing_is_written_while_the_node_resizes_the_file_system(state: str) -> None:
    round_ = Round(in_state(state, "2G"), volume("2G", before="1G", **FLEX))
    assert round_.of(UpdateStatus, Patch, Emit) == []


def test_the_claim_says_what_is_left_to_the_node() -> None:
    begun, pending = Round(claim(), volume(**FLEX)).statuses
    assert [each.type for each in begun.conditions] == [RESIZING]
    assert [each.type for each in pending.conditions] == [RESIZING, FILE_SYSTEM_PENDING]
    assert pending.capacity == {"storage": "1Gi"}


def test_each_update_carries_the_version_of_the_one_before() -> None:
    round_ = Round(claim(), volume(**FLEX))
    first, second = round_.of(UpdateStatus)
    assert first.target.metadata.resourceVersion == "7"
    assert second.target.metadata.resourceVersion == "1000001"
    assert first.annotations == {RESIZER: "example.com/flex"}
    assert second.target.metadata.annotations == {RESIZER: "example.com/flex"}


def test_the_old_capacity_is_forgotten_once_the_node_is_done() -> None:
    round_ = Round(claim("2Gi", "2Gi"), volume("2Gi", before="1Gi", **FLEX))
    assert round_.patches == [{"metadata": {"uid": "disk-uid", "annotations": {PRE_RESIZE_CAPACITY: None}}}]
    assert round_.of(UpdateStatus, Emit, Measure) == []


def test_the_old_capacity_of_an_expansion_that_goes_on_is_kept() -> None:
    round_ = Round(claim("3Gi"), volume("2Gi", before="1Gi", **FLEX))
    assert round_.patches == [{"metadata": {"uid": "disk-uid"}, "spec": {"capacity": {"storage": "3Gi"}}}]


@pytest.mark.parametrize(
    ("spec", "refused", "message"),
    [
        (
            FLEX,
            UpdateStatus,
            'error updating pvc shop/data with resize in progress: patchPVCStatus failed to patch PVC "data": no',
        ),
        (FLEX, Patch, 'error updating pv for pvc shop/data: error Patching PV "disk" with error : no'),
    ],
)
def test_an_expansion_that_fails_is_reported_and_tried_again(
    spec: dict[str, Any], refused: type[Action[Any]], message: str
) -> None:
    round_ = Round(claim(), volume(**spec), refusals={refused: Forbidden("no")})
    assert str(round_.error) == message
    assert round_.events == [("Warning", "VolumeResizeFailed", message)]
    assert [each.labels[2] for each in round_.of(Measure)] == ["fail-unknown"]


def test_the_words_of_later_failures_are_upstreams() -> None:
    again = in_state(NODE_INFEASIBLE, "2G")
    marked = Round(again, volume("2G", **FLEX), refusals={UpdateStatus: Forbidden("no")})
    assert str(marked.error) == (
        'error marking pvc shop/data for node expansion: patchPVCStatus failed to patch PVC "data": no'
    )
    noted = Round(again, volume("2G", **FLEX), refusals={Patch: Forbidden("no")})
    assert str(noted.error) == (
        f"error updating pv disk annotation ({PRE_RESIZE_CAPACITY}) with pre-resize capacity 1G: "
        'error Patching PV "disk" with error : no'
    )


# -- enqueue --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, claim(), True),
        (None, claim(phase="Pending"), False),
        (claim("1Gi"), claim("2Gi"), True),
        (claim("1Gi"), claim("2Gi", phase="Lost"), False),
        (claim("2Gi"), claim("1Gi"), False),
        (claim("2Gi"), claim("2048Mi"), False),
        (claim("2Gi", "1Gi"), claim("2Gi", "2Gi"), True),
        (claim("2Gi", "2Gi"), claim("2Gi", "1Gi"), False),
        (claim(), claim(conditions=(Condition(type=RESIZING, status="True"),)), False),
        (claim(), None, False),
    ],
)
def test_a_bound_claim_that_requests_or_has_more_gets_a_round(
    old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None, expected: bool
) -> None:
    caches = StaticCaches(controller)
    keys = list(controller.watches[0].to(caches, Change(old, new)))
    assert keys == ([Key("shop", "data")] if expected else [])


# -- in a cluster ---------------------------------------------------------------------------------

NAME = "persistentvolume-expander-controller"
EXPANDABLE = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "expandable"},
    "provisioner": "example.com/none",
    "allowVolumeExpansion": True,
}


def bind(cluster: Cluster, **source: Any) -> None:
    """A claim of one gibibyte that is bound by hand to a volume with this source."""
    cluster.apply(EXPANDABLE)
    cluster.apply(volumes.claim("data", "disk", storageClassName="expandable"))
    uid = cluster.get("persistentvolumeclaims", "data").metadata.uid
    reference = {"namespace": "default", "name": "data", "uid": uid}
    cluster.apply(
        volumes.volume("disk", hostPath=None, claimRef=reference, storageClassName="expandable", **source)
    )
    bound = {"phase": "Bound", "capacity": {"storage": "1Gi"}}
    cluster.patch("persistentvolumeclaims", "data", {"status": bound}, subresource="status")
    cluster.settle()


def grow(cluster: Cluster, size: str) -> None:
    requests = {"storage": size}
    cluster.patch("persistentvolumeclaims", "data", {"spec": {"resources": {"requests": requests}}})
    cluster.settle()


def reasons(cluster: Cluster) -> list[str]:
    return [each.reason for each in cluster.list("events") if each.source.component == "volume_expand"]


def test_in_a_cluster_a_claim_of_an_in_tree_plugin_is_annotated_for_its_driver() -> None:
    with Cluster(controllers=(NAME,), nodes=0) as cluster:
        bind(cluster, awsElasticBlockStore={"volumeID": "vol-1"})
        assert reasons(cluster) == []
        grow(cluster, "2Gi")
        found = cluster.get("persistentvolumeclaims", "data")
        assert found.metadata.annotations[RESIZER] == "ebs.csi.aws.com"
        assert reasons(cluster) == ["ExternalExpanding"]


def test_in_a_cluster_a_flex_volume_is_expanded_in_steps() -> None:
    with Cluster(controllers=(NAME,), nodes=0) as cluster:
        bind(cluster, flexVolume={"driver": "example.com/flex"})
        grow(cluster, "2Gi")
        found, disk = cluster.get("persistentvolumeclaims", "data"), cluster.get("persistentvolumes", "disk")
        assert found.status.allocatedResourceStatuses == {"storage": NODE_PENDING}
        assert found.metadata.annotations[RESIZER] == "example.com/flex"
        assert disk.spec.capacity == {"storage": "2Gi"}
        assert disk.metadata.annotations[PRE_RESIZE_CAPACITY] == "1Gi"
        # As the kubelet does once the file system has the new size.
        done = {"capacity": {"storage": "2Gi"}, "allocatedResourceStatuses": None, "conditions": None}
        cluster.patch("persistentvolumeclaims", "data", {"status": done}, subresource="status")
        cluster.settle()
        assert PRE_RESIZE_CAPACITY not in cluster.get("persistentvolumes", "disk").metadata.annotations
