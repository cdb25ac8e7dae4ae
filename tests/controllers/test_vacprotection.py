"""volumeattributesclass-protection: upstream's rows, and classes that are deleted in a cluster."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from steersman.api.errors import Forbidden
from steersman.api.kinds import ObjectMeta
from steersman.api.kinds.storage import (
    PERSISTENTVOLUMES,
    ModifyVolumeStatus,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
    PersistentVolumeSpec,
    VolumeAttributesClass,
)
from steersman.api.scheme import Key
from steersman.controllers.vacprotection import CACHE_LAG, FINALIZER, classes_of_claim, controller
from steersman.intent.actions import Action, List, Update
from steersman.intent.controller import Change
from steersman.intent.settings import Settings
from steersman.intent.verdict import Rest, Verdict, Wake
from steersman.testing.cluster import Cluster
from steersman.testing.decision_driver import USUAL, StaticCaches, walk
from tests.harness import volumes

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def class_(*, deleted: bool = False, protected: bool = True) -> VolumeAttributesClass:
    return VolumeAttributesClass(
        metadata=ObjectMeta(
            name="vac1",
            deletionTimestamp=NOW if deleted else None,
            finalizers=(FINALIZER,) if protected else (),
        )
    )


def volume(name: str, class_name: str) -> PersistentVolume:
    return PersistentVolume(
        metadata=ObjectMeta(name=name), spec=PersistentVolumeSpec(volumeAttributesClassName=class_name)
    )


def claim(name: str, class_name: str, current: str = "", target: str = "") -> PersistentVolumeClaim:
    return PersistentVolumeClaim(
        metadata=ObjectMeta(name=name, namespace="default"),
        spec=PersistentVolumeClaimSpec(volumeAttributesClassName=class_name),
        status=PersistentVolumeClaimStatus(
            currentVolumeAttributesClassName=current or None,
            modifyVolumeStatus=ModifyVolumeStatus(targetVolumeAttributesClassName=target) if target else None,
        ),
    )


def sync(change: Change[Any], existing: tuple[Any, ...] = (), refusals: int = 0) -> list[str]:
    """What the rounds after a change do, on caches that show the rest and the new state."""
    cached = (*existing, change.new) if change.new is not None else existing
    caches = StaticCaches(controller, *cached)
    kinds = (VolumeAttributesClass, PersistentVolumeClaim, PersistentVolume)
    watch = controller.watches[[isinstance(change.obj, each) for each in kinds].index(True)]
    if watch.when is not None and not watch.when(change.obj):
        return []
    done: list[str] = []
    left = refusals

    def answer(action: Action[Any]) -> Any:
        nonlocal left
        if isinstance(action, List):
            return list(caches[action.kind].list())
        assert isinstance(action, Update)
        done.append("add" if FINALIZER in action.target.metadata.finalizers else "remove")
        left -= 1
        return Forbidden("no") if left >= 0 else USUAL

    queue = list(watch.to(caches, change))
    for key in queue:
        seen = controller.see(caches, key)
        assert seen is not None
        try:
            walk(controller.decide(seen, NOW), answer)
        except Forbidden:
            queue.append(key)
    return done


PLAIN, LEAVING = class_(protected=False), class_(deleted=True)
PV1, PV2, PV1_OTHER = volume("pv1", "vac1"), volume("pv2", "vac1"), volume("pv1", "vac2")
PVC1, PVC2, PVC1_OTHER = claim("pvc1", "vac1"), claim("pvc2", "vac1"), claim("pvc1", "vac2")


@pytest.mark.parametrize(
    ("change", "existing", "refusals", "expected"),
    [
        (Change(None, PLAIN), (), 0, ["add"]),
        (Change(None, class_()), (), 0, []),
        (Change(None, PLAIN), (), 2, ["add"] * 3),
        (Change(None, LEAVING), (), 0, ["remove"]),
        (Change(None, LEAVING), (), 2, ["remove"] * 3),
        (Change(None, LEAVING), (PV1,), 0, []),
        (Change(None, LEAVING), (PVC1,), 0, []),
        (Change(PV1, PV1_OTHER), (LEAVING,), 0, ["remove"]),
        (Change(PV1, None), (LEAVING,), 0, ["remove"]),
        (Change(PV1, None), (LEAVING, PV2), 0, []),
        (Change(PV1, None), (LEAVING, PVC1), 0, []),
        (Change(PVC1, PVC1_OTHER), (LEAVING,), 0, ["remove"]),
        (Change(PVC1, claim("pvc1", "vac2", current="vac1")), (LEAVING,), 0, []),
        (Change(PVC1, claim("pvc1", "vac2", target="vac1")), (LEAVING,), 0, []),
        (Change(PVC1, None), (LEAVING, PVC2), 0, []),
        (Change(PVC1, None), (LEAVING, PV1), 0, []),
        (Change(PVC1, None), (LEAVING,), 0, ["remove"]),
        (Change(PVC1, None), (class_(),), 0, []),
        (Change(PVC1, None), (), 0, []),
        (Change(None, PVC1), (LEAVING,), 0, []),
        (Change(claim("pvc1", "vac2", target="vac1"), claim("pvc1", "vac2")), (LEAVING,), 0, ["remove"]),
    ],
    ids=[
        "no finalizer",
        "finalizer",
        "adding it fails twice",
        "deleted",
        "removing it fails twice",
        "deleted while a volume has it",
        "deleted while a claim has it",
        "a volume changes its class",
        "a volume is deleted",
        "a volume is deleted, another still has the class",
        "a volume is deleted, a claim still has the class",
        "a claim changes its class",
        "a claim changes its class, its volume still has it",
        "a claim changes its class, its volume is being modified to it",
        "a claim is deleted, another still has the class",
        "a claim is deleted, a volume still has the class",
        "a claim is deleted",
        "a claim is deleted, the class is not",
        "a claim is deleted, the class never existed",
        "a claim comes",
        "the volume of a claim is no longer modified",
    ],
)
def test_a_class_keeps_the_finalizer_while_a_claim_or_volume_refers_to_it(
    change: Change[Any], existing: tuple[Any, ...], refusals: int, expected: list[str]
) -> None:
    """The first sixteen are upstream's."""
    assert sync(change, existing, refusals) == expected


