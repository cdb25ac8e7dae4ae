"""selinux-warning-controller: upstream's rows, and pods that share a volume in a cluster."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from steersman.api.kinds import (
    EphemeralVolumeSource,
    ObjectMeta,
    ObjectReference,
    OwnerReference,
    PersistentVolumeClaimVolumeSource,
    Volume,
)
from steersman.api.kinds.selinux import (
    SELINUX_PODS,
    MountingContainer,
    PodSecurityContext,
    SecurityContext,
    SELinuxOptions,
    SELinuxPod,
    SELinuxPodSpec,
    VolumeMount,
)
from steersman.api.kinds.storage import (
    CSIDriver,
    CSIDriverSpec,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
    PersistentVolumeSpec,
)
from steersman.api.kinds.volume_sources import (
    AWSElasticBlockStoreVolumeSource,
    CSIPersistentVolumeSource,
    CSIVolumeSource,
    FCVolumeSource,
    HostPathVolumeSource,
    ISCSIPersistentVolumeSource,
    ISCSIVolumeSource,
    NFSVolumeSource,
)
from steersman.api.scheme import Key
from steersman.controllers.selinuxwarning import controller, decide, observe
from steersman.controllers.selinuxwarning.conflicts import Use, UsedVolumes
from steersman.intent.actions import Action, Emit
from steersman.intent.controller import Change, memory_of
from steersman.intent.metrics import DropSeries, Measure
from steersman.intent.verdict import Rest, Verdict
from steersman.testing import Cluster
from steersman.testing.decision_driver import StaticCaches, walk

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NAMESPACE, DRIVER = "ns1", "ebs.csi.aws.com"
MOUNT, RECURSIVE = "MountOption", "Recursive"
VOLUME = f"kubernetes.io/csi/{DRIVER}^pv1"
INLINE = f"kubernetes.io/csi/{DRIVER}^inlinevol1"


def pod(
    name: str = "pod1",
    level: str = "s0:c1,c2",
    policy: str | None = None,
    *volumes: Volume,
    uid: str = "",
    containers: tuple[MountingContainer, ...] = (),
) -> SELinuxPod:
    options = SELinuxOptions(level=level) if level else None
    mounts = tuple(VolumeMount(name=volume.name) for volume in volumes)
    spec = SELinuxPodSpec(
        securityContext=PodSecurityContext(seLinuxOptions=options, seLinuxChangePolicy=policy),
        volumes=(Volume(name="emptyDir1"), *volumes),
        containers=containers or (MountingContainer(volumeMounts=mounts),),
    )
    return SELinuxPod(metadata=ObjectMeta(name=name, namespace=NAMESPACE, uid=uid or name), spec=spec)


def of_claim(name: str = "pvc1", volume: str = "vol1") -> Volume:
    return Volume(name=volume, persistentVolumeClaim=PersistentVolumeClaimVolumeSource(claimName=name))


EBS = Volume(
    name="inlineVolume", awsElasticBlockStore=AWSElasticBlockStoreVolumeSource(volumeID="inlinevol1")
)
CLAIM = PersistentVolumeClaim(
    metadata=ObjectMeta(name="pvc1", namespace=NAMESPACE, uid="pvc-uid"),
    spec=PersistentVolumeClaimSpec(volumeName="pv1"),
    status=PersistentVolumeClaimStatus(phase="Bound"),
)


def volume(name: str = "pv1", **source: Any) -> PersistentVolume:
    source = source or {"awsElasticBlockStore": AWSElasticBlockStoreVolumeSource(volumeID=name)}
    ref = ObjectReference(namespace=NAMESPACE, name="pvc1", uid="pvc-uid")
    return PersistentVolume(metadata=ObjectMeta(name=name), spec=PersistentVolumeSpec(claimRef=ref, **source))


def driver(mount: bool | None = True, name: str = DRIVER) -> CSIDriver:
    return CSIDriver(metadata=ObjectMeta(name=name), spec=CSIDriverSpec(seLinuxMount=mount))


BOUND = (CLAIM, volume(), driver())


def caches(*objects: Any, used: Iterable[tuple[SELinuxPod, Use]] = ()) -> StaticCaches:
    made = StaticCaches(controller, *objects)
    for user, use in used:
        memory_of(made, UsedVolumes).add(user.key, use)
    return made


def look(found: StaticCaches, name: str = "pod1") -> tuple[list[Action[Any]], Verdict]:
    seen = observe(found, Key(NAMESPACE, name))
    if seen is None:
        return [], Rest("gone")
    return walk(decide(seen, NOW))


def events(actions: list[Action[Any]]) -> list[tuple[str, str, str]]:
    return [
        (action.about.key.name, action.reason, action.message)
        for action in actions
        if isinstance(action, Emit)
    ]


# -- upstream's rows ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("objects", "uses"),
    [
        ((pod(),), []),
        ((pod("pod1", "s0:c1,c2", None, of_claim("non-existing-pvc")),), []),
        ((pod("pod1", "s0:c1,c2", None, of_claim()), *BOUND), [Use(VOLUME, ":::s0:c1,c2", MOUNT, DRIVER)]),
        ((pod("pod1", "s0:c1,c2", RECURSIVE, of_claim()), *BOUND), [Use(VOLUME, "", RECURSIVE, DRIVER)]),
        ((pod("pod1", "s0:c1,c2", None, EBS), *BOUND), [Use(INLINE, ":::s0:c1,c2", MOUNT, DRIVER)]),
        (
            (pod("pod1", "s0:c1,c2", None, of_claim(), EBS), *BOUND),
            [Use(VOLUME, ":::s0:c1,c2", MOUNT, DRIVER), Use(INLINE, ":::s0:c1,c2", MOUNT, DRIVER)],
        ),
        ((pod("pod1", "", MOUNT, of_claim()), *BOUND), [Use(VOLUME, "", RECURSIVE, DRIVER)]),
        (
            (pod("pod1", "s0:c1,c2", None, of_claim()), CLAIM, volume(), driver(False)),
            [Use(VOLUME, "", RECURSIVE, DRIVER)],
        ),
        (
            (pod("pod1", "s0:c1,c2", None, of_claim()), CLAIM, volume(), driver(None)),
            [Use(VOLUME, "", RECURSIVE, DRIVER)],
        ),
        ((pod("pod1", "s0:c1,c2", None, of_claim()), CLAIM, volume()), [Use(VOLUME, "", RECURSIVE, DRIVER)]),
        (
            (pod("pod1", "s0", None, of_claim()), CLAIM, volume(csi=CSIPersistentVolumeSource(driver="d", volumeHandle="h")), driver(name="d")),
            [Use("kubernetes.io/csi/d^h", ":::s0", MOUNT, "d")],
        ),
        (
            (pod("pod1", "s0", None, of_claim()), CLAIM, volume(fc=FCVolumeSource(targetWWNs=("w",), lun=2))),
            [Use("kubernetes.io/fc/[w]:2", ":::s0", MOUNT)],
        ),
        (
            (pod("pod1", "s0", None, of_claim()), CLAIM, volume(iscsi=ISCSIPersistentVolumeSource(targetPortal="p", iqn="i", lun=3))),
            [Use("kubernetes.io/iscsi/p:i:3", ":::s0", MOUNT)],
        ),
        (
            (pod("pod1", "s0", None, Volume(name="i", iscsi=ISCSIVolumeSource(targetPortal="p", iqn="i", lun=3))),),
            [Use("kubernetes.io/iscsi/p:i:3", ":::s0", MOUNT)],
        ),
        ((pod("pod1", "s0", None, of_claim()), CLAIM, volume(nfs=NFSVolumeSource(server="s", path="/p"))), []),
        ((pod("pod1", "s0", None, of_claim()), CLAIM, volume(hostPath=HostPathVolumeSource(path="/p"))), []),
        ((pod("pod1", "s0", None, Volume(name="c", csi=CSIVolumeSource(driver=DRIVER))), driver()), []),
        ((pod("pod1", "s0", None, of_claim()), replace(CLAIM, status=PersistentVolumeClaimStatus(phase="Lost")), volume(), driver()), []),
        ((pod("pod1", "s0", None, of_claim()), CLAIM, driver()), []),
        ((pod("pod1", "s0", None, of_claim()), replace(CLAIM, metadata=replace(CLAIM.metadata, uid="another")), volume(), driver()), []),
    ],
    ids=[
        "no volumes",
        "no claim",
        "a claim",
        "a claim, Recursive",
        "inline volume",
        "a claim and an inline volume",
        "no label",
        "driver without support",
        "driver that does not say",
        "no driver",
        "CSI",
        "Fibre Channel",
        "iSCSI",
        "iSCSI, inline",
        "NFS",
        "host path",
        "ephemeral CSI",
        "claim that is not bound",
        "no volume of the claim",
        "volume of another claim",
    ],
)  # fmt: skip
def test_a_pod_uses_its_volumes_with_label_and_policy(objects: tuple[Any, ...], uses: list[Use]) -> None:
    seen = observe(caches(*objects), Key(NAMESPACE, "pod1"))
    assert seen is not None
    assert list(seen.uses) == uses


ONE = pod("pod1", "s0:c1,c2", None, of_claim())
TWO = pod("pod2", "s0:c98,c99", None, of_claim())
SLOW = pod("pod2", "s0:c98,c99", RECURSIVE, of_claim())
OF_TWO = Use(VOLUME, ":::s0:c98,c99", MOUNT, DRIVER)
LABELS = [
    (
        "pod1",
        "SELinuxLabelConflict",
        'SELinuxLabel ":::s0:c1,c2" conflicts with pod pod2 that uses the same volume as this pod with SELinuxLabel '
        '":::s0:c98,c99". If both pods land on the same node, only one of them may access the volume.',
    ),
    (
        "pod2",
        "SELinuxLabelConflict",
        'SELinuxLabel ":::s0:c98,c99" conflicts with pod pod1 that uses the same volume as this pod with SELinuxLabel '
        '":::s0:c1,c2". If both pods land on the same node, only one of them may access the volume.',
    ),
]


@pytest.mark.parametrize(
    ("objects", "used", "reasons"),
    [
        ((ONE, TWO), [(TWO, OF_TWO)], LABELS),
        ((ONE,), [(TWO, OF_TWO)], LABELS[:1]),
        (
            (replace(ONE, spec=pod("pod1", "s0:c1,c2", RECURSIVE, of_claim()).spec), SLOW),
            [(SLOW, Use(VOLUME, "", RECURSIVE, DRIVER))],
            [],
        ),
        ((ONE, TWO), [(TWO, replace(OF_TWO, label=":::s0:c1,c2"))], []),
        ((ONE, TWO), [(TWO, replace(OF_TWO, volume="another"))], []),
    ],
    ids=["another label", "the other pod is gone", "both Recursive", "the same label", "another volume"],
)
def test_pods_with_conflicting_labels_get_an_event_each(
    objects: tuple[Any, ...], used: list[tuple[SELinuxPod, Use]], reasons: list[tuple[str, str, str]]
) -> None:
    actions, _ = look(caches(*objects, *BOUND, used=used))
    assert events(actions) == reasons


def test_a_recursive_pod_conflicts_with_one_that_mounts_with_a_label() -> None:
    actions, verdict = look(caches(ONE, SLOW, *BOUND, used=[(SLOW, Use(VOLUME, "", RECURSIVE, DRIVER))]))
    assert [(name, reason) for name, reason, _ in events(actions)] == [
        ("pod1", "SELinuxChangePolicyConflict"),
        ("pod2", "SELinuxChangePolicyConflict"),
        ("pod1", "SELinuxLabelConflict"),
        ("pod2", "SELinuxLabelConflict"),
    ]
    assert verdict == Rest("reported 4 conflicts")
    assert sum(isinstance(action, Measure) for action in actions) == 4


def test_a_conflict_is_reported_once() -> None:
    found = caches(ONE, TWO, *BOUND, used=[(TWO, OF_TWO)])
    assert len(events(look(found)[0])) == 2
    assert look(found) == ([], Rest("no new conflict"))


def test_a_pod_that_has_ended_or_is_gone_is_forgotten() -> None:
    known = caches(TWO, *BOUND, used=[(ONE, Use(VOLUME, ":::s0", MOUNT)), (TWO, OF_TWO)])
    actions, verdict = look(known)
    assert [type(action) for action in actions] == [DropSeries, DropSeries]
    assert verdict == Rest("pod has ended or is gone")
    assert look(known) == ([], Rest("gone"))


@pytest.mark.parametrize(
    ("levels", "told"), [(("s0", "s1"), True), (("s0", "s0"), False), (("s0", ""), True)], ids=str
)
def test_a_volume_that_a_pod_mounts_with_two_labels_is_told(levels: tuple[str, str], told: bool) -> None:
    containers = tuple(
        MountingContainer(
            securityContext=SecurityContext(seLinuxOptions=SELinuxOptions(level=level)),
            volumeMounts=(VolumeMount(name="vol1"), VolumeMount(name="emptyDir1")),
        )
        for level in levels
    )
    found = pod("pod1", "", None, of_claim(), containers=containers)
    actions, _ = look(caches(found, *BOUND))
    warned = [action for action in actions if isinstance(action, Emit) and action.type == "Warning"]
    message = 'Volume "{}" is mounted twice with different SELinux labels inside this pod'
    expected = [
        Emit(found, "Warning", "MultipleSELinuxLabels", message.format(n)) for n in ("vol1", "emptyDir1")
    ]
    assert warned == (expected if told else [])


# -- other rows -----------------------------------------------------------------------------------


def test_a_pod_waits_for_its_claim() -> None:
    assert look(caches(ONE)) == ([], Rest("waiting for claims to be bound"))


@pytest.mark.parametrize(("owner", "uses"), [("pod1", 1), ("another", 0)])
def test_the_claim_of_an_ephemeral_volume_belongs_to_its_pod(owner: str, uses: int) -> None:
    mine = replace(
        CLAIM,
        metadata=replace(
            CLAIM.metadata,
            name="pod1-scratch",
            ownerReferences=(OwnerReference(uid=owner, controller=True),),
        ),
    )
    found = pod("pod1", "s0", None, Volume(name="scratch", ephemeral=EphemeralVolumeSource()))
    seen = observe(caches(found, mine, volume(), driver()), Key(NAMESPACE, "pod1"))
    assert seen is not None
    assert len(seen.uses) == uses


UNBOUND = replace(
    CLAIM, spec=PersistentVolumeClaimSpec(), status=PersistentVolumeClaimStatus(phase="Pending")
)
HALF = replace(CLAIM, status=PersistentVolumeClaimStatus(phase="Pending"))
FREE = replace(volume(), spec=replace(volume().spec, claimRef=None))


def keys(watch: int, change: Change[Any], used: Iterable[tuple[SELinuxPod, Use]] = ()) -> list[str]:
    to = controller.watches[watch].to
    return [key.name for key in to(caches(ONE, TWO, pod("pod3"), used=used), change)]


@pytest.mark.parametrize(
    ("watch", "old", "new", "expected"),
    [
        (0, None, ONE, ["pod1"]),
        (0, ONE, ONE, []),
        (0, ONE, None, ["pod1"]),
        (0, ONE, replace(ONE, metadata=replace(ONE.metadata, uid="new")), ["pod1"]),
        (1, None, UNBOUND, []),
        (1, None, CLAIM, ["pod1", "pod2"]),
        (1, UNBOUND, HALF, ["pod1", "pod2"]),
        (1, HALF, CLAIM, ["pod1", "pod2"]),
        (1, CLAIM, CLAIM, []),
        (1, CLAIM, None, []),
        (2, None, FREE, []),
        (2, None, volume(), ["pod1", "pod2"]),
        (2, FREE, volume(), ["pod1", "pod2"]),
        (2, volume(), volume(), []),
        (2, volume(), None, []),
        (3, None, driver(), ["pod1"]),
        (3, None, driver(False), []),
        (3, driver(False), driver(), ["pod1"]),
        (3, driver(None), driver(False), []),
        (3, driver(), driver(None), ["pod1"]),
        (3, driver(), None, ["pod1"]),
        (3, driver(None), None, []),
        (3, None, driver(name="another"), []),
    ],
)
def test_a_change_concerns_the_pods_whose_labels_it_may_change(
    watch: int, old: Any, new: Any, expected: list[str]
) -> None:
    assert keys(watch, Change(old, new), used=[(ONE, Use(VOLUME, "", RECURSIVE, DRIVER))]) == expected


def test_pods_that_have_ended_are_not_watched() -> None:
    assert SELINUX_PODS.fields == "status.phase!=Succeeded,status.phase!=Failed"
    assert controller.disabled_by_default


# -- worlds ---------------------------------------------------------------------------------------

PV = """
{apiVersion: v1, kind: PersistentVolume, metadata: {name: shared}, spec: {capacity: {storage: 1Gi},
  accessModes: [ReadWriteMany], csi: {driver: disk.example.com, volumeHandle: disk-1},
  claimRef: {namespace: default, name: shared, uid: "%s"}, storageClassName: ""}}
