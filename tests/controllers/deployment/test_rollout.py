"""Whole rollouts against a small model of ReplicaSets and their pods: invariants, and that they end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from steersman.api.kinds import Deployment, ReplicaSet
from steersman.controllers.deployment import Seen, decide
from steersman.controllers.deployment.replicasets import Limits, ReplicaSets, size
from steersman.controllers.deployment.scale import is_scaling_event
from steersman.intent.actions import Action, Create, Delete, Patch, UpdateStatus
from steersman.intent.verdict import Rest, Verdict, Wake
from steersman.testing.decision_driver import walk
from tests.harness.workloads import CREATED, deployment, pod_template


@dataclass
class Model:
    """A cluster with one Deployment. Pods are counted only: per set, how many and how many available."""

    owner: Deployment
    now: datetime = CREATED
    sets: dict[str, ReplicaSet] = field(default_factory=dict)
    writes: int = 0

    # -- the API server

    def answer(self, action: Action[Any]) -> Any:
        self.writes += 1
        match action:
            case Create(body=ReplicaSet() as body):
                name = body.metadata.name
                assert name not in self.sets, "no set is created twice"
                meta = replace(
                    body.metadata,
                    uid=f"{name}-uid",
                    resourceVersion=str(self.writes),
                    creationTimestamp=self.now,
                    generation=1,
                )
                self.sets[name] = replace(body, metadata=meta)
                return self.sets[name]
            case Patch(obj, body):
                rs = self.sets[obj.metadata.name]
                assert body["metadata"]["resourceVersion"] == rs.metadata.resourceVersion
                annotations = {**rs.metadata.annotations, **body["metadata"].get("annotations", {})}
                meta = replace(
                    rs.metadata, annotations=annotations, resourceVersion=str(self.writes), generation=2
                )
                spec = replace(rs.spec, **body.get("spec", {}))
                self.sets[rs.metadata.name] = replace(rs, metadata=meta, spec=spec)
                return self.sets[rs.metadata.name]
            case UpdateStatus(_, status, annotations):
                meta = self.owner.metadata
                if annotations is not None:
                    meta = replace(meta, annotations=annotations)
                self.owner = replace(self.owner, metadata=meta, status=status)
                return self.owner
            case Delete(obj):
                assert size(self.sets[obj.metadata.name]) == 0
                del self.sets[obj.metadata.name]
        return None

    # -- the ReplicaSet controller and the nodes

    def pods(self, rs: ReplicaSet, current: int, available: int) -> None:
        status = replace(
            rs.status,
            replicas=current,
            readyReplicas=available,
            availableReplicas=available,
            terminatingReplicas=0,
            observedGeneration=rs.metadata.generation,
        )
        self.sets[rs.metadata.name] = replace(rs, status=status)

    def sync(self, rs: ReplicaSet) -> None:
        """The set gets as many pods as it wants; those that are not available go first."""
        self.pods(rs, size(rs), min(rs.status.availableReplicas, size(rs)))

    def ready(self, rs: ReplicaSet, count: int) -> None:
        """Some more of its pods become available."""
        self.pods(rs, rs.status.replicas, min(rs.status.replicas, rs.status.availableReplicas + count))

    def breaks(self, rs: ReplicaSet) -> None:
        """One of its pods is not available any more."""
        self.pods(rs, rs.status.replicas, max(0, rs.status.availableReplicas - 1))

    # -- the deployment controller

    def round(self) -> Verdict:
        self.now += timedelta(seconds=1)
        running = {rs.metadata.uid: rs.status.replicas for rs in self.sets.values()}
        seen = Seen(self.owner, tuple(self.sets.values()), (), running)
        return walk(decide(seen, self.now), self.answer)[1]

    @property
    def state(self) -> ReplicaSets:
        return ReplicaSets.of(self.owner, self.sets.values())

    @property
    def safe(self) -> int:
        """How many pods stay available when every set has gone down to its size."""
        return sum(min(rs.status.availableReplicas, size(rs)) for rs in self.sets.values())

    def finish(self) -> Verdict:
        """Everything goes well from now on."""
        for _ in range(200):
            verdict = self.round()
            if isinstance(verdict, Rest) and verdict.because.endswith("updated and available"):
                return verdict
            for rs in list(self.sets.values()):
                self.sync(rs)
            for rs in list(self.sets.values()):
                self.ready(rs, 1)
        raise AssertionError(f"no end: {verdict}; {list(map(size, self.sets.values()))}")


def rolled_out(owner: Deployment) -> Model:
    model = Model(owner)
    model.finish()
    return model


def change(model: Model, **spec: Any) -> None:
    model.owner = replace(
        model.owner,
        metadata=replace(model.owner.metadata, generation=model.owner.metadata.generation + 1),
        spec=replace(model.owner.spec, **spec),
    )


bounds = st.one_of(st.integers(0, 5), st.sampled_from(["0%", "1%", "25%", "50%", "100%"]))
happenings = st.lists(
    st.one_of(
        st.tuples(st.just("round"), st.just(0)),
        st.tuples(st.just("sync"), st.integers(0, 5)),
        st.tuples(st.just("ready"), st.integers(0, 5)),
        st.tuples(st.just("break"), st.integers(0, 5)),
        st.tuples(st.just("template"), st.integers(2, 4)),
        st.tuples(st.just("scale"), st.integers(0, 12)),
    ),
    max_size=40,
)


def happen(model: Model, what: str, number: int) -> None:
    sets = list(model.sets.values())
    rs = sets[number % len(sets)] if sets else None
    match what:
        case "round":
            model.round()
        case "template":
            change(model, template=pod_template(f"v{number}"))
        case "scale":
            change(model, replicas=number)
        case "sync" if rs is not None:
            model.sync(rs)
        case "ready" if rs is not None:
            model.ready(rs, 2)
        case "break" if rs is not None:
            model.breaks(rs)


@settings(max_examples=100, deadline=None)
@given(replicas=st.integers(0, 10), surge=bounds, unavailable=bounds, story=happenings)
def test_a_rolling_update_keeps_its_bounds_whatever_happens_and_ends(
    replicas: int, surge: int | str, unavailable: int | str, story: list[tuple[str, int]]
) -> None:
    model = rolled_out(deployment(replicas, surge=surge, unavailable=unavailable, history=2))
    for what, number in story:
        total, safe, scaling = model.state.total_size, model.safe, is_scaling_event(model.state)
        happen(model, what, number)
        limits = Limits.of(model.owner)
        if what == "round":
            assert model.state.total_size <= max(total, limits.max_total)
            if not scaling:
                assert model.safe >= min(safe, limits.min_available)
            assert not is_scaling_event(model.state)
    verdict = model.finish()
    assert isinstance(verdict, Rest)
    sets, wanted = model.state, model.owner.spec.replicas
    assert sets.new is not None
    assert [size(rs) for rs in sets] == [0] * len(sets.old) + [wanted]
    model.round()
    assert len(model.state.old) <= 2
    revisions = [int(rs.metadata.annotations["deployment.kubernetes.io/revision"]) for rs in model.state]
    assert max(revisions) == revisions[-1]
    assert len(set(revisions)) == len(revisions)
    shown = model.owner.metadata.annotations["deployment.kubernetes.io/revision"]
    assert shown == str(revisions[-1])
    before = model.writes
    model.round()
    assert model.writes == before, "a finished rollout writes nothing"


@settings(max_examples=50, deadline=None)
@given(replicas=st.integers(0, 6), story=happenings)
def test_recreate_never_mixes_old_and_new_pods_and_ends(replicas: int, story: list[tuple[str, int]]) -> None:
    model = rolled_out(deployment(replicas, strategy="Recreate"))
    for what, number in story:
        before = model.state
        happen(model, what, number)
        if what == "round" and before.new is None and model.state.new is not None:
            assert all(rs.status.replicas == 0 and size(rs) == 0 for rs in before.old)
    model.finish()
    assert [size(rs) for rs in model.state.old] == [0] * len(model.state.old)


def steps(model: Model) -> Iterator[tuple[int, int]]:
    """The sizes of the old and the new set after each round of a rollout that goes well."""
    for _ in range(100):
        verdict = model.round()
        sets = model.state
        assert sets.new is not None
        yield sum(map(size, sets.old)), size(sets.new)
        if isinstance(verdict, Rest) and verdict.because.endswith("updated and available"):
            return
        for rs in list(model.sets.values()):
            model.sync(rs)
        for rs in list(model.sets.values()):
            model.ready(rs, 10)


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "expected"),
    [
        pytest.param(2, 0, "1%", [(1, 1), (0, 2)], id="one for one"),
        pytest.param(1, 0, "1%", [(0, 1)], id="the only one makes room at once"),
        pytest.param(2, "1%", "25%", [(2, 1), (1, 2), (0, 2)], id="one more, then one for one"),
        pytest.param(1, "1%", "0%", [(1, 1), (0, 1)], id="the only one goes last"),
        pytest.param(4, "100%", 0, [(4, 4), (0, 4)], id="blue and green"),
    ],
)
def test_the_steps_of_a_rollout(
    replicas: int, surge: int | str, unavailable: int | str, expected: list[tuple[int, int]]
) -> None:
    model = rolled_out(deployment(replicas, surge=surge, unavailable=unavailable))
    change(model, template=pod_template("v2"))
    seen = list(steps(model))
    assert [step for i, step in enumerate(seen) if i == 0 or step != seen[i - 1]] == expected


def test_a_rollout_that_is_stuck_wakes_at_its_deadline_and_then_rests() -> None:
    model = rolled_out(deployment(2, surge=1, unavailable=0, deadline=30))
    change(model, template=pod_template("broken"))
    model.round()
    for rs in list(model.sets.values()):
        model.sync(rs)
    verdict = model.round()
    assert isinstance(verdict, Wake)
    model.now += verdict.after - timedelta(seconds=1)
    verdict = model.round()
    assert isinstance(verdict, Rest)
    assert verdict.because == (
        "rollout made no progress for 30s: 0 of 2 new replicas available, 1 created, 2 old pods remaining"
    )