def test_a_claim_refers_to_each_of_its_classes_once() -> None:
    assert list(classes_of_claim(claim("c", "a", "b", "c"))) == ["a", "b", "c"]
    assert list(classes_of_claim(claim("c", "a", "a", "a"))) == ["a"]
    assert list(classes_of_claim(claim("c", "", "", ""))) == []


def decide(live: dict[str, list[Any]]) -> tuple[list[Action[Any]], Verdict]:
    seen = controller.see(StaticCaches(controller, LEAVING), Key("", "vac1"))
    assert seen is not None

    def answer(action: Action[Any]) -> Any:
        return live.get(action.kind.resource, []) if isinstance(action, List) else USUAL

    return walk(controller.decide(seen, NOW), answer)


@pytest.mark.parametrize(
    "live", [{"persistentvolumes": [PV1]}, {"persistentvolumeclaims": [PVC1_OTHER, PVC1]}]
)
def test_a_class_stays_that_the_caches_do_not_show_in_use_yet(live: dict[str, list[Any]]) -> None:
    actions, verdict = decide(live)
    assert not any(isinstance(action, Update) for action in actions)
    assert verdict == Wake(CACHE_LAG, "the caches do not show all claims and volumes yet")


def test_a_class_that_the_server_does_not_show_in_use_either_goes() -> None:
    actions, verdict = decide({PERSISTENTVOLUMES.resource: [PV1_OTHER]})
    assert actions[-1] == Update(class_(deleted=True, protected=False))
    assert verdict == Rest("finalizer removed")


def test_the_controller_runs_with_its_gate_only() -> None:
    assert controller.configured(Settings()) is not None
    assert controller.configured(Settings(gates={"VolumeAttributesClass": False})) is None


# -- in a cluster ---------------------------------------------------------------------------------


def test_a_class_goes_when_the_last_claim_that_refers_to_it_is_modified() -> None:
    with Cluster(controllers=("volumeattributesclass-protection-controller",), nodes=0) as cluster:
        cluster.apply(
            [
                {
                    "apiVersion": "storage.k8s.io/v1",
                    "kind": "VolumeAttributesClass",
                    "metadata": {"name": name},
                    "driverName": "csi.example.com",
                    "parameters": {"iops": iops},
                }
                for name, iops in (("slow", "100"), ("fast", "9000"))
            ]
        )
        cluster.apply(volumes.claim("data", volumeAttributesClassName="slow"))
        bound = {"phase": "Bound", "currentVolumeAttributesClassName": "slow"}
        cluster.patch("persistentvolumeclaims", "data", {"status": bound}, subresource="status")
        cluster.settle()
        cluster.delete("volumeattributesclasses", "slow")
        cluster.patch("persistentvolumeclaims", "data", {"spec": {"volumeAttributesClassName": "fast"}})
        cluster.settle()
        assert {each.metadata.name for each in cluster.list("volumeattributesclasses")} == {"fast", "slow"}
        modified = {"currentVolumeAttributesClassName": "fast"}
        cluster.patch("persistentvolumeclaims", "data", {"status": modified}, subresource="status")
        cluster.settle()
        assert [each.metadata.name for each in cluster.list("volumeattributesclasses")] == ["fast"]
