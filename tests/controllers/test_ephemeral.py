"""ephemeral-volume: upstream's rows, and pods with ephemeral volumes in a cluster."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from steersman.api.errors import AlreadyExists, ApiError, Conflict, Forbidden, NotFound
from steersman.api.kinds import (
    EphemeralVolumeSource,
    ObjectMeta,
    OwnerReference,
    PersistentVolumeClaimTemplate,
    PersistentVolumeClaimVolumeSource,
    Pod,
    PodSpec,
    Volume,
)
from steersman.api.kinds.storage import NewClaim, PersistentVolumeClaim
from steersman.api.scheme import Key
from steersman.controllers.ephemeral import CREATED, FAILED, controller
from steersman.intent.actions import Action, Create, Emit, Read
from steersman.intent.controller import Change
from steersman.intent.metrics import Measure
from steersman.intent.verdict import InvalidSpec
from steersman.testing.cluster import Cluster
from steersman.testing.decision_driver import USUAL, StaticCaches, walk
from tests.harness import volumes

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
SPEC = msgspec.Raw(b'{"accessModes":["ReadWriteOnce"],"aFieldOfTheFuture":1}')
TEMPLATE = PersistentVolumeClaimTemplate(
    metadata=ObjectMeta(labels={"app": "web"}, annotations={"note": "scratch"}, name="ignored"), spec=SPEC
)
SCRATCH = Volume(name="scratch", ephemeral=EphemeralVolumeSource(volumeClaimTemplate=TEMPLATE))
CACHE = Volume(name="cache", ephemeral=EphemeralVolumeSource(volumeClaimTemplate=TEMPLATE))
NAMED = Volume(name="data", persistentVolumeClaim=PersistentVolumeClaimVolumeSource(claimName="data"))
EMPTY_DIR = Volume(name="temp")


def pod(*mounted: Volume, uid: str = "uid", deleted: bool = False) -> Pod:
    return Pod(
        metadata=ObjectMeta(
            name="web", namespace="shop", uid=uid, deletionTimestamp=NOW if deleted else None
        ),
        spec=PodSpec(volumes=mounted),
    )


def claim(name: str = "web-scratch", namespace: str = "shop", owner: str = "") -> PersistentVolumeClaim:
    owners = (OwnerReference(kind="Pod", name="web", uid=owner, controller=True),) if owner else ()
    return PersistentVolumeClaim(metadata=ObjectMeta(name=name, namespace=namespace, ownerReferences=owners))


class Round:
    """One round of the pod ``shop/web``: the claims it creates, what it measures, its events and its error."""

    def __init__(self, *objects: Any, refusal: ApiError | None = None, live: Any = None) -> None:
        self.error: Exception | None = None
        actions: list[Action[Any]] = []
        seen = controller.see(StaticCaches(controller, *objects), Key("shop", "web"))

        def answer(action: Action[Any]) -> Any:
            if isinstance(action, Create) and refusal is not None:
                return refusal
            return live if isinstance(action, Read) else USUAL

        if seen is not None:
            try:
                _, self.verdict = walk(controller.decide(seen, NOW), answer, recorded=actions)
            except (ApiError, InvalidSpec) as error:
                self.error = error
        self.created = [each.body for each in actions if isinstance(each, Create)]
        self.measured = [each.metric for each in actions if isinstance(each, Measure)]
        self.events = [(each.type, each.reason, each.message) for each in actions if isinstance(each, Emit)]

    @property
    def names(self) -> list[str]:
        bodies = [each for each in self.created if isinstance(each, NewClaim)]
        return [each.metadata.name for each in bodies]


NOT_OWNED = "PVC shop/web-scratch was not created for pod shop/web (pod is not owner)"


@pytest.mark.parametrize(
    ("objects", "refusal", "names", "measured", "error"),
    [
        ((pod(SCRATCH),), None, ["web-scratch"], [CREATED], None),
        ((), None, [], [], None),
        ((pod(SCRATCH, deleted=True),), None, [], [], None),
        ((pod(),), None, [], [], None),
        ((pod(SCRATCH), claim(namespace="other")), None, ["web-scratch"], [CREATED], None),
        ((pod(SCRATCH), claim()), None, [], [], NOT_OWNED),
        (
            (pod(SCRATCH),),
            Conflict("fake conflict"),
            ["web-scratch"],
            [CREATED, FAILED],
            "create PVC web-scratch: fake conflict",
        ),
        ((pod(SCRATCH), claim(owner="uid")), None, [], [], None),
        ((pod(SCRATCH), claim(owner="earlier")), None, [], [], NOT_OWNED),
        ((pod(NAMED, EMPTY_DIR),), None, [], [], None),
        (
            (pod(NAMED, SCRATCH, EMPTY_DIR, CACHE),),
            None,
            ["web-scratch", "web-cache"],
            [CREATED, CREATED],
            None,
        ),
        ((pod(SCRATCH, CACHE), claim(owner="uid")), None, ["web-cache"], [CREATED], None),
        ((pod(SCRATCH, CACHE), claim()), None, [], [], NOT_OWNED),
        (
            (pod(SCRATCH, CACHE),),
            Forbidden("exceeded quota"),
            ["web-scratch"],
            [CREATED, FAILED],
            "create PVC web-scratch: exceeded quota",
        ),
    ],
    ids=[
        "create",
        "no such pod",
        "pod is being deleted",
        "no volumes",
        "a claim of another namespace",
        "a claim of another owner",
        "the creation fails",
        "the claim exists",
        "a claim of an earlier pod of that name",
        "other volumes",
        "two ephemeral volumes",
        "one of two claims exists",
        "the first claim is another's: the round ends",
        "quota",
    ],
)
def test_the_claims_of_a_pod_are_created(
    objects: tuple[Any, ...],
    refusal: ApiError | None,
    names: list[str],
    measured: list[Any],
    error: str | None,
) -> None:
    """The first seven are upstream's."""
    round_ = Round(*objects, refusal=refusal)
    assert round_.names == names
    assert round_.measured == measured
    assert (str(round_.error) if round_.error is not None else None) == error
    expected = [] if error is None else [("Warning", "FailedBinding", f"ephemeral volume scratch: {error}")]
    assert round_.events == expected


