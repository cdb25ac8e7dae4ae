"""The attach/detach controller attaches the volumes of pods."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec import convert
from msgspec.structs import replace

from steersman.api.errors import AlreadyExists, Forbidden, ServerError
from steersman.api.kinds import ContainerStatus
from steersman.api.kinds.storage import VOLUMEATTACHMENTS
from steersman.api.scheme import Key
from steersman.controllers.shared.volumes import OPERATION_SECONDS
from steersman.intent.actions import Create, Delete, Emit, Patch
from steersman.intent.verdict import Rest, Wake
from tests.harness.attach_detach import (
    DRIVER,
    RWX,
    VOLUME,
    Rounds,
    claim,
    driver,
    node,
    pod,
    ready_world,
    volume,
)

ATTACHED = 'p1 SuccessfulAttachVolume AttachVolume.Attach succeeded for volume "pv" '
KEY = Key("", VOLUME)


def failed(message: str, name: str = "p1") -> str:
    return f'{name} FailedAttachVolume AttachVolume.Attach failed for volume "pv" : {message}'


def test_a_volume_gets_an_attachment_and_then_is_reported_with_an_event() -> None:
    rounds = Rounds(node(), volume(), claim(), pod())
    found = rounds.attachment()
    assert found is not None
    assert (found.spec.attacher, found.spec.nodeName) == (DRIVER, "n1")
    assert found.spec.source.persistentVolumeName == "pv"
    assert (rounds.reported(), rounds.events) == ((), [])
    assert isinstance(rounds.verdicts[KEY], Wake)
    rounds.answer()
    assert rounds.reported() == (VOLUME,)
    assert rounds.events == [ATTACHED]
    assert rounds.writes() == ["create attachment", "patch node"]
    assert rounds.verdicts[KEY] == Rest("attached to n1")


def test_the_node_is_told_after_the_driver_has_attached_the_volume() -> None:
    rounds = Rounds(node(), volume(), claim(), pod())
    rounds.answer()
    (patch,) = [each for each in rounds.actions if isinstance(each, Patch)]
    assert not isinstance(patch.body, list)
    assert patch.body["status"] == {"volumesAttached": [{"name": VOLUME, "devicePath": ""}]}
    assert patch.subresource == "status"


@pytest.mark.parametrize("order", range(4))
def test_objects_may_arrive_in_any_order(order: int) -> None:
    objects = [node(), volume(), claim(), pod()]
    rounds = Rounds(*objects[order:], *objects[:order])
    assert rounds.attached_to == ["n1"]


def test_two_pods_of_a_node_share_one_attachment_and_both_get_the_event() -> None:
    rounds = Rounds(node(), volume(), claim(), pod(), pod("p2"))
    rounds.answer()
    assert rounds.writes() == ["create attachment", "patch node"]
    assert rounds.events == [ATTACHED, ATTACHED.replace("p1", "p2")]


def test_a_second_pod_of_a_node_finds_the_volume_attached() -> None:
    rounds = ready_world(pod("p2"))
    assert rounds.actions == []


def test_two_volumes_of_a_pod_are_both_reported() -> None:
    both = [
        {"name": "a", "persistentVolumeClaim": {"claimName": "claim-pv"}},
        {"name": "b", "persistentVolumeClaim": {"claimName": "claim-second"}},
    ]
    rounds = Rounds(node(), volume(), volume("second"), claim(), claim("second"), pod(volumes=both))
    second = "kubernetes.io/csi/csi.example.com^vol-second"
    rounds.answer()
    rounds.answer(name=second)
    assert rounds.reported() == (VOLUME, second)


# -- pods and claims that need nothing --------------------------------------------------------------


@pytest.mark.parametrize(
    "objects",
    [
        (node(), volume(), claim(), pod(on="")),
        (node(), volume(), claim(), pod(phase="Succeeded")),
        (node(), volume(), claim(), pod(phase="Failed")),
        (node(), volume(), claim(), pod(deletionTimestamp=datetime(2026, 1, 1, tzinfo=UTC))),
        (node(), volume(), claim(), pod(volumes=[])),
        (node(), volume(), claim(), pod(volumes=[{"name": "e", "emptyDir": {}}])),
        (node(), volume(), claim(), pod(namespace="other")),
        (node(), volume(), claim(phase="Pending"), pod()),
        (node(), volume(), claim(phase="Lost"), pod()),
        (node(), volume(), claim(uid="another"), pod()),
        (node(), volume(), pod()),
        (node(), claim(), pod()),
        (node(managed=False), volume(), claim(), pod()),
        (node("n2"), volume(), claim(), pod()),
        (node(), volume(hostPath={"path": "/data"}), claim(), pod()),
        (node(), volume(), claim(), driver(False), pod()),
    ],
    ids=[
        "not scheduled",
        "succeeded",
        "failed",
        "being deleted, without containers",
        "no volumes",
        "other volumes",
        "another namespace",
        "claim not bound",
        "claim lost its volume",
        "volume of another claim",
        "no claim",
        "no volume",
        "node not managed",
        "unknown node",
        "host path",
        "driver that needs no attaching",
    ],
)
def test_nothing_is_attached(objects: tuple[object, ...]) -> None:
    assert Rounds(*objects).attached_to == []


@pytest.mark.parametrize("required", [True, None])
def test_a_driver_needs_attaching_unless_it_says_otherwise(required: bool | None) -> None:
    assert Rounds(node(), volume(), claim(), driver(required), pod()).attached_to == ["n1"]


def test_a_claim_that_is_bound_later_is_attached_then() -> None:
    rounds = Rounds(node(), volume(), claim(phase="Pending"), pod())
    rounds.put(claim())
    assert rounds.attached_to == ["n1"]


def test_a_node_that_is_managed_later_gets_its_volumes_then() -> None:
    rounds = Rounds(node(managed=False), volume(), claim(), pod())
    assert rounds.attached_to == []
    rounds.put(node())
    assert rounds.attached_to == ["n1"]


def test_a_pod_being_deleted_keeps_its_volume_while_a_container_runs() -> None:
    running = {"name": "main", "state": {"running": {}}}
    leaving = pod(deletionTimestamp=datetime(2026, 1, 1, tzinfo=UTC))
    status = replace(leaving.status, containerStatuses=(convert(running, ContainerStatus),))
    assert Rounds(node(), volume(), claim(), replace(leaving, status=status)).attached_to == ["n1"]


def test_the_claim_of_an_ephemeral_volume_must_be_made_for_the_pod() -> None:
    volumes = [{"name": "pv", "ephemeral": {"volumeClaimTemplate": {}}}]
    user = pod("claim", volumes=volumes)
    assert Rounds(node(), volume(), claim(), user).attached_to == []
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "claim", "uid": "uid-claim", "controller": True}
    assert Rounds(node(), volume(), claim(ownerReferences=[owner]), user).attached_to == ["n1"]


# -- other plugins ------------------------------------------------------------------------------------


def test_a_migrated_volume_is_attached_by_the_driver_that_replaces_its_plugin() -> None:
    source: dict[str, Any] = {"awsElasticBlockStore": {"volumeID": "aws://zone/vol-1"}}
    rounds = Rounds(node(), volume(**source), claim(), pod())
    name = "kubernetes.io/csi/ebs.csi.aws.com^vol-1"
    found = rounds.attachment(name=name)
    assert found is not None
    assert (found.spec.attacher, found.spec.source.persistentVolumeName) == ("ebs.csi.aws.com", "pv")
    rounds.answer(name=name)
    assert rounds.reported() == (name,)
    assert [labels for _, labels in rounds.measured(OPERATION_SECONDS)] == [
        ("kubernetes.io/csi:ebs.csi.aws.com", "volume_attach", "success", "true")
    ]


def test_an_inline_volume_of_a_migrated_plugin_is_described_in_its_attachment() -> None:
    inline = [{"name": "data", "gcePersistentDisk": {"pdName": "disk"}}]
    rounds = Rounds(node(), pod(volumes=inline))
    name = "kubernetes.io/csi/pd.csi.storage.gke.io^projects/UNSPECIFIED/zones/UNSPECIFIED/disks/disk"
    found = rounds.attachment(name=name)
    assert found is not None
    spec = found.spec.source.inlineVolumeSpec
    assert spec is not None
    assert spec.csi is not None
    assert (spec.csi.driver, spec.accessModes) == ("pd.csi.storage.gke.io", ("ReadWriteOnce",))
    rounds.answer(name=name)
    assert rounds.events == [
        'p1 SuccessfulAttachVolume AttachVolume.Attach succeeded for volume "pd.csi.storage.gke.io-disk" '
    ]
    rounds.delete_pod()
    rounds.let_go(name=name)
    assert (rounds.attached_to, rounds.reported()) == ([], ())


def test_a_malformed_volume_of_a_migrated_plugin_is_left_alone() -> None:
    source: dict[str, Any] = {"awsElasticBlockStore": {"volumeID": "aws:///nonsense"}}
    rounds = Rounds(node(), volume(**source), claim(), pod(), pod("p2", pv="other"))
    assert rounds.actions == []


FIBRE: dict[str, Any] = {"fc": {"targetWWNs": ["5001"], "lun": 1}}
ISCSI: dict[str, Any] = {
    "iscsi": {"targetPortal": "10.0.2.15:3260", "iqn": "iqn.2001-04.com.example:a", "lun": 3}
}


@pytest.mark.parametrize(
    ("source", "name"),
    [
        (FIBRE, "kubernetes.io/fc/[5001]:1"),
        ({"fc": {"wwids": ["3600"]}}, "kubernetes.io/fc/[3600]"),
        (ISCSI, "kubernetes.io/iscsi/10.0.2.15:3260:iqn.2001-04.com.example:a:3"),
    ],
    ids=["Fibre Channel", "Fibre Channel, by its world wide identifier", "iSCSI"],
)
@pytest.mark.parametrize("inline", [False, True])
def test_a_volume_without_a_driver_is_only_reported(source: dict[str, Any], name: str, inline: bool) -> None:
    """A kubelet mounts no volume of these plugins before it is reported."""
    objects = (pod(volumes=[{"name": "pv", **source}]),) if inline else (volume(**source), claim(), pod())
    rounds = Rounds(node(), *objects)
    assert rounds.reported() == (name,)
    assert rounds.attached_to == []
    assert rounds.events == [ATTACHED]
    rounds.delete_pod()
    assert rounds.reported() == ()
    assert rounds.memory.volumes == {}


# -- failures -------------------------------------------------------------------------------------------


def test_an_error_of_the_driver_is_told_to_the_pods_again_and_again() -> None:
    rounds = Rounds(node(), volume(), claim(), pod())
    rounds.answer(error="no such disk")
    assert rounds.events == [failed("no such disk")]
    rounds.advance(0.6)
    assert rounds.events == [failed("no such disk")] * 2
    rounds.advance(1.1)
    rounds.advance(2.1)
    assert len(rounds.events) == 4
    rounds.answer()
    assert rounds.events[4:] == [ATTACHED]
    assert rounds.reported() == (VOLUME,)


def test_the_back_off_ends_at_two_minutes() -> None:
    rounds = Rounds(node(), volume(), claim(), pod())
    rounds.answer(error="no")
    rounds.advance(600)
    told = len(rounds.events)
    rounds.advance(1220)
    assert len(rounds.events) - told == 10


def test_a_driver_that_does_not_answer_is_given_up_after_two_minutes() -> None:
    rounds = Rounds(node(), volume(), claim(), pod())
    rounds.advance(119)
    assert rounds.events == []
    rounds.advance(2)
    message = f"timed out waiting for external-attacher of {DRIVER} CSI driver to attach volume vol-pv"
    assert rounds.events == [failed(message)]
    rounds.advance(121)
    assert rounds.events == [failed(message)] * 2
    rounds.answer()
    assert rounds.reported() == (VOLUME,)


def test_a_wait_of_less_than_a_microsecond_lets_time_pass() -> None:
    rounds = Rounds(node(), volume(), claim(), pod())
    rounds.advance(120 - 1e-9)
    rounds.put(rounds.attachment())
    assert rounds.verdicts[KEY] == Wake(timedelta(microseconds=1), "being attached to n1")
    rounds.advance(0.1)
    assert len(rounds.events) == 1


def test_a_refused_attachment_is_told_to_the_pods() -> None:
    rounds = Rounds(node(), volume(), claim())
    rounds.refusals[Create] = Forbidden("volumeattachments is forbidden")
    rounds.put(pod())
    assert rounds.events == [
        failed("kubernetes.io/csi: attacher.Attach failed: volumeattachments is forbidden")
    ]
    rounds.refusals.clear()
    rounds.advance(1)
    assert rounds.attached_to == ["n1"]


def test_an_error_that_passes_is_not_told() -> None:
    rounds = Rounds(node(), volume(), claim())
    rounds.refusals[Create] = ServerError("etcd is away")
    rounds.put(pod())
    rounds.refusals.clear()
    rounds.advance(2)
    assert (rounds.attached_to, rounds.events) == (["n1"], [])


def test_an_attachment_that_exists_is_used() -> None:
    rounds = Rounds(node(), volume(), claim())
    rounds.refusals[Create] = AlreadyExists("exists")
    rounds.put(pod())
    assert rounds.events == []
    rounds.refusals.clear()
    rounds.put(pod("p2"))
    rounds.answer()
    assert rounds.reported() == (VOLUME,)


def test_an_attachment_that_another_client_deletes_is_made_anew() -> None:
    rounds = ready_world()
    found = rounds.attachment()
    assert found is not None
    rounds.put(
        replace(found, metadata=replace(found.metadata, deletionTimestamp=datetime(2026, 1, 1, tzinfo=UTC)))
    )
    assert (rounds.reported(), rounds.actions) == ((VOLUME,), [])
    rounds.let_go()
    assert rounds.reported() == ()
    assert rounds.attached_to == ["n1"]
    rounds.answer()
    assert rounds.reported() == (VOLUME,)
    assert rounds.events == [ATTACHED]


@pytest.mark.parametrize(
    "flags",
    [{"disable-attach-detach-reconcile-sync": True}, {"attach-detach-reconcile-sync-period": 0.5}],
    ids=str,
)
def test_it_is_not_made_anew_where_the_check_is_disabled(flags: dict[str, Any]) -> None:
    rounds = ready_world(**flags)
    found = rounds.attachment()
    assert found is not None
    rounds.remove(found)
    assert (rounds.attached_to, rounds.reported()) == ([], (VOLUME,))


def test_an_attachment_that_is_being_deleted_fails_the_attach() -> None:
    rounds = Rounds(node(), volume(), claim())
    rounds.put(pod())
    found = rounds.attachment()
    assert found is not None
    rounds.put(
        replace(found, metadata=replace(found.metadata, deletionTimestamp=datetime(2026, 1, 1, tzinfo=UTC)))
    )
    assert rounds.events == [failed("volume attachment is being deleted")]
    rounds.let_go()
    rounds.advance(1)
    assert rounds.attached_to == ["n1"]


def test_a_pod_that_comes_back_waits_for_the_detach() -> None:
    rounds = ready_world()
    rounds.mount("n1")
    rounds.delete_pod()
    assert rounds.attached_to == ["(n1)"]
    rounds.put(pod())
    assert (rounds.attached_to, rounds.events) == (["(n1)"], [])
    rounds.let_go()
    assert rounds.attached_to == ["n1"]
    rounds.answer()
    assert rounds.events == [ATTACHED]


def test_a_pod_is_told_of_an_attach_that_follows_a_failed_detach() -> None:
    rounds = ready_world()
    rounds.mount("n1")
    rounds.refusals[Delete] = ServerError("etcd is away")
    rounds.delete_pod()
    assert (rounds.attached_to, rounds.reported()) == (["n1"], ())
    rounds.put(pod())
    assert (rounds.reported(), rounds.events) == ((VOLUME,), [ATTACHED])


# -- restarts ---------------------------------------------------------------------------------------------


def test_a_new_process_does_nothing_about_what_is_attached() -> None:
    rounds = ready_world()
    rounds.restart()
    assert [each for each in rounds.actions if isinstance(each, Create | Emit | Patch)] == []


def test_a_new_process_finishes_an_attach() -> None:
    rounds = Rounds(node(), volume(), claim(), pod())
    rounds.restart()
    assert rounds.writes() == ["create attachment"]
    rounds.answer()
    assert (rounds.reported(), rounds.events) == ((VOLUME,), [ATTACHED])


def test_a_new_process_reports_what_was_attached_meanwhile() -> None:
    rounds = Rounds(node(), volume(), claim(), pod())
    found = rounds.attachment()
    assert found is not None
    rounds.caches[VOLUMEATTACHMENTS].put(replace(found, status=replace(found.status, attached=True)))
    rounds.restart()
    assert (rounds.reported(), rounds.events) == ((VOLUME,), [ATTACHED])


def test_a_volume_that_is_reported_without_an_attachment_is_attached_anew() -> None:
    rounds = Rounds(node(attached=(VOLUME,)), volume(), claim(), pod())
    assert (rounds.reported(), rounds.attached_to) == ((), ["n1"])


def test_a_node_that_is_created_anew_is_told_again_without_another_event() -> None:
    rounds = ready_world(modes=(RWX,))
    rounds.remove(rounds.node())
    assert rounds.attached_to == ["n1"]
    rounds.put(node())
    assert (rounds.reported(), rounds.events) == ((VOLUME,), [])


def test_a_pod_keeps_its_volume_whatever_becomes_of_its_claim() -> None:
    rounds = ready_world()
    rounds.mount("n1")
    rounds.put(claim(phase="Lost"))
    rounds.remove(volume())
    assert (rounds.attached_to, rounds.reported()) == (["n1"], (VOLUME,))
    rounds.delete_pod()
    assert (rounds.attached_to, rounds.reported()) == (["(n1)"], ())


def test_a_node_keeps_the_volumes_of_its_pods_when_its_annotation_goes() -> None:
    rounds = ready_world()
    rounds.put(replace(rounds.node(), metadata=replace(rounds.node().metadata, annotations={})))
    rounds.mount("n1")
    assert (rounds.attached_to, rounds.reported()) == (["n1"], (VOLUME,))
