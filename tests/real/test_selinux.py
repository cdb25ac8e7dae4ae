"""SELinux labels on a real API server: steersman and kube-controller-manager warn of the same conflicts, with the same words."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from steersman.api.kinds import NAMESPACES, PODS, SERVICEACCOUNTS
from steersman.api.kinds.storage import CSIDRIVERS, PERSISTENTVOLUMECLAIMS, PERSISTENTVOLUMES
from tests.harness.follow import gone

Document = dict[str, Any]
ELSEWHERE = "elsewhere"
METRIC = "selinux_warning_controller_selinux_volume_conflict"
PATIENCE = 75.0


def driver(name: str, mount: bool) -> Document:
    spec = {"attachRequired": False, "seLinuxMount": mount}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": name}, "spec": spec}


def container(name: str, level: str = "", mount: str = "data") -> Document:
    made: Document = {
        "name": name,
        "image": "app:1",
        "volumeMounts": [{"name": mount, "mountPath": "/data"}],
    }
    return {**made, "securityContext": {"seLinuxOptions": {"level": level}}} if level else made


def pod(name: str, claim: str, level: str, policy: str = "", **more: Any) -> Document:
    context: Document = {"seLinuxOptions": {"level": level}} if level else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 0,
            "securityContext": {**context, **({"seLinuxChangePolicy": policy} if policy else {})},
            "containers": [container("main")],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}],
            **more,
        },
    }


async def bind(stage: Any, name: str, source: Document, namespace: str = "") -> None:
    """A claim and its volume, bound to each other as the binder does."""
    namespace = namespace or stage.namespace
    size = {"storage": "1Gi"}
    common: Document = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    volume = f"{namespace}-{name}"
    claim = await stage.api.create(
        PERSISTENTVOLUMECLAIMS.untyped,
        namespace,
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name},
            "spec": {**common, "resources": {"requests": size}, "volumeName": volume},
        },
    )
    ref = {"namespace": namespace, "name": name, "uid": claim["metadata"]["uid"]}
    await stage.create(
        PERSISTENTVOLUMES,
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": volume},
            "spec": {**common, "capacity": size, "claimRef": ref, **source},
        },
    )
    bound = {"status": {"phase": "Bound"}}
    await stage.api.patch(PERSISTENTVOLUMECLAIMS.untyped, namespace, name, bound, subresource="status")


async def tell(stage: Any) -> Document:
    await stage.create(CSIDRIVERS, driver("labels.example.com", True), driver("plain.example.com", False))
    shared = {"csi": {"driver": "labels.example.com", "volumeHandle": "disk-1"}}
    await bind(stage, "shared", shared)
    await bind(stage, "plain", {"csi": {"driver": "plain.example.com", "volumeHandle": "disk-2"}})
    await bind(
        stage,
        "network",
        {"iscsi": {"targetPortal": "192.0.2.1:3260", "iqn": "iqn.2026-01.com.example:a", "lun": 1}},
    )
    two = [container("main", "s0:c1,c2", "scratch"), container("side", "s0:c3,c4", "scratch")]
    await stage.create(
        PODS,
        pod("first", "shared", "s0:c1,c2"),
        pod("same", "shared", "s0:c1,c2"),
        pod("other", "shared", "s0:c98,c99"),
        pod("slow", "shared", "s0:c1,c2", "Recursive"),
        pod("bare", "network", ""),
        pod("labelled", "network", "s0:c5"),
        pod("plain-1", "plain", "s0:c1,c2"),
        pod("plain-2", "plain", "s0:c98,c99"),
        pod("torn", "plain", "", containers=two, volumes=[{"name": "scratch", "emptyDir": {}}]),
        pod("early", "late", "s0:c7"),
    )
    await stage.told("SELinuxLabelConflict", "other")
    await stage.told("SELinuxLabelConflict", "labelled")
    await stage.told("MultipleSELinuxLabels", "torn")
    # A claim that is bound later, to a volume that another pod has in another namespace.
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ELSEWHERE}}
    await stage.api.create(NAMESPACES.untyped, "", space)
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    await stage.api.create(SERVICEACCOUNTS.untyped, ELSEWHERE, account)
    foreign = {"csi": {"driver": "labels.example.com", "volumeHandle": "disk-3"}}
    await bind(stage, "foreign", foreign, ELSEWHERE)
    await stage.api.create(PODS.untyped, ELSEWHERE, pod("hidden", "foreign", "s0:c8"))
    await bind(stage, "late", foreign)
    await stage.told("SELinuxLabelConflict", "early")
    # The conflicts of a pod that is gone are no longer shown.
    await stage.api.delete(PODS, stage.namespace, "other")
    async with asyncio.timeout(PATIENCE):
        await gone(stage.api, PODS, stage.namespace, "other")
    await stage.quiet()
    return {}


@pytest.fixture(scope="module")
def ends(both: Callable[..., Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = both(
        tell, "labels", controllers=("selinux-warning-controller",), kinds=()
    )
    return found


def shown(end: dict[str, Any]) -> list[str]:
    return sorted(name for name in end["counters"] if name.startswith(METRIC))


def test_pods_with_the_same_volume_and_other_labels_are_warned(ends: dict[str, dict[str, Any]]) -> None:
    end = ends["steersman"]
    told = str(end["events"])
    assert 'SELinuxLabel ":::s0:c1,c2" conflicts with pod other' in told
    assert 'SELinuxChangePolicy "Recursive" conflicts with pod first' in told
    assert 'SELinuxLabel":::s0:c7" conflicts with another pod' in told
    assert "plain-1" not in told
    # first and same with slow, in both properties and both directions; bare with labelled; early with hidden.
    assert len(shown(end)) == 8 + 4 + 2


def test_both_warn_of_the_same_conflicts(ends: dict[str, dict[str, Any]], alike: Callable[..., None]) -> None:
    alike(ends, "events")


def test_both_show_the_same_conflicts(ends: dict[str, dict[str, Any]], alike: Callable[..., None]) -> None:
    alike(ends, shown)