def test_a_claim_has_all_that_the_template_has_and_belongs_to_the_pod() -> None:
    (created,) = Round(pod(SCRATCH)).created
    owner = OwnerReference(
        apiVersion="v1", kind="Pod", name="web", uid="uid", controller=True, blockOwnerDeletion=True
    )
    assert created == NewClaim(
        metadata=ObjectMeta(
            name="web-scratch",
            namespace="shop",
            labels={"app": "web"},
            annotations={"note": "scratch"},
            ownerReferences=(owner,),
        ),
        spec=SPEC,
    )


@pytest.mark.parametrize(
    ("live", "error"),
    [
        (claim(owner="uid"), None),
        (claim(owner="another"), NOT_OWNED),
        (NotFound("gone again"), "gone again"),
    ],
)
def test_a_claim_that_the_cache_does_not_show_is_read(live: Any, error: str | None) -> None:
    """It may be the pod's own, from a manager that ended before it saw it."""
    round_ = Round(pod(SCRATCH), refusal=AlreadyExists("there"), live=live)
    assert (str(round_.error) if round_.error is not None else None) == error
    assert len(round_.events) == (error is not None)
    assert round_.measured == [CREATED, FAILED]


def test_a_volume_without_a_template_fails_no_process() -> None:
    odd = Volume(name="odd", ephemeral=EphemeralVolumeSource())
    assert Round(pod(odd)).names == ["web-odd"]


