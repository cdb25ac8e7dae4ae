"""Claims that controllers make and expand, on a real API server: both managers leave the same."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from steersman.api.kinds import PODS, Pod
from steersman.api.kinds.storage import PERSISTENTVOLUMECLAIMS, PersistentVolumeClaim
from tests.harness import volumes
from tests.harness.follow import gone

Document = dict[str, Any]
Ends = dict[str, dict[str, Any]]
CLAIMS = PERSISTENTVOLUMECLAIMS
PATIENCE = 75.0
HOLD = "example.com/hold"


def exists(found: PersistentVolumeClaim) -> bool:
    return found.metadata.deletionTimestamp is None


async def removed(stage: Any, name: str) -> None:
    async with asyncio.timeout(PATIENCE):
        await gone(stage.api, CLAIMS, stage.namespace, name)


async def owners(stage: Any) -> Document:
    """The owners of all claims by name, with the pod's current uid replaced by a word."""
    pods = {
        each.metadata.uid: each.metadata.name for each in (await stage.api.list(PODS, stage.namespace)).items
    }
    page = await stage.api.list(CLAIMS.untyped, stage.namespace)
    return {
        each["metadata"]["name"]: [
            {**owner, "uid": f"of pod {pods.get(owner['uid'])}"}
            for owner in each["metadata"].get("ownerReferences", ())
        ]
        for each in page.items
    }


# -- ephemeral volumes ----------------------------------------------------------------------------


def detailed(document: Document) -> Document:
    """A pod whose ephemeral volume has a template with labels, annotations and a class."""
    (volume,) = document["spec"]["volumes"]
    template = volume["ephemeral"]["volumeClaimTemplate"]
    template["metadata"] = {"labels": {"app": "web"}, "annotations": {"example.com/note": "scratch"}}
    template["spec"] = {
        **template["spec"],
        "storageClassName": "fast",
        "volumeMode": "Block",
        "selector": {"matchLabels": {"disk": "ssd"}},
    }
    return document


async def before(stage: Any) -> None:
    """A pod that is there when the manager starts, and claims whose names pods will need."""
    await stage.create(PODS, volumes.pod("early", ephemeral="scratch", node="node-9"))
    await stage.create(CLAIMS, volumes.claim("taken-scratch"), volumes.claim("freed-scratch"))


async def tell(stage: Any) -> Document:
    plenty = volumes.pod("plenty", "named", ephemeral="scratch", node="node-9")
    cache = {"name": "cache", "ephemeral": {"volumeClaimTemplate": {"spec": volumes.CLAIM}}}
    plenty["spec"]["volumes"] += [{"name": "temp", "emptyDir": {}}, cache]
    await stage.create(
        PODS,
        plenty,
        detailed(volumes.pod("detailed", ephemeral="scratch", node="node-9")),
        volumes.pod("unscheduled", ephemeral="scratch", node=""),
        volumes.pod("plain", "named", node="node-9"),
        volumes.pod("taken", ephemeral="scratch", node="node-9"),
        volumes.pod("freed", ephemeral="scratch", node="node-9"),
        volumes.pod("held", ephemeral="scratch", node="node-9", finalizers=[HOLD]),
    )
    for name in ("early", "plenty", "detailed", "unscheduled", "held"):
        await stage.until(CLAIMS, f"{name}-scratch", exists)
    await stage.until(CLAIMS, "plenty-cache", exists)
    for name in ("taken", "freed"):
        await stage.told("FailedBinding", name)
    # A claim is created again; that of a pod that is being deleted is not.
    await stage.api.delete(PODS, stage.namespace, "held", grace=0)
    await stage.until(PODS, "held", lambda pod: pod.metadata.deletionTimestamp is not None)
    for name in ("unscheduled-scratch", "held-scratch", "freed-scratch"):
        await stage.api.delete(CLAIMS, stage.namespace, name)
    await removed(stage, "held-scratch")
    for name in ("unscheduled", "freed"):
        pod: Pod = await stage.api.get(PODS, stage.namespace, name)
        await stage.until(CLAIMS, f"{name}-scratch", owned_by(pod.metadata.uid))
    await stage.quiet()
    return {"owners": await owners(stage)}


def owned_by(uid: str) -> Callable[[PersistentVolumeClaim], bool]:
    def met(found: PersistentVolumeClaim) -> bool:
        return exists(found) and any(each.uid == uid for each in found.metadata.ownerReferences)

    return met


@pytest.fixture(scope="module")
def ends(both: Callable[..., Any]) -> Ends:
    found: Ends = both(
        tell,
        "ephemeral",
        controllers=("ephemeral-volume-controller", "persistentvolumeclaim-protection-controller"),
        kinds=(CLAIMS,),
        flags=("--concurrent-ephemeralvolume-syncs=3",),
        before=before,
    )
    return found


def test_each_ephemeral_volume_has_a_claim_of_its_own(ends: Ends) -> None:
    found = ends["steersman"]["owners"]
    mine = {name: [each["uid"] for each in owner] for name, owner in found.items()}
    assert mine == {
        "detailed-scratch": ["of pod detailed"],
        "early-scratch": ["of pod early"],
        "freed-scratch": ["of pod freed"],
        "plenty-cache": ["of pod plenty"],
        "plenty-scratch": ["of pod plenty"],
        "taken-scratch": [],
        "unscheduled-scratch": ["of pod unscheduled"],
    }
    assert ends["steersman"]["counters"]["ephemeral_volume_controller_create_total"] >= 8


@pytest.mark.parametrize("what", ["owners", "persistentvolumeclaims"])
def test_both_managers_make_the_same_claims(ends: Ends, alike: Callable[..., None], what: str) -> None:
    alike(ends, what)


def test_both_managers_say_the_same_of_names_that_are_taken(ends: Ends, alike: Callable[..., None]) -> None:
    """How often they say it depends on their back-off."""
    alike(ends, lambda end: sorted({(each["reason"], each["message"]) for each in end["events"]}))


def test_both_managers_count_the_same(ends: Ends, alike: Callable[..., None]) -> None:
    names = ("ephemeral_volume_controller_create_total", "ephemeral_volume_controller_create_failures_total")
    alike(ends, lambda end: {name: end["counters"].get(name) for name in names})