"""
PVC = """
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: shared}, spec: {accessModes: [ReadWriteMany],
  resources: {requests: {storage: 1Gi}}, volumeName: shared, storageClassName: ""}}
"""


def user(name: str, level: str, runs: str = "") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": {"sim.steersman.dev/runs": runs} if runs else {}},
        "spec": {
            "restartPolicy": "Never",
            "securityContext": {"seLinuxOptions": {"level": level}},
            "containers": [
                {"name": "main", "image": "app:1", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
            ],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "shared"}}],
        },
    }


def csi_driver(mount: bool) -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": "disk.example.com"},
        "spec": {"seLinuxMount": mount, "attachRequired": False},
    }


def bind(cluster: Cluster) -> None:
    """Bind the claim, as the binder does."""
    claim = cluster.get("pvc", "shared")
    cluster.apply(PV % claim.metadata.uid)
    cluster.patch("pvc", "shared", {"status": {"phase": "Bound"}}, subresource="status")


def told(cluster: Cluster, name: str) -> list[str]:
    return [event.reason for event in cluster.events("pod", name) if event.reason.startswith("SELinux")]


def conflicts(cluster: Cluster) -> int:
    metrics = cluster.manager.fleet.metrics
    metrics.enabled = True  # test clusters do not expose them
    text = metrics.render().decode()
    return sum(
        line.startswith("selinux_warning_controller_selinux_volume_conflict{") for line in text.splitlines()
    )


def test_pods_are_warned_when_their_claim_is_bound_and_until_one_has_ended() -> None:
    with Cluster(controllers=[controller]) as cluster:
        cluster.apply([csi_driver(True), user("one", "s0:c1,c2", runs="600s"), user("two", "s0:c98,c99")])
        cluster.apply(PVC)
        cluster.settle()
        assert told(cluster, "one") == []
        bind(cluster)
        cluster.settle()
        for name in ("one", "two"):
            assert told(cluster, name) == ["SELinuxLabelConflict"]
        assert conflicts(cluster) == 2
        cluster.advance(minutes=11)
        assert cluster.get("pod", "one").status.phase == "Succeeded"
        assert conflicts(cluster) == 0


def test_a_driver_that_supports_labels_later_leads_to_a_warning() -> None:
    with Cluster(controllers=[controller]) as cluster:
        cluster.apply([csi_driver(False), user("one", "s0:c1,c2"), user("two", "s0:c98,c99")])
        cluster.apply(PVC)
        bind(cluster)
        cluster.settle()
        assert told(cluster, "one") == []
        cluster.patch("csidriver", "disk.example.com", {"spec": {"seLinuxMount": True}})
        cluster.settle()
        assert "SELinuxLabelConflict" in told(cluster, "one")
        assert "SELinuxLabelConflict" in told(cluster, "two")
        assert conflicts(cluster) == 2
        cluster.patch("csidriver", "disk.example.com", {"spec": {"seLinuxMount": False}})
        cluster.settle()
        assert conflicts(cluster) == 0
