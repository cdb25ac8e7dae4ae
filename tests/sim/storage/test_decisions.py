"""What the provisioner, the attacher, the resizer and the registrar of simulated storage decide: rows."""

from __future__ import annotations

from collections.abc import Awaitable
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from steersman.api.errors import AlreadyExists, ApiError, NotFound
from steersman.api.generated import core_v1 as v1
from steersman.api.generated import storage_v1
from steersman.intent.actions import Action, Create, Delete, Emit, Patch, Read
from steersman.intent.verdict import Rest, Verdict
from steersman.sim.kubelet.node import taken_over
from steersman.sim.storage import attacher, provisioner, registrar, resizer
from steersman.sim.storage.failures import StorageError
from steersman.sim.storage.simulated_storage import CSI, DRIVER, HOST_PATH, STANDARD
from steersman.testing.decision_driver import walk
from tests.harness.storage_objects import SELECTED, claim, node, volume

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NODE = node("a")
HANDED_OVER = "volume.kubernetes.io/storage-provisioner"


def annotated(obj: Any, **annotations: str) -> Any:
    """The object with annotations of the simulation."""
    added = {f"sim.steersman.dev/{name.replace('_', '-')}": text for name, text in annotations.items()}
    meta = replace(obj.metadata, annotations={**obj.metadata.annotations, **added})
    return replace(obj, metadata=meta)


def handed_over(to: str = HOST_PATH, **fields: Any) -> v1.PersistentVolumeClaim:
    found = claim("c", sc="csi-sim" if to == DRIVER else "standard", **fields)
    annotations = {**found.metadata.annotations, HANDED_OVER: to}
    return replace(found, metadata=replace(found.metadata, annotations=annotations))


def drive(
    decision: Awaitable[Verdict], *objects: Any, **refused: ApiError
) -> tuple[list[Action[Any]], Verdict | str]:
    """Drive a decision on a cluster with these objects; the message of a StorageError is the verdict."""
    found = {each.metadata.name: each for each in (STANDARD, CSI, NODE, *objects)}

    def answer(action: Action[Any]) -> Any:
        if isinstance(action, Read):
            name = action.target.name
            return found.get(name, NotFound(f"{name} not found"))
        if isinstance(action, Create):
            return refused.get("create", action.body)
        return None

    actions: list[Action[Any]] = []
    verdict: Verdict | str
    try:
        _, verdict = walk(decision, answer, recorded=actions)
    except StorageError as error:
        verdict = str(error)
    return [each for each in actions if not isinstance(each, Read)], verdict


def events(actions: list[Action[Any]]) -> list[tuple[str, str]]:
    return [(each.reason, each.message) for each in actions if isinstance(each, Emit)]


