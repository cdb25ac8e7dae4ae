"""PodGroups on a real API server: steersman and kube-controller-manager protect the same groups for as long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from steersman.api.kinds import PODS
from steersman.api.kinds.podgroups import PODGROUPS

Document = dict[str, Any]
FINALIZER = "scheduling.k8s.io/podgroup-protection"
OTHER = "example.com/keep"
GATES = "--feature-gates=GenericWorkload=true"


def group(name: str, *finalizers: str) -> Document:
    return {
        "apiVersion": PODGROUPS.api_version,
        "kind": "PodGroup",
        "metadata": {"name": name, "finalizers": list(finalizers)},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 1}}},
    }


def pod(name: str, named: str) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 0,
            "schedulingGroup": {"podGroupName": named},
            "containers": [{"name": "main", "image": "app:1"}],
        },
    }


async def groups(stage: Any) -> Document:
    """The groups there are: whether each is being deleted, and its finalizers."""
    page = await stage.api.list(PODGROUPS.untyped, stage.namespace)
    return {
        one["metadata"]["name"]: [
            "deletionTimestamp" in one["metadata"],
            one["metadata"].get("finalizers", []),
        ]
        for one in page.items
    }


async def tell(stage: Any) -> Document:
    await stage.create(PODGROUPS, *(group(name) for name in ("idle", "kept", "deleted", "ended", "failed")))
    await stage.create(PODGROUPS, group("shared", OTHER))
    for name in ("kept", "deleted", "ended", "failed"):
        await stage.create(PODS, pod(name, name))
    for name in ("idle", "kept", "deleted", "ended", "failed", "shared"):
        await stage.api.delete(PODGROUPS, stage.namespace, name)
    await stage.gone(PODGROUPS, "idle")
    await stage.until(PODGROUPS, "shared", lambda found: found.metadata.finalizers == (OTHER,))
    await stage.quiet()
    begun = await groups(stage)
    # A pod that is deleted, one that succeeds and one that fails free their groups.
    await stage.api.delete(PODS, stage.namespace, "deleted")
    for name, phase in (("ended", "Succeeded"), ("failed", "Failed")):
        await stage.patch(PODS, name, {"status": {"phase": phase}}, subresource="status")
    for name in ("deleted", "ended", "failed"):
        await stage.gone(PODGROUPS, name)
    await stage.quiet()
    return {"begun": begun, "left": await groups(stage)}


@pytest.fixture(scope="module")
def ends(both: Callable[..., Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = both(
        tell,
        "groups",
        controllers=("podgroup-protection-controller",),
        kinds=(PODGROUPS,),
        flags=(GATES,),
        apiserver=(GATES, "--runtime-config=scheduling.k8s.io/v1alpha2=true"),
    )
    return found


def test_a_group_stays_while_a_pod_of_it_may_run(ends: dict[str, dict[str, Any]]) -> None:
    end = ends["steersman"]
    used = [True, [FINALIZER]]
    assert end["begun"] == {
        **dict.fromkeys(("deleted", "ended", "failed", "kept"), used),
        "shared": [True, [OTHER]],
    }
    assert end["left"] == {"kept": used, "shared": [True, [OTHER]]}


@pytest.mark.parametrize("what", ["podgroups", "begun", "left"])
def test_both_leave_the_same_groups(
    ends: dict[str, dict[str, Any]], alike: Callable[..., None], what: str
) -> None:
    alike(ends, what)
