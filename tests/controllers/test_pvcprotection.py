"""persistentvolumeclaim-protection: upstream's rows, and claims that pods use in a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from steersman.api.errors import ApiError, Conflict, Forbidden, NotFound
from steersman.api.kinds import (
    Condition,
    EphemeralVolumeSource,
    ObjectMeta,
    OwnerReference,
    PersistentVolumeClaimVolumeSource,
    Pod,
    PodSpec,
    PodStatus,
    Volume,
)
from steersman.api.kinds.storage import PersistentVolumeClaim, PersistentVolumeClaimStatus
from steersman.api.scheme import Key
from steersman.controllers.pvcprotection import (
    CACHE_LAG,
    FINALIZER,
    Observation,
    blocks_deletion,
    controller,
    unused_condition,
)
from steersman.intent.actions import Action, List, Update, UpdateStatus
from steersman.intent.controller import Change, Controller
from steersman.intent.settings import Settings
from steersman.intent.verdict import Rest, Verdict, Wake
from steersman.testing.cluster import Cluster
from steersman.testing.decision_driver import USUAL, StaticCaches, walk
from tests.harness import volumes

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
GATE = "PersistentVolumeClaimUnusedSinceTime"


def claim(
    name: str = "pvc1",
    namespace: str = "default",
    *,
    deleted: bool = False,
    protected: bool = True,
    unused: str = "",
    owner: str = "",
) -> PersistentVolumeClaim:
    reasons = {"True": "NoPodsUsingPVC", "False": "PodUsingPVC"}
    conditions = (Condition(type="Unused", status=unused, reason=reasons[unused]),) if unused else ()
    owners = (OwnerReference(kind="Pod", name="pod1", uid=owner, controller=True),) if owner else ()
    return PersistentVolumeClaim(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=name,
            deletionTimestamp=NOW if deleted else None,
            finalizers=(FINALIZER,) if protected else (),
            ownerReferences=owners,
        ),
        status=PersistentVolumeClaimStatus(conditions=conditions),
    )


def pod(
    *claims: str,
    name: str = "pod1",
    namespace: str = "default",
    uid: str = "uid1",
    node: str = "node1",
    phase: str = "Pending",
    ephemeral: str = "",
    grace: int | None = None,
) -> Pod:
    """A pod with volumes of these claims; ``grace`` is its grace period, where it is being deleted."""
    volumes = tuple(
        Volume(name=each, persistentVolumeClaim=PersistentVolumeClaimVolumeSource(claimName=each))
        for each in claims
    )
    if ephemeral:
        volumes += (Volume(name=ephemeral, ephemeral=EphemeralVolumeSource()),)
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=uid,
            deletionTimestamp=NOW if grace is not None else None,
            deletionGracePeriodSeconds=grace,
        ),
        spec=PodSpec(nodeName=node, volumes=(*volumes, Volume(name="emptyDir"))),
        status=PodStatus(phase=phase),
    )


class Rounds:
    """The rounds that follow changes, on fixed caches: what they do, in the order they do it."""

    def __init__(
        self,
        objects: Sequence[Any],
        live: Sequence[Pod] = (),
        gate: bool = False,
        *,
        refuse: int = 0,
        unlisted: int = 0,
    ) -> None:
        configured = controller.configured(Settings(gates={GATE: gate}))
        assert configured is not None
        self.controller: Controller[Observation] = configured
        self.caches = StaticCaches(configured, *objects)
        self.live = live
        self.refuse = refuse
        """How many updates fail."""
        self.unlisted = unlisted
        """How many lists of pods fail."""
        self.done: list[str] = []

    def keys(self, changes: Sequence[Change[Any]]) -> list[Key]:
        """The keys that changes enqueue, each once."""
        keys: dict[Key, None] = {}
        for change in changes:
            watch = self.controller.watches[isinstance(change.obj, Pod)]
            keys |= dict.fromkeys(watch.to(self.caches, change))
        return list(keys)

    def run(self, *changes: Change[Any]) -> list[str]:
        """Runs a round of each key, and again where one fails."""
        queue = self.keys(changes)
        while queue:
            key = queue.pop(0)
            seen = self.controller.see(self.caches, key)
            if seen is None:
                continue
            try:
                walk(self.controller.decide(seen, NOW), self._answer)
            except Forbidden:
                queue.append(key)
        return self.done

    def _answer(self, action: Action[Any]) -> Any:
        if isinstance(action, List):
            self.done.append(f"list {action.namespace}")
            if self.unlisted:
                self.unlisted -= 1
                return Forbidden("no")
            return [each for each in self.live if each.metadata.namespace == action.namespace]
        target = action.target  # type: ignore[attr-defined]
        if isinstance(action, UpdateStatus):
            (condition,) = action.status.conditions  # type: ignore[attr-defined]
            self.done.append(f"Unused={condition.status} {target.metadata.name}")
        else:
            assert isinstance(action, Update)
            verb = "add" if FINALIZER in target.metadata.finalizers else "remove"
            self.done.append(f"{verb} {target.metadata.name}")
        if self.refuse:
            self.refuse -= 1
            return Forbidden("no")
        # The caches stay as they are: each key has one round. Where a round fails, the other claims are done.
        written = USUAL
        if target.metadata.deletionTimestamp is not None and isinstance(action, Update):
            self.caches.remove(target)
        return written


def added(*objects: Any) -> tuple[Change[Any], ...]:
    return tuple(Change(None, each) for each in objects)


# -- upstream's rows ------------------------------------------------------------------------------

LEAVING = claim(deleted=True)


@pytest.mark.parametrize(
    ("claims", "pods", "live", "faults", "expected"),
    [
        (
            (claim(protected=False), claim("pvc2", "namespace-2", protected=False)),
            (),
            None,
            {},
            ["add pvc1", "add pvc2"],
        ),
        ((claim(), claim("pvc2", "namespace-2")), (), None, {}, []),
        ((claim(protected=False),), (), None, {"refuse": 2}, ["add pvc1"] * 3),
        (
            (LEAVING, claim("pvc2", "namespace-2", deleted=True)),
            (),
            None,
            {},
            ["list default", "remove pvc1", "list namespace-2", "remove pvc2"],
        ),
        (
            (LEAVING, claim("pvc2", deleted=True)),
            (),
            None,
            {},
            ["list default", "remove pvc1", "remove pvc2"],
        ),
        ((LEAVING,), (), None, {"refuse": 2}, ["list default", "remove pvc1"] * 3),
        (
            (LEAVING, claim("pvc2", deleted=True)),
            (),
            None,
            {"unlisted": 1},
            ["list default", "list default", "remove pvc1", "remove pvc2"],
        ),
        ((LEAVING,), (pod("pvc1"),), None, {}, []),
        ((LEAVING,), (pod("unrelatedPVC"),), None, {}, ["list default", "remove pvc1"]),
        (
            (LEAVING, claim("pvc2", deleted=True), claim("pvc3", deleted=True)),
            (pod("unrelatedPVC"),),
            None,
            {},
            ["list default", "remove pvc1", "remove pvc2", "remove pvc3"],
        ),
        ((LEAVING,), (pod("pvc1", phase="Failed"),), None, {}, []),
        ((LEAVING,), (), (pod("pvc1"),), {}, ["list default"]),
        (
            (LEAVING, claim("pvc2", deleted=True), claim("pvc3", "namespace-3", deleted=True)),
            (),
            (pod("pvc1"), pod("pvc3", name="pod2", namespace="namespace-3")),
            {},
            ["list default", "remove pvc2", "list namespace-3"],
        ),
    ],
    ids=[
        "no finalizer",
        "finalizer",
        "adding it fails twice",
        "deleted in two namespaces",
        "deleted in one namespace: one list is enough",
        "removing it fails twice",
        "pods cannot be listed at first",
        "a pod uses the claim",
        "a pod uses another claim and an emptyDir",
        "several claims, and a pod that uses another",
        "a pod that has finished still has it",
        "the cache does not show the pod yet",
        "some are in use and some are not",
    ],
)
def test_changes_of_claims(
    claims: tuple[PersistentVolumeClaim, ...],
    pods: tuple[Pod, ...],
    live: tuple[Pod, ...] | None,
    faults: dict[str, int],
    expected: list[str],
) -> None:
    rounds = Rounds((*claims, *pods), pods if live is None else live, False, **faults)
    assert rounds.run(*added(*claims)) == expected


HELD = pod("pvc1")


@pytest.mark.parametrize(
    ("existing", "change", "expected"),
    [
        (LEAVING, Change(None, pod("pvc1", phase="Running")), []),
        (LEAVING, Change(None, pod("pvc1", phase="Succeeded")), []),
        (LEAVING, Change(None, pod("pvc1", node="")), ["list default", "remove pvc1"]),
        (LEAVING, Change(pod("pvc1", phase="Running"), None), ["list default", "remove pvc1"]),
        (LEAVING, Change(HELD, pod(uid="uid2")), ["list default", "remove pvc1"]),
        (claim(), Change(HELD, pod(uid="uid2")), []),
        (LEAVING, Change(HELD, pod("pvc1", uid="uid2")), []),
        (LEAVING, Change(pod("pvc1", node=""), HELD), []),
    ],
    ids=[
        "a pod runs",
        "a pod has finished",
        "a pod is not scheduled",
        "a pod is deleted",
        "another pod of that name does not use the claim",
        "another pod of that name, and the claim is not being deleted",
        "another pod of that name uses the claim, too",
        "a pod is scheduled",
    ],
)
def test_changes_of_pods(existing: PersistentVolumeClaim, change: Change[Pod], expected: list[str]) -> None:
    pods = () if change.new is None else (change.new,)
    assert Rounds((existing, *pods), pods).run(change) == expected


def test_the_claim_of_an_ephemeral_volume_goes_when_its_pod_is_shut_down() -> None:
    """The pod itself may stay for its finalizers, which may wait for the claim."""
    owned = claim("pod1-scratch", deleted=True, owner="uid1")
    stopping, stopped = pod(ephemeral="scratch", grace=30), pod(ephemeral="scratch", grace=0)
    assert Rounds((owned, stopping), (stopping,)).run(Change(stopping, stopping)) == []
    assert Rounds((owned, stopped), (stopped,)).run(Change(stopping, stopped)) == [
        "list default",
        "remove pod1-scratch",
    ]


IDLE = claim(unused="True")
USED, UNUSED = "Unused=False pvc1", "Unused=True pvc1"


@pytest.mark.parametrize(
    ("existing", "pods", "late", "changes", "faults", "expected"),
    [
        (claim(), (), False, added(claim()), {}, ["list default", UNUSED]),
        (IDLE, (), False, added(IDLE), {}, []),
        (IDLE, (pod("pvc1", phase="Running"),), False, added(pod("pvc1", phase="Running")), {}, [USED]),
        (claim(), (pod("pvc1", phase="Running"),), False, added(claim()), {}, [USED]),
        (LEAVING, (), False, added(LEAVING), {}, ["list default", "remove pvc1"]),
        (claim(), (pod("pvc1", node=""),), False, added(claim()), {}, [USED]),
        (claim(), (pod("pvc1", phase="Succeeded"),), False, added(claim()), {}, ["list default", UNUSED]),
        (claim(), (pod("pvc1", phase="Failed"),), False, added(claim()), {}, ["list default", UNUSED]),
        (claim(), (), False, added(claim()), {"refuse": 2}, ["list default", UNUSED] * 3),
        (claim(), (HELD,), True, added(claim()), {}, ["list default", USED]),
        (claim(), (HELD,), False, (Change(pod("pvc1", name="pod2", uid="uid2"), None),), {}, [USED]),
        (
            claim(deleted=True, unused="True"),
            (),
            False,
            added(claim(deleted=True, unused="True")),
            {},
            ["list default", "remove pvc1"],
        ),
        (claim(), (), False, (Change(HELD, None),), {}, ["list default", UNUSED]),
        (
            claim(protected=False),
            (HELD,),
            False,
            added(claim(protected=False)),
            {},
            [USED, "add pvc1"],
        ),
        (LEAVING, (HELD,), False, added(LEAVING), {}, []),
    ],
    ids=[
        "no pods",
        "still unused",
        "a pod comes",
        "a pod runs",
        "a claim that is being deleted has no condition",
        "a pod is not scheduled yet",
        "a pod has succeeded",
        "a pod has failed",
        "the update fails twice",
        "the cache does not show the pod yet",
        "one of two pods is deleted",
        "a claim that is being deleted keeps its condition",
        "the pod is deleted",
        "the condition, then the finalizer",
        "a pod uses a claim that is being deleted",
    ],
)
def test_with_the_gate_claims_say_whether_they_are_unused(
    existing: PersistentVolumeClaim,
    pods: tuple[Pod, ...],
    late: bool,
    changes: tuple[Change[Any], ...],
    faults: dict[str, int],
    expected: list[str],
) -> None:
    rounds = Rounds((existing, *(() if late else pods)), pods, True, **faults)
    assert rounds.run(*changes) == expected


def test_without_the_gate_a_claim_has_no_condition() -> None:
    assert Rounds((claim(),)).run(*added(claim())) == []


# -- more rows ------------------------------------------------------------------------------------


OWNED = claim("pod1-scratch", deleted=True, owner="uid1")


@pytest.mark.parametrize(
    ("user", "used", "blocks"),
    [
        (pod(ephemeral="scratch"), OWNED, True),
        (pod(ephemeral="scratch", node=""), OWNED, False),
        (pod(ephemeral="scratch", uid="uid2"), OWNED, False),
        (pod(ephemeral="scratch"), claim("pod1-scratch", deleted=True), False),
        (pod(ephemeral="scratch", grace=30), OWNED, True),
        (pod(ephemeral="scratch", grace=0), OWNED, False),
        (pod("pvc1", grace=0), LEAVING, True),
        (pod("pvc1", grace=30), LEAVING, True),
        (pod("pvc1", node=""), LEAVING, False),
        (pod("pvc2", ephemeral="scratch"), LEAVING, False),
    ],
)
def test_a_scheduled_pod_blocks_the_deletion_of_its_claims(
    user: Pod, used: PersistentVolumeClaim, blocks: bool
) -> None:
    """The claim of an ephemeral volume goes once the pod only waits for its finalizers; that of others stays."""
    assert blocks_deletion(user, used) == blocks


@pytest.mark.parametrize(
    ("present", "used", "status"),
    [("", True, "False"), ("", False, "True"), ("True", True, "False"), ("False", False, "True")],
)
def test_the_condition_follows_the_use(present: str, used: bool, status: str) -> None:
    condition = unused_condition(claim(unused=present), used, NOW + timedelta(microseconds=5))
    assert condition is not None
    assert (condition.status, condition.lastTransitionTime) == (status, NOW)
    assert unused_condition(claim(unused=status), used, NOW) is None


def decide(rounds: Rounds, key: Key, answers: Any = None) -> tuple[list[Action[Any]], Verdict]:
    seen = rounds.controller.see(rounds.caches, key)
    assert seen is not None
    return walk(rounds.controller.decide(seen, NOW), answers)


def test_a_claim_whose_pod_is_not_in_the_cache_yet_gets_another_round() -> None:
    _, verdict = decide(Rounds((LEAVING,)), Key("", "default"), {List: [[pod("pvc1")]]})
    assert verdict == Wake(CACHE_LAG, "the cache does not show a pod yet that uses a claim")


@pytest.mark.parametrize("error", [Forbidden("no"), Conflict("changed")])
def test_a_claim_that_cannot_be_updated_holds_up_no_other(error: ApiError) -> None:
    rounds = Rounds([claim(name, deleted=True) for name in ("pvc1", "pvc2", "pvc3")])
    done: list[Action[Any]] = []
    seen = rounds.controller.see(rounds.caches, Key("", "default"))
    assert seen is not None
    with pytest.raises(type(error)):
        walk(rounds.controller.decide(seen, NOW), {List: [[]], Update: [error]}, recorded=done)
    targets = [action.target.metadata.name for action in done if isinstance(action, Update)]
    assert targets == ["pvc1", "pvc2", "pvc3"]


def test_a_claim_that_is_gone_is_no_error() -> None:
    _, verdict = decide(Rounds((LEAVING,)), Key("", "default"), {List: [[]], Update: NotFound("gone")})
    assert verdict == Rest("0 claims in use, 1 released")


def test_an_update_carries_the_version_that_was_decided_on() -> None:
    seen = replace(LEAVING, metadata=replace(LEAVING.metadata, resourceVersion="7"))
    actions, _ = decide(Rounds((seen,)), Key("", "default"), {List: [[]]})
    (update,) = [action for action in actions if isinstance(action, Update)]
    assert update.target.metadata.resourceVersion == "7"


def test_the_finalizer_is_added_to_the_claim_as_its_condition_was_written() -> None:
    """Otherwise its resourceVersion would be the one before."""
    rounds = Rounds((claim(protected=False),), gate=True)
    actions, _ = decide(rounds, Key("default", "pvc1"), {List: [[]]})
    _, status, update = actions
    assert isinstance(status, UpdateStatus)
    assert isinstance(update, Update)
    assert not isinstance(update.target, type(None))
    assert update.target.metadata.resourceVersion == "1000001"
    assert update.target.metadata.finalizers == (FINALIZER,)
    assert [each.type for each in update.target.status.conditions] == ["Unused"]


# -- in a cluster ---------------------------------------------------------------------------------

NAME = "persistentvolumeclaim-protection-controller"


def exists(cluster: Cluster, name: str) -> bool:
    return any(each.metadata.name == name for each in cluster.list("persistentvolumeclaims"))


def lists_of_pods(cluster: Cluster) -> int:
    rounds = cluster.manager.fleet.trace.rounds(NAME)
    return sum(step.action.startswith("list pods") for each in rounds for step in each.steps)


def test_a_claim_goes_when_the_last_pod_that_uses_it_is_gone() -> None:
    with Cluster(controllers=(NAME,), nodes=1) as cluster:
        cluster.apply([volumes.claim("data"), volumes.pod("first", "data"), volumes.pod("second", "data")])
        cluster.settle()
        cluster.delete("persistentvolumeclaims", "data")
        cluster.settle()
        assert exists(cluster, "data")
        cluster.delete("pods", "first")
        cluster.settle()
        assert exists(cluster, "data")
        cluster.delete("pods", "second")
        cluster.settle()
        assert not exists(cluster, "data")


def test_a_pod_that_is_not_scheduled_does_not_keep_its_claim() -> None:
    with Cluster(controllers=(NAME,), nodes=0) as cluster:
        cluster.apply([volumes.claim("data"), volumes.pod("waiting", "data", node="")])
        cluster.settle()
        cluster.delete("persistentvolumeclaims", "data")
        cluster.settle()
        assert not exists(cluster, "data")


def test_a_claim_that_is_older_than_the_admission_plugin_gets_the_finalizer() -> None:
    with Cluster(controllers=(NAME,), nodes=0) as cluster:
        cluster.crash_manager()
        cluster.apply(volumes.claim("data"))
        cluster.patch("persistentvolumeclaims", "data", {"metadata": {"finalizers": None}})
        cluster.start_manager()
        cluster.settle()
        assert cluster.get("persistentvolumeclaims", "data").metadata.finalizers == (FINALIZER,)


def test_the_pods_of_a_namespace_are_listed_once_for_all_claims_that_are_deleted_together() -> None:
    with Cluster(controllers=(NAME,), nodes=0) as cluster:
        cluster.apply([volumes.claim(f"data-{number}") for number in range(50)])
        cluster.settle()
        cluster.crash_manager()
        for number in range(50):
            cluster.delete("persistentvolumeclaims", f"data-{number}")
        cluster.start_manager()
        cluster.settle()
        assert not cluster.list("persistentvolumeclaims")
        assert lists_of_pods(cluster) == 1


def test_with_the_gate_a_claim_says_since_when_it_is_unused() -> None:
    with Cluster(controllers=(NAME,), nodes=1, gates={GATE: True}) as cluster:
        cluster.apply(volumes.claim("data"))
        cluster.settle()

        def condition() -> tuple[str, str, datetime | None]:
            (found,) = cluster.get("persistentvolumeclaims", "data").status.conditions
            return found.status, found.reason, found.lastTransitionTime

        assert condition()[:2] == ("True", "NoPodsUsingPVC")
        cluster.advance(hours=1)
        cluster.apply(volumes.pod("web", "data"))
        cluster.settle()
        assert condition()[:2] == ("False", "PodUsingPVC")
        cluster.advance(hours=1)
        cluster.delete("pods", "web")
        start = cluster.now
        cluster.settle()
        status, reason, since = condition()
        assert (status, reason) == ("True", "NoPodsUsingPVC")
        assert since >= start.replace(microsecond=0)
        cluster.advance(days=1)
        assert condition() == (status, reason, since)