# -- provisioner ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "wanted", "because"),
    [
        ("bound", handed_over(volume="pv"), "bound already, or being deleted"),
        ("not handed over", claim("c", sc="standard"), "not handed over to this provisioner"),
        ("another's", handed_over("example.com/disk"), "not handed over to this provisioner"),
        ("without a node", handed_over(), "no node is selected yet"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_claim_is_not_provisioned(what: str, wanted: v1.PersistentVolumeClaim, because: str) -> None:
    assert drive(provisioner.provision(wanted)) == ([], Rest(because))


def test_a_claim_is_provisioned_on_the_selected_node() -> None:
    actions, verdict = drive(provisioner.provision(handed_over(selected="a")))
    assert verdict == Rest("the volume was created")
    assert events(actions) == [
        ("Provisioning", 'External provisioner is provisioning volume for claim "default/c"'),
        ("ProvisioningSucceeded", "Successfully provisioned volume pvc-uid-c"),
    ]
    (created,) = (each.body for each in actions if isinstance(each, Create))
    assert isinstance(created, v1.PersistentVolume)
    assert created.metadata.annotations == {"pv.kubernetes.io/provisioned-by": HOST_PATH}
    assert created.metadata.finalizers == (provisioner.FINALIZER,)
    assert created.spec.claimRef is not None
    assert (created.spec.claimRef.name, created.spec.claimRef.uid) == ("c", "uid-c")
    assert created.spec.capacity == {"storage": "1Gi"}
    assert created.spec.persistentVolumeReclaimPolicy == "Delete"
    assert created.spec.storageClassName == "standard"
    assert created.spec.hostPath is not None
    assert created.spec.hostPath.path.endswith("pvc-uid-c_default_c")
    affinity = created.spec.nodeAffinity
    assert affinity is not None
    assert affinity.required is not None
    ((term,),) = (each.matchExpressions for each in affinity.required.nodeSelectorTerms)
    assert (term.key, term.values) == ("kubernetes.io/hostname", ("a",))


def test_a_csi_volume_can_be_used_on_all_nodes() -> None:
    actions, _ = drive(provisioner.provision(handed_over(DRIVER, selected="a")))
    (created,) = (each.body for each in actions if isinstance(each, Create))
    assert isinstance(created, v1.PersistentVolume)
    assert created.spec.nodeAffinity is None
    assert created.spec.csi is not None
    assert (created.spec.csi.driver, created.spec.csi.volumeHandle) == (DRIVER, "vol-uid-c")


def test_a_claim_of_an_immediate_class_needs_no_node() -> None:
    immediate = replace(STANDARD, volumeBindingMode="Immediate", reclaimPolicy="Retain")
    actions, _ = drive(provisioner.provision(handed_over()), immediate)
    (created,) = (each.body for each in actions if isinstance(each, Create))
    assert isinstance(created, v1.PersistentVolume)
    assert created.spec.nodeAffinity is None
    assert created.metadata.finalizers == ()


def test_another_node_is_selected_when_the_node_is_gone() -> None:
    wanted = handed_over(selected="gone")
    actions, verdict = drive(provisioner.provision(wanted))
    assert Patch(wanted, {"metadata": {"annotations": {SELECTED: None}}}) in actions
    assert verdict == Rest("the selected node does not exist")


def test_a_volume_is_provisioned_once() -> None:
    actions, verdict = drive(
        provisioner.provision(handed_over(selected="a")), create=AlreadyExists("there is one")
    )
    assert verdict == Rest("the volume exists already")
    assert [reason for reason, _ in events(actions)] == ["Provisioning"]


@pytest.mark.parametrize(
    ("wanted", "objects"),
    [
        (annotated(handed_over(selected="a"), provision_error="disk quota exceeded"), ()),
        (handed_over(selected="a"), (annotated(STANDARD, provision_error="disk quota exceeded"),)),
    ],
    ids=["claim", "class"],
)
def test_an_annotation_makes_provisioning_fail(
    wanted: v1.PersistentVolumeClaim, objects: tuple[Any, ...]
) -> None:
    actions, verdict = drive(provisioner.provision(wanted), *objects)
    message = 'failed to provision volume with StorageClass "standard": disk quota exceeded'
    assert verdict == message
    assert events(actions)[-1] == ("ProvisioningFailed", message)


def test_a_claim_of_a_class_that_is_gone_fails() -> None:
    lost = replace(handed_over(), spec=replace(handed_over().spec, storageClassName="gone"))
    actions, verdict = drive(provisioner.provision(lost))
    assert verdict == 'storageclass.storage.k8s.io "gone" not found'
    assert events(actions) == [("ProvisioningFailed", 'storageclass.storage.k8s.io "gone" not found')]


def provisioned(phase: str = "Released", policy: str = "Delete", **fields: Any) -> v1.PersistentVolume:
    found = volume(claim="c", phase=phase, sc="standard", persistentVolumeReclaimPolicy=policy, **fields)
    meta = replace(
        found.metadata,
        annotations={"pv.kubernetes.io/provisioned-by": HOST_PATH},
        finalizers=("kubernetes.io/pv-protection", provisioner.FINALIZER),
    )
    return replace(found, metadata=meta)


def unprotected(found: v1.PersistentVolume) -> Patch[v1.PersistentVolume]:
    left = ["kubernetes.io/pv-protection"]
    return Patch(found, {"metadata": {"uid": found.metadata.uid, "finalizers": left}})


def delete(found: v1.PersistentVolume, *attached_to: str) -> Awaitable[Verdict]:
    return provisioner.delete(provisioner.ReleasedVolume(found, attached_to))


def test_a_released_volume_is_deleted() -> None:
    released = provisioned()
    assert drive(delete(released)) == ([Delete(released), unprotected(released)], Rest("deleted"))


def test_a_released_volume_that_a_user_deletes_only_loses_its_finalizer() -> None:
    going = replace(provisioned(), metadata=replace(provisioned().metadata, deletionTimestamp=NOW))
    assert drive(delete(going)) == ([unprotected(going)], Rest("deleted"))


@pytest.mark.parametrize(
    ("what", "found", "because"),
    [
        ("in use", provisioned("Bound"), "in use"),
        ("another's", volume(claim="c", phase="Released"), "not a volume of this provisioner"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_volume_is_not_deleted(what: str, found: v1.PersistentVolume, because: str) -> None:
    assert drive(delete(found)) == ([], Rest(because))


def test_a_retained_volume_is_no_longer_held_by_the_provisioner() -> None:
    retained = provisioned(policy="Retain")
    assert drive(delete(retained)) == ([unprotected(retained)], Rest("retained"))


@pytest.mark.parametrize(
    ("found", "attached_to", "message"),
    [
        (annotated(provisioned(), delete_error="busy"), (), "busy"),
        (provisioned(), ("a",), "persistentvolume pv is still attached to node a"),
    ],
    ids=["annotation", "attached"],
)
def test_a_volume_that_cannot_be_deleted_says_why(
    found: v1.PersistentVolume, attached_to: tuple[str, ...], message: str
) -> None:
    actions, verdict = drive(delete(found, *attached_to))
    assert (events(actions), verdict) == ([("VolumeFailedDelete", message)], message)


# -- attacher ---------------------------------------------------------------------------------


def attachment(
    *, attached: bool = False, finalizer: bool = False, deleted: bool = False, by: str = DRIVER, on: str = "a"
) -> storage_v1.VolumeAttachment:
    document = {
        "metadata": {"name": "va", "finalizers": [attacher.FINALIZER] if finalizer else []},
        "spec": {"attacher": by, "nodeName": on, "source": {"persistentVolumeName": "pv"}},
        "status": {"attached": attached},
    }
    found = msgspec.convert(document, storage_v1.VolumeAttachment)
    return replace(found, metadata=replace(found.metadata, deletionTimestamp=NOW if deleted else None))


DISK = volume(claim="c", driver=DRIVER, sc="csi-sim")


def attach(found: storage_v1.VolumeAttachment, disk: v1.PersistentVolume | None = DISK) -> Awaitable[Verdict]:
    return attacher.decide(attacher.Attachment(found, disk), NOW)


def status(found: storage_v1.VolumeAttachment, **fields: Any) -> Patch[storage_v1.VolumeAttachment]:
    return Patch(found, {"status": fields}, subresource="status")


def test_a_volume_is_attached_with_finalizers_first() -> None:
    found = attachment()
    meta = {"finalizers": [attacher.FINALIZER], "annotations": {attacher.NODE_ID: "a"}}
    assert drive(attach(found)) == (
        [
            Patch(found, {"metadata": meta}),
            Patch(DISK, {"metadata": {"finalizers": [attacher.FINALIZER]}}),
            status(found, attached=True, attachError=None),
        ],
        Rest("attached"),
    )


def test_an_attached_volume_is_left_alone_and_so_is_that_of_another_driver() -> None:
    assert drive(attach(attachment(attached=True))) == ([], Rest("attached"))
    assert drive(attach(attachment(by="other"))) == ([], Rest("not an attachment of this driver"))


@pytest.mark.parametrize(
    ("what", "found", "disk", "objects", "message"),
    [
        ("the volume", attachment(), annotated(DISK, attach_error="no slot"), (), "no slot"),
        ("the node", attachment(), DISK, (annotated(NODE, attach_error="no slot"),), "no slot"),
        ("the class", attachment(), DISK, (annotated(CSI, attach_error="no slot"),), "no slot"),
        ("a node that is gone", attachment(on="gone"), DISK, (), 'node "gone" not found'),
        ("a volume that is gone", attachment(), None, (), 'persistentvolume "pv" not found'),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_attaching_fails_because_of(
    what: str,
    found: storage_v1.VolumeAttachment,
    disk: v1.PersistentVolume | None,
    objects: tuple[Any, ...],
    message: str,
) -> None:
    actions, verdict = drive(attach(found, disk), *objects)
    assert verdict == message
    error = {"message": message, "time": "2026-01-01T00:00:00Z"}
    assert actions[-1] == status(found, attached=False, attachError=error)


def test_the_same_error_is_written_once() -> None:
    error = storage_v1.VolumeError(message="no slot", time=NOW)
    found = replace(attachment(finalizer=True), status=storage_v1.VolumeAttachmentStatus(attachError=error))
    held = replace(DISK, metadata=replace(DISK.metadata, finalizers=(attacher.FINALIZER,)))
    assert drive(attach(found, annotated(held, attach_error="no slot"))) == ([], "no slot")


def test_a_deleted_attachment_is_detached_and_let_go() -> None:
    found = attachment(attached=True, finalizer=True, deleted=True)
    cleared: dict[str, Any] = {"attached": False, "attachError": None, "detachError": None}
    assert drive(attach(found)) == (
        [status(found, **cleared), Patch(found, {"metadata": {"finalizers": []}})],
        Rest("detached"),
    )


def test_detaching_fails_because_of_the_volume_and_not_because_the_node_is_gone() -> None:
    found = attachment(attached=True, finalizer=True, deleted=True, on="gone")
    actions, verdict = drive(attach(found, annotated(DISK, detach_error="in use")))
    error = {"message": "in use", "time": "2026-01-01T00:00:00Z"}
    assert (actions, verdict) == ([status(found, attached=True, detachError=error)], "in use")
    assert drive(attach(found))[1] == Rest("detached")


@pytest.mark.parametrize(("count", "because"), [(0, "released"), (1, "still attached")])
def test_a_volume_goes_when_it_is_attached_nowhere(count: int, because: str) -> None:
    meta = replace(DISK.metadata, finalizers=("x", attacher.FINALIZER), deletionTimestamp=NOW)
    going = replace(DISK, metadata=meta)
    actions, verdict = drive(attacher.release(attacher.AttachedVolume(going, count)))
    assert verdict == Rest(because)
    assert actions == ([] if count else [Patch(going, {"metadata": {"finalizers": ["x"]}})])


# -- resizer ----------------------------------------------------------------------------------


def resized(size: str = "2Gi", has: str = "1Gi", **status: Any) -> v1.PersistentVolumeClaim:
    found = claim("c", "pv", sc="csi-sim", size=size)
    document = {"phase": "Bound", "capacity": {"storage": has}, **status}
    return replace(found, status=msgspec.convert(document, v1.PersistentVolumeClaimStatus))


def expand(found: v1.PersistentVolumeClaim, disk: v1.PersistentVolume = DISK) -> Awaitable[Verdict]:
    return resizer.decide(resizer.ExpandedClaim(found, disk), NOW)


def resize_status(type_: str, state: str, **message: str) -> dict[str, Any]:
    stamp = "2026-01-01T00:00:00Z"
    return {
        "conditions": [{"type": type_, "status": "True", "lastTransitionTime": stamp, **message}],
        "allocatedResources": {"storage": "2Gi"},
        "allocatedResourceStatuses": {"storage": state},
    }


def test_a_volume_is_expanded_and_the_rest_is_left_to_the_kubelet() -> None:
    found = resized()
    actions, verdict = drive(expand(found))
    first = resize_status("Resizing", "ControllerResizeInProgress")
    last = resize_status("FileSystemResizePending", "NodeResizePending", message=resizer.PENDING_MESSAGE)
    assert [each for each in actions if not isinstance(each, Emit)] == [
        Patch(found, {"status": first}, subresource="status"),
        Patch(DISK, {"spec": {"capacity": {"storage": "2Gi"}}}),
        Patch(found, {"status": last}, subresource="status"),
    ]
    assert events(actions) == [
        ("Resizing", "External resizer is resizing volume pv"),
        ("FileSystemResizeRequired", "Require file system resize of volume on node"),
    ]
    assert verdict == Rest("the volume is expanded")


@pytest.mark.parametrize(
    ("what", "found", "disk", "because"),
    [
        ("large enough", resized("1Gi"), DISK, "as large as requested"),
        ("larger than requested", resized("1Gi", "5Gi"), DISK, "as large as requested"),
        ("another driver's", resized(), volume(claim="c"), "not a claim of a volume of this driver"),
        (
            "the kubelet's turn",
            resized(allocatedResourceStatuses={"storage": "NodeResizePending"}),
            DISK,
            "the kubelet expands the file system",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_volume_is_not_expanded(
    what: str, found: v1.PersistentVolumeClaim, disk: v1.PersistentVolume, because: str
) -> None:
    assert drive(expand(found, disk)) == ([], Rest(because))


def test_an_annotation_makes_expansion_fail() -> None:
    actions, verdict = drive(expand(annotated(resized(), expand_error="too large")))
    message = f'resize volume "pv" by resizer "{DRIVER}" failed: too large'
    assert verdict == message
    assert events(actions)[-1] == ("VolumeResizeFailed", message)


def test_a_second_attempt_does_not_begin_anew() -> None:
    found = resized(
        allocatedResources={"storage": "2Gi"},
        allocatedResourceStatuses={"storage": "ControllerResizeInProgress"},
    )
    actions, _ = drive(expand(found))
    assert [reason for reason, _ in events(actions)] == ["FileSystemResizeRequired"]


# -- registrar --------------------------------------------------------------------------------

SIMULATED = replace(NODE, spec=replace(NODE.spec, providerID="sim://a"))


def register(found: v1.Node, csi_node: storage_v1.CSINode | None = None) -> Awaitable[Verdict]:
    return registrar.decide(registrar.RegisteredNode(found, csi_node), NOW)


def test_a_simulated_node_gets_a_csi_node_with_a_limit() -> None:
    actions, verdict = drive(register(SIMULATED))
    assert verdict == Rest("registered")
    (created,) = (each.body for each in actions if isinstance(each, Create))
    assert isinstance(created, storage_v1.CSINode)
    (driver,) = created.spec.drivers or ()
    assert driver.allocatable is not None
    assert (driver.name, driver.nodeID, driver.allocatable.count) == (DRIVER, "a", registrar.DEFAULT_LIMIT)
    assert [owner.kind for owner in created.metadata.ownerReferences] == ["Node"]


def test_a_real_node_is_not_registered() -> None:
    assert drive(register(NODE)) == ([], Rest("not a simulated node"))


def test_the_driver_is_registered_on_a_node_of_a_snapshot() -> None:
    machine = replace(NODE, spec=replace(NODE.spec, providerID="cloud://zone/a"))
    actions, verdict = drive(register(taken_over(machine)))
    assert [type(each) for each in actions] == [Create]
    assert verdict == Rest("registered")


@pytest.mark.parametrize(("text", "count"), [("2", 2), ("many", 25), ("-1", 25), ("9" * 40, 25)])
def test_the_limit_follows_the_annotation_of_the_node(text: str, count: int) -> None:
    driver = registrar.driver_of(annotated(SIMULATED, volume_limit=text))
    assert driver.allocatable is not None
    assert driver.allocatable.count == count


def test_the_driver_is_entered_beside_others_and_once() -> None:
    other = storage_v1.CSINodeDriver(name="other", nodeID="a")
    known = registrar.new_csi_node(SIMULATED, other)
    actions, _ = drive(register(SIMULATED, known))
    (patched,) = (each.body for each in actions if isinstance(each, Patch))
    assert isinstance(patched, dict)
    assert [each["name"] for each in patched["spec"]["drivers"]] == ["other", DRIVER]
    registered = registrar.new_csi_node(SIMULATED, registrar.driver_of(SIMULATED))
    assert drive(register(SIMULATED, registered)) == ([], Rest("registered"))
