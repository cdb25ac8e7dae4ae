"""The steps of a scenario: what a user or a failing node does to a cluster, and what the cluster is expected to do.

A step is a map with one verb and its fields. Its target is written as in kubectl: ``deployment/web``, or a kind with a
selection of its objects: ``pods`` with ``selector: app=web`` and ``first: 1`` (the oldest).

| verb | fields | |
|---|---|---|
| ``apply`` | | server-side apply of manifests |
| ``create`` | | creates manifests, which must not exist |
| ``patch`` | ``with``, ``subresource`` | a strategic merge patch, or a JSON patch where it is a list |
| ``status`` | ``with`` | a patch of the status; the value ``now`` is replaced by the time |
| ``image`` | ``to`` | sets the image of the first container of a workload |
| ``scale`` | ``to`` | sets the number of replicas |
| ``own`` | ``owner``, ``blockOwnerDeletion`` | sets the ownerReference of the target |
| ``bind`` | ``to`` | binds a claim and a volume to each other, where persistentvolume-binder-controller does not run |
| ``delete`` | ``propagation``, ``grace`` | |
| ``node`` | ``do`` | ``fail``, ``recover``, ``reboot``, ``cordon``, ``uncordon``, ``drain`` |
| ``instance`` | ``do`` | ``stop``, ``start``, ``terminate``: what the cloud says of a node's instance |
| ``advance`` | | a duration, such as ``90s`` or ``3h`` |
| ``settle`` | | waits until nothing is written for ten seconds, or for the given duration |
| ``until`` | ``has``, ``count``, ``absent``, ``within`` | waits until that holds; an hour at most |
| ``expect`` | ``has``, ``count``, ``absent`` | that holds now |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import msgspec

from steersman.api.errors import ApiError, NotFound
from steersman.cloud.local import LocalProvider
from steersman.explore.matching import mismatches, short
from steersman.server.codec.convert import to_builtins
from steersman.sim.kubelet.behaviour import seconds as span
from steersman.testing.cluster import Cluster, WaitTimeout

Body: TypeAlias = Mapping[str, Any]

HORIZON = 10.0
LIMIT = 14_400.0
"""Maximum seconds for a cluster to settle."""
WITHIN = 3600.0
TARGET = ("namespace", "selector", "first")


class InvalidScenario(ValueError):
    """An invalid scenario. The message says where and why."""


class StepFailed(AssertionError):
    """A step that could not be done, or whose expectation is not met."""


class Timing(msgspec.Struct, frozen=True):
    """How long steps wait: with faults everything takes longer."""

    horizon: float = 0.0
    """Minimum seconds without a write for a cluster to count as settled."""
    pause: float = 0.0
    """Seconds a settle step waits in any case: a manager that cannot reach its server writes nothing, too."""


class Step(msgspec.Struct, frozen=True):
    """A step."""

    verb: str
    target: Any
    body: Body

    def __str__(self) -> str:
        target = self.target if isinstance(self.target, str | int | float) else ""
        return f"{self.verb} {target}".rstrip()

    def run(self, cluster: Cluster, timing: Timing) -> None:
        """Run it. Raises `StepFailed`."""
        try:
            VERBS[self.verb].run(StepContext(cluster, self, timing))
        except (ApiError, WaitTimeout) as error:
            raise StepFailed(f"{self}: {error}") from error


class StepContext(msgspec.Struct, frozen=True):
    """A step in a cluster."""

    cluster: Cluster
    step: Step
    timing: Timing

    @property
    def namespace(self) -> str:
        return str(self.step.body.get("namespace", "default"))

    @property
    def target(self) -> tuple[str, str]:
        """The kind and name of the target; the name may be empty."""
        kind, _, name = str(self.step.target).partition("/")
        return kind, name

    def objects(self) -> list[Any]:
        """The target objects."""
        kind, name = self.target
        if name:
            return [self.cluster.get(kind, name, self.namespace)]
        selector = str(self.step.body.get("selector", ""))
        found = self.cluster.list(kind, self.namespace, selector)
        first = self.step.body.get("first")
        if first is None:
            return found
        # By age, not by name: names are random.
        found.sort(key=lambda obj: (obj.metadata.creationTimestamp, int(obj.metadata.resourceVersion)))
        if len(found) < first:
            raise StepFailed(f"{self.step}: {len(found)} objects found, not {first}")
        return found[:first]

    def each(self) -> Iterator[tuple[str, str, str]]:
        """Kind, name and namespace of the target objects."""
        kind, _ = self.target
        for obj in self.objects():
            meta = to_builtins(obj)["metadata"]
            yield kind, meta["name"], meta.get("namespace") or self.namespace

    def mismatch(self) -> str:
        """How the target objects differ from the expectation; empty where they do not."""
        body = self.step.body
        try:
            found = self.objects()
        except NotFound:
            found = []
        if body.get("absent"):
            return f"{len(found)} found" if found else ""
        if "count" in body:
            wrong = next(mismatches(body["count"], len(found), "count"), "")
            if wrong:
                return wrong
        elif not found:
            return "not found"
        for obj in found if "has" in body else ():
            wrong = "; ".join(mismatches(body["has"], to_builtins(obj)))
            if wrong:
                return f"{obj.metadata.name}: {wrong}"
        return ""


# -- verbs ------------------------------------------------------------------------------------


def _apply(context: StepContext) -> None:
    context.cluster.apply(context.step.target, context.namespace)


def _create(context: StepContext) -> None:
    context.cluster.create(context.step.target, context.namespace)


def _patch(context: StepContext) -> None:
    body, subresource = context.step.body["with"], str(context.step.body.get("subresource", ""))
    for kind, name, namespace in context.each():
        context.cluster.patch(kind, name, body, namespace, subresource=subresource)


def _status(context: StepContext) -> None:
    now = context.cluster.now.strftime("%Y-%m-%dT%H:%M:%SZ")
    body = {"status": _with_time(context.step.body["with"], now)}
    for kind, name, namespace in context.each():
        context.cluster.patch(kind, name, body, namespace, subresource="status")


def _with_time(value: Any, now: str) -> Any:
    if isinstance(value, Mapping):
        return {field: _with_time(inner, now) for field, inner in value.items()}
    if isinstance(value, list):
        return [_with_time(inner, now) for inner in value]
    return now if value == "now" else value


def _image(context: StepContext) -> None:
    for obj in context.objects():
        kind, _ = context.target
        (first, *_) = to_builtins(obj)["spec"]["template"]["spec"]["containers"]
        container = {"name": first["name"], "image": context.step.body["to"]}
        body = {"spec": {"template": {"spec": {"containers": [container]}}}}
        context.cluster.patch(kind, obj.metadata.name, body, context.namespace)


def _scale(context: StepContext) -> None:
    for kind, name, namespace in context.each():
        context.cluster.scale(kind, name, context.step.body["to"], namespace)


def _own(context: StepContext) -> None:
    body = context.step.body
    word, _, owner = str(body["owner"]).partition("/")
    owner_kind = context.cluster.kind(word)
    reference = {
        "apiVersion": owner_kind.api_version,
        "kind": owner_kind.name,
        "name": owner,
        "uid": to_builtins(context.cluster.get(word, owner, context.namespace))["metadata"]["uid"],
        "blockOwnerDeletion": bool(body.get("blockOwnerDeletion", False)),
    }
    for kind, name, namespace in context.each():
        context.cluster.patch(kind, name, {"metadata": {"ownerReferences": [reference]}}, namespace)


def _bind(context: StepContext) -> None:
    kind, name = context.target
    volume_kind, _, volume = str(context.step.body["to"]).partition("/")
    cluster, namespace = context.cluster, context.namespace
    reference = {
        "namespace": namespace,
        "name": name,
        "uid": to_builtins(cluster.get(kind, name, namespace))["metadata"]["uid"],
    }
    capacity = to_builtins(cluster.get(volume_kind, volume))["spec"]["capacity"]
    cluster.patch(volume_kind, volume, {"spec": {"claimRef": reference}})
    cluster.patch(kind, name, {"spec": {"volumeName": volume}}, namespace)
    bound: Body = {"status": {"phase": "Bound"}}
    cluster.patch(volume_kind, volume, bound, subresource="status")
    claim = {"status": {**bound["status"], "capacity": capacity}}
    cluster.patch(kind, name, claim, namespace, subresource="status")


def _delete(context: StepContext) -> None:
    body = context.step.body
    for kind, name, namespace in list(context.each()):
        context.cluster.delete(
            kind, name, namespace, propagation=body.get("propagation"), grace=body.get("grace")
        )


def _node(context: StepContext) -> None:
    node = context.cluster.node(str(context.step.target))
    operations: Mapping[str, Callable[[], None]] = {
        "fail": node.fail,
        "recover": node.recover,
        "reboot": node.reboot,
        "cordon": node.cordon,
        "uncordon": node.uncordon,
        "drain": node.drain,
    }
    operations[context.step.body["do"]]()


def _instance(context: StepContext) -> None:
    name, cloud = str(context.step.target), context.cluster.plan.cloud
    instances = cloud.instances if isinstance(cloud, LocalProvider) else None
    if instances is None:
        raise StepFailed(f"{context.step}: the cloud has no instances (cluster: {{cloud: [instances]}})")
    operations: Mapping[str, Callable[[], None]] = {
        "stop": lambda: instances.stopped.add(name),
        "start": lambda: instances.stopped.discard(name),
        "terminate": lambda: instances.terminated.add(name),
    }
    operations[context.step.body["do"]]()


def _advance(context: StepContext) -> None:
    context.cluster.advance(seconds=seconds(context.step.target))


def _settle(context: StepContext) -> None:
    target = context.step.target
    horizon = max(HORIZON if target is None else seconds(target), context.timing.horizon)
    context.cluster.settle(horizon, limit=LIMIT)
    if context.timing.pause:
        context.cluster.advance(seconds=context.timing.pause)
        context.cluster.settle(horizon, limit=LIMIT)


def _until(context: StepContext) -> None:
    within = seconds(context.step.body.get("within", WITHIN)) + context.timing.horizon
    try:
        context.cluster.wait_until(lambda: not context.mismatch(), within)
    except WaitTimeout:
        raise StepFailed(f"{context.step}: not within {within:g} s: {context.mismatch()}") from None


def _expect(context: StepContext) -> None:
    wrong = context.mismatch()
    if wrong:
        raise StepFailed(f"{context.step}: {wrong}")


class Verb(msgspec.Struct, frozen=True):
    """A verb: its function, and its required and optional fields."""

    run: Callable[[StepContext], None]
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()


VERBS: Mapping[str, Verb] = {
    "apply": Verb(_apply, optional=("namespace",)),
    "create": Verb(_create, optional=("namespace",)),
    "patch": Verb(_patch, ("with",), ("subresource", *TARGET)),
    "status": Verb(_status, ("with",), TARGET),
    "image": Verb(_image, ("to",), TARGET),
    "scale": Verb(_scale, ("to",), TARGET),
    "own": Verb(_own, ("owner",), ("blockOwnerDeletion", *TARGET)),
    "bind": Verb(_bind, ("to",), ("namespace",)),
    "delete": Verb(_delete, optional=("propagation", "grace", *TARGET)),
    "node": Verb(_node, ("do",)),
    "instance": Verb(_instance, ("do",)),
    "advance": Verb(_advance),
    "settle": Verb(_settle),
    "until": Verb(_until, optional=("has", "count", "absent", "within", *TARGET)),
    "expect": Verb(_expect, optional=("has", "count", "absent", *TARGET)),
}


def read(given: object) -> Step:
    """Parse a step. Raises `InvalidScenario`."""
    if isinstance(given, str):
        given = {given: None}
    if not isinstance(given, Mapping):
        raise InvalidScenario(f"a step is a map such as `settle: 10s`, not {short(given)}")
    named = [word for word in given if word in VERBS]
    if len(named) != 1:
        raise InvalidScenario(f"a step has exactly one of {', '.join(VERBS)}: {short(given)}")
    verb = VERBS[named[0]]
    body = {field: value for field, value in given.items() if field != named[0]}
    missing = [field for field in verb.required if field not in body]
    unknown = [field for field in body if field not in (*verb.required, *verb.optional)]
    if missing or unknown:
        problems = [f"needs {field}" for field in missing] + [f"has no field {field}" for field in unknown]
        raise InvalidScenario(f"{named[0]} {' and '.join(problems)}: {short(given)}")
    return Step(named[0], given[named[0]], body)


def seconds(value: object) -> float:
    """Parse a duration: a number of seconds, or text such as ``1m30s`` or ``2d``. Raises `InvalidScenario`."""
    found: float | None = None
    if isinstance(value, int | float):
        found = float(value)
    elif isinstance(value, str):
        days = value.removesuffix("d")
        found = 86_400.0 * int(days) if days.isdecimal() and days != value else span(value)
    if found is None:
        raise InvalidScenario(f"{value!r} is not a duration such as 90s or 3h")
    return found
