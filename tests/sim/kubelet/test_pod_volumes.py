"""Volumes of pods as kubelets mount them: rows of objects, and what the kubelet says of them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from steersman.api.generated import core_v1 as v1
from steersman.api.generated import storage_v1
from steersman.api.scheme import Key
from steersman.sim.kubelet.pod_volumes import (
    VolumeSource,
    attachable_name,
    mount_state,
    needs_expansion,
    volume_sources,
)
from tests.harness.storage_objects import claim, node, volume


class Objects:
    """Objects without a server, as a kubelet reads them."""

    def __init__(self, *objects: Any, attach: bool | None = None) -> None:
        self._objects = {(type(each), each.metadata.name): each for each in objects}
        self._attach = attach

    def claim(self, key: Key) -> v1.PersistentVolumeClaim | None:
        return self._objects.get((v1.PersistentVolumeClaim, key.name))

    def volume(self, name: str) -> v1.PersistentVolume | None:
        return self._objects.get((v1.PersistentVolume, name))

    def config_map(self, key: Key) -> v1.ConfigMap | None:
        return self._objects.get((v1.ConfigMap, key.name))

    def secret(self, key: Key) -> v1.Secret | None:
        return self._objects.get((v1.Secret, key.name))

    def csi_driver(self, name: str) -> storage_v1.CSIDriver | None:
        if self._attach is None:
            return None
        document = {"metadata": {"name": name}, "spec": {"attachRequired": self._attach}}
        return msgspec.convert(document, storage_v1.CSIDriver)


def pod(*volumes: dict[str, Any], mounted: tuple[str, ...] | None = None, **spec: Any) -> v1.Pod:
    """A pod whose container mounts all of its volumes, or these."""
    names = mounted if mounted is not None else tuple(each["name"] for each in volumes)
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in names]
    document = {
        "metadata": {"name": "p", "namespace": "default", "uid": "p"},
        "spec": {
            "containers": [{"name": "c", "image": "i", "volumeMounts": mounts}],
            "volumes": list(volumes),
            **spec,
        },
    }
    return msgspec.convert(document, v1.Pod)


def config_map(name: str = "cm", *keys: str) -> v1.ConfigMap:
    return msgspec.convert({"metadata": {"name": name}, "data": dict.fromkeys(keys, "x")}, v1.ConfigMap)


def secret(name: str = "s", *keys: str) -> v1.Secret:
    return msgspec.convert({"metadata": {"name": name}, "data": dict.fromkeys(keys, "eA==")}, v1.Secret)


def claimed(name: str = "data") -> dict[str, Any]:
    return {"name": name, "persistentVolumeClaim": {"claimName": name}}


def of(kind: str, name: str, *keys: str, volume: str = "cfg", **fields: Any) -> dict[str, Any]:
    field = "secretName" if kind == "secret" else "name"
    items = [{"key": key, "path": key} for key in keys]
    return {"name": volume, kind: {field: name, "items": items, **fields}}


TOKEN = {
    "name": "kube-api-access-xyz",
    "projected": {"sources": [{"configMap": {"name": "kube-root-ca.crt"}}]},
}
BLOCK: dict[str, Any] = {
    "containers": [{"name": "c", "image": "i", "volumeDevices": [{"name": "data", "devicePath": "/d"}]}]
}


@pytest.mark.parametrize(
    ("what", "of_pod", "expected"),
    [
        ("a claim", pod(claimed()), [VolumeSource("data", "claim", "data")]),
        ("a claim that no container mounts", pod(claimed(), mounted=()), []),
        ("a claim as a device", pod(claimed(), **BLOCK), [VolumeSource("data", "claim", "data")]),
        (
            "an ephemeral volume",
            pod({"name": "tmp", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}),
            [VolumeSource("tmp", "claim", "p-tmp", ephemeral=True)],
        ),
        ("a ConfigMap", pod(of("configMap", "cm", "k")), [VolumeSource("cfg", "configmap", "cm", ("k",))]),
        (
            "an optional Secret",
            pod(of("secret", "s", optional=True)),
            [VolumeSource("cfg", "secret", "s", (), True)],
        ),
        (
            "a projection",
            pod(
                {
                    "name": "all",
                    "projected": {"sources": [{"secret": {"name": "s"}}, {"configMap": {"name": "cm"}}]},
                }
            ),
            [VolumeSource("all", "secret", "s"), VolumeSource("all", "configmap", "cm")],
        ),
        ("the token of the service account", pod(TOKEN), []),
        ("an empty directory", pod({"name": "tmp", "emptyDir": {}}), []),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_pod_waits_for(what: str, of_pod: v1.Pod, expected: list[VolumeSource]) -> None:
    assert list(volume_sources(of_pod)) == expected


def test_a_volume_of_an_init_container_counts() -> None:
    found = pod(
        claimed(),
        mounted=(),
        initContainers=[{"name": "i", "image": "i", "volumeMounts": [{"name": "data", "mountPath": "/d"}]}],
    )
    assert len(volume_sources(found)) == 1


def errors(of_pod: v1.Pod, *objects: Any) -> tuple[str, ...]:
    return mount_state(of_pod, volume_sources(of_pod), node("a"), Objects(*objects)).errors


SET_UP = 'MountVolume.SetUp failed for volume "cfg" : '


@pytest.mark.parametrize(
    ("what", "of_pod", "objects", "expected"),
    [
        ("a missing ConfigMap", pod(of("configMap", "cm")), (), (SET_UP + 'configmap "cm" not found',)),
        ("a missing Secret", pod(of("secret", "s")), (), (SET_UP + 'secret "s" not found',)),
        ("an optional ConfigMap", pod(of("configMap", "cm", optional=True)), (), ()),
        ("an optional Secret", pod(of("secret", "s", optional=True)), (), ()),
        ("a ConfigMap", pod(of("configMap", "cm", "k")), (config_map("cm", "k"),), ()),
        ("a Secret", pod(of("secret", "s", "k")), (secret("s", "k"),), ()),
        (
            "a missing key of a ConfigMap",
            pod(of("configMap", "cm", "k")),
            (config_map(),),
            (SET_UP + "configmap references non-existent config key: k",),
        ),
        (
            "a missing key of a Secret",
            pod(of("secret", "s", "k")),
            (secret(),),
            (SET_UP + "references non-existent secret key: k",),
        ),
        ("an optional key", pod(of("configMap", "cm", "k", optional=True)), (config_map(),), ()),
        (
            "two missing sources of a projection",
            pod(
                {
                    "name": "cfg",
                    "projected": {"sources": [{"secret": {"name": "s"}}, {"configMap": {"name": "cm"}}]},
                }
            ),
            (),
            (SET_UP + '[secret "s" not found, configmap "cm" not found]',),
        ),
        (
            "two volumes",
            pod(of("configMap", "cm"), of("secret", "s", volume="other")),
            (),
            (
                SET_UP + 'configmap "cm" not found',
                'MountVolume.SetUp failed for volume "other" : secret "s" not found',
            ),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_volume_of_configuration(
    what: str, of_pod: v1.Pod, objects: tuple[Any, ...], expected: tuple[str, ...]
) -> None:
    assert errors(of_pod, *objects) == expected


def deleted(found: v1.PersistentVolumeClaim, *finalizers: str) -> v1.PersistentVolumeClaim:
    stamp = datetime(2026, 1, 1, tzinfo=UTC)
    return replace(found, metadata=replace(found.metadata, deletionTimestamp=stamp, finalizers=finalizers))


BOUND = claim("data", "pv")


@pytest.mark.parametrize(
    ("what", "objects", "why"),
    [
        ("missing", (), 'failed to fetch PVC from API server: persistentvolumeclaims "data" not found'),
        ("pending", (claim("data"),), "PVC is not bound"),
        ("being deleted without protection", (deleted(BOUND),), "PVC is being deleted"),
        (
            "bound to a volume that is gone",
            (BOUND,),
            'failed to fetch PV pv from API server: persistentvolumes "pv" not found',
        ),
        (
            "bound to a volume that is free",
            (BOUND, volume()),
            "found PV object pv but it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim",
        ),
        (
            "bound to a volume of another claim",
            (BOUND, volume(claim="data", uid="older")),
            "found PV object pv but its pv.Spec.ClaimRef.UID older does not point to claim.UID uid-data",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_claim_cannot_be_mounted(what: str, objects: tuple[Any, ...], why: str) -> None:
    assert errors(pod(claimed()), *objects) == (
        "Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[], "
        f"failed to process volumes=[data]: error processing PVC default/data: {why}",
    )


def test_a_claim_can_be_mounted_also_while_its_deletion_waits_for_the_pod() -> None:
    assert errors(pod(claimed()), BOUND, volume(claim="data")) == ()
    protected = deleted(BOUND, "kubernetes.io/pvc-protection")
    assert errors(pod(claimed()), protected, volume(claim="data")) == ()


def test_claims_that_cannot_be_processed_share_an_event_that_names_all_unmounted_volumes() -> None:
    found = pod(claimed("b"), claimed("a"), of("configMap", "cm"))
    assert errors(found)[1] == (
        "Unable to attach or mount volumes: unmounted volumes=[a b cfg], unattached volumes=[], "
        "failed to process volumes=[a b]: "
        'error processing PVC default/b: failed to fetch PVC from API server: persistentvolumeclaims "b" not found; '
        'error processing PVC default/a: failed to fetch PVC from API server: persistentvolumeclaims "a" not found'
    )


def test_an_ephemeral_claim_of_another_pod_is_not_mounted() -> None:
    found = pod({"name": "tmp", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}})
    (error,) = errors(found, claim("p-tmp", "pv", owner="q"), volume(claim="p-tmp"))
    assert error.endswith("PVC default/p-tmp was not created for pod default/p (pod is not owner)")
    assert errors(found, claim("p-tmp", "pv", owner="p"), volume(claim="p-tmp")) == ()


def test_a_volume_of_another_node_is_not_mounted() -> None:
    far = volume(claim="data", node="b")
    assert errors(pod(claimed()), BOUND, far) == (
        'MountVolume.NodeAffinity check failed for volume "pv" : no matching NodeSelectorTerms',
    )


@pytest.mark.parametrize(
    ("what", "found", "required", "expected"),
    [
        ("a CSI volume", volume(driver="disk"), None, "kubernetes.io/csi/disk^vol-pv"),
        ("of a driver that attaches", volume(driver="disk"), True, "kubernetes.io/csi/disk^vol-pv"),
        ("of a driver that does not attach", volume(driver="disk"), False, ""),
        ("another volume", volume(), None, ""),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_volume_has_to_be_attached(
    what: str, found: v1.PersistentVolume, required: bool | None, expected: str
) -> None:
    assert attachable_name(found, Objects(attach=required)) == expected


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("", False),
        ("ControllerResizeInProgress", False),
        ("NodeResizePending", True),
        ("NodeResizeInProgress", True),
        ("NodeResizeInfeasible", False),
    ],
)
def test_a_file_system_is_expanded_when_its_volume_is(state: str, expected: bool) -> None:
    status = replace(BOUND.status, allocatedResourceStatuses={"storage": state} if state else {})
    assert needs_expansion(replace(BOUND, status=status)) is expected