@pytest.mark.parametrize(
    ("change", "keys"),
    [
        (Change(None, pod(SCRATCH)), ["web"]),
        (Change(None, pod(NAMED)), []),
        (Change(None, pod(SCRATCH, deleted=True)), []),
        (Change(pod(SCRATCH), pod(SCRATCH)), []),
        (Change(pod(uid="earlier"), pod(SCRATCH)), ["web"]),
        (Change(pod(SCRATCH), None), []),
        (Change(claim(owner="uid"), None), ["web"]),
        (Change(claim(), None), ["web"]),
        (Change(claim("data"), None), []),
        (Change(claim("other"), None), []),
        (Change(None, claim()), []),
    ],
)
def test_new_pods_and_deleted_claims_lead_to_a_round(change: Change[Any], keys: list[str]) -> None:
    watch = controller.watches[isinstance(change.obj, PersistentVolumeClaim)]
    existing = () if change.new is None and isinstance(change.obj, Pod) else (pod(SCRATCH),)
    found = watch.to(StaticCaches(controller, *existing), change)
    assert [key.name for key in found] == keys


# -- in a cluster ---------------------------------------------------------------------------------

CREW = (
    "ephemeral-volume-controller",
    "garbage-collector-controller",
    "persistentvolumeclaim-protection-controller",
)


def names(cluster: Cluster) -> list[str]:
    return [each.metadata.name for each in cluster.list("persistentvolumeclaims")]


def reasons(cluster: Cluster) -> list[str]:
    return [each.reason for each in cluster.list("events") if each.source.component == "ephemeral_volume"]


def test_the_claim_of_an_ephemeral_volume_lives_as_long_as_its_pod() -> None:
    with Cluster(controllers=CREW, nodes=1) as cluster:
        cluster.apply(volumes.pod("web", ephemeral="scratch"))
        cluster.settle()
        found = cluster.get("persistentvolumeclaims", "web-scratch")
        assert [(each.kind, each.name, each.controller) for each in found.metadata.ownerReferences] == [
            ("Pod", "web", True)
        ]
        assert found.spec.resources.requests == {"storage": "1Gi"}
        cluster.delete("pods", "web")
        cluster.settle()
        assert names(cluster) == []


def test_a_claim_that_is_deleted_before_its_pod_is_scheduled_is_created_again() -> None:
    with Cluster(controllers=CREW, nodes=0) as cluster:
        cluster.apply(volumes.pod("web", ephemeral="scratch", node=""))
        cluster.settle()
        first = cluster.get("persistentvolumeclaims", "web-scratch")
        cluster.delete("persistentvolumeclaims", "web-scratch")
        cluster.settle()
        second = cluster.get("persistentvolumeclaims", "web-scratch")
        assert second.metadata.uid != first.metadata.uid
        assert second.metadata.ownerReferences == first.metadata.ownerReferences


def test_a_pod_waits_for_the_name_of_its_claim_and_says_so() -> None:
    with Cluster(controllers=CREW, nodes=1) as cluster:
        cluster.apply([volumes.claim("web-scratch"), volumes.pod("web", ephemeral="scratch")])
        cluster.settle()
        assert cluster.get("persistentvolumeclaims", "web-scratch").metadata.ownerReferences == ()
        assert reasons(cluster) == ["FailedBinding"]
        cluster.delete("persistentvolumeclaims", "web-scratch")
        cluster.settle()
        (owner,) = cluster.get("persistentvolumeclaims", "web-scratch").metadata.ownerReferences
        assert owner.name == "web"


def test_a_pod_of_the_same_name_gets_a_claim_of_its_own() -> None:
    with Cluster(controllers=CREW, nodes=1) as cluster:
        cluster.apply(volumes.pod("web", ephemeral="scratch"))
        cluster.settle()
        cluster.delete("pods", "web", grace=0)
        cluster.apply(volumes.pod("web", ephemeral="scratch"))
        cluster.settle(60)
        (owner,) = cluster.get("persistentvolumeclaims", "web-scratch").metadata.ownerReferences
        assert owner.uid == cluster.get("pods", "web").metadata.uid
