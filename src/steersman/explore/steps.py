"""The steps of a scenario: what a user, or fate, does to a cluster, and what is expected of it then.

A step is a map with one verb and what belongs to it. What it is about is written as kubectl would:
``deployment/web``, or a kind and which of its objects: ``pods`` with ``where: app=web`` and ``first: 1``.

| verb | with | |
|---|---|---|
| ``apply`` | | manifests, applied by the server |
| ``create`` | | manifests that must not be there yet |
| ``patch`` | ``with``, ``subresource`` | a strategic merge patch, or a JSON patch where it is a list |
| ``status`` | ``with`` | the same, of the status; ``now`` in it stands for the time |
| ``image`` | ``to`` | another image for the first container of a workload |
| ``scale`` | ``to`` | so many replicas |
| ``own`` | ``by``, ``blocking`` | an owner for what it is about; ``blocking``: which the owner waits for in the foreground |
| ``delete`` | ``propagation``, ``grace`` | |
| ``node`` | ``do`` | ``fail``, ``recover``, ``reboot``, ``cordon``, ``uncordon``, ``drain`` |
| ``advance`` | | a span of time, such as ``90s`` or ``3h`` |
| ``settle`` | | until nothing is written for a while: ten seconds, or as long as it says |
| ``until`` | ``has``, ``count``, ``gone``, ``within`` | until that is so; an hour at most |
| ``expect`` | ``has``, ``count``, ``gone`` | that is so now |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from steersman.api.errors import ApiError, NotFound
from steersman.explore.matching import mismatches, short
from steersman.server.codec.convert import plain
from steersman.sim.kubelet.behaviour import seconds as span
from steersman.testing.cluster import Cluster, Unmet

Body: TypeAlias = Mapping[str, Any]

HORIZON = 10.0
LIMIT = 14_400.0
"""The longest anything may take to come to rest, in seconds."""
WITHIN = 3600.0
ABOUT = ("namespace", "where", "first")


class BadScenario(ValueError):
    """A scenario that makes no sense. The message says where and why."""


class Missed(AssertionError):
    """A step that could not be done, or what it expects is not so."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How patiently a scenario is played: with faults everything takes longer."""

    horizon: float = 0.0
    """How long at least nothing may happen where a step waits for rest, in seconds."""
    pause: float = 0.0
    """How long such a step waits in any case: a manager that cannot reach its server is at rest, too."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step."""

    verb: str
    about: Any
    body: Body

    def __str__(self) -> str:
        about = self.about if isinstance(self.about, str | int | float) else ""
        return f"{self.verb} {about}".rstrip()

    def do(self, cluster: Cluster, pace: Pace) -> None:
        """Do it. Raises `Missed`."""
        try:
            VERBS[self.verb].do(Doing(cluster, self, pace))
        except (ApiError, Unmet) as error:
            raise Missed(f"{self}: {error}") from error


@dataclass(frozen=True, slots=True)
class Doing:
    """A step in a cluster."""

    cluster: Cluster
    step: Step
    pace: Pace

    @property
    def namespace(self) -> str:
        return str(self.step.body.get("namespace", "default"))

    @property
    def target(self) -> tuple[str, str]:
        """The kind and name it is about; the name may be empty."""
        kind, _, name = str(self.step.about).partition("/")
        return kind, name

    def objects(self) -> list[Any]:
        """What it is about, as it is now."""
        kind, name = self.target
        if name:
            return [self.cluster.get(kind, name, self.namespace)]
        where = str(self.step.body.get("where", ""))
        found = self.cluster.list(kind, self.namespace, where)
        first = self.step.body.get("first")
        if first is None:
            return found
        # By age, not by name: names are drawn by lot.
        found.sort(key=lambda obj: (obj.metadata.creationTimestamp, int(obj.metadata.resourceVersion)))
        if len(found) < first:
            raise Missed(f"{self.step}: there are {len(found)}, not {first}")
        return found[:first]

    def each(self) -> Iterator[tuple[str, str, str]]:
        """Kind, name and namespace of what it is about."""
        kind, _ = self.target
        for obj in self.objects():
            meta = plain(obj)["metadata"]
            yield kind, meta["name"], meta.get("namespace") or self.namespace

    def unlike(self) -> str:
        """What is not as the step says; empty where all is."""
        body = self.step.body
        try:
            found = self.objects()
        except NotFound:
            found = []
        if body.get("gone"):
            return f"{len(found)} are there" if found else ""
        if "count" in body:
            wrong = next(mismatches(body["count"], len(found), "count"), "")
            if wrong:
                return wrong
        elif not found:
            return "there is none"
        for obj in found if "has" in body else ():
            wrong = "; ".join(mismatches(body["has"], plain(obj)))
            if wrong:
                return f"{obj.metadata.name}: {wrong}"
        return ""


# -- verbs ------------------------------------------------------------------------------------


def _apply(doing: Doing) -> None:
    doing.cluster.apply(doing.step.about, doing.namespace)


def _create(doing: Doing) -> None:
    doing.cluster.create(doing.step.about, doing.namespace)


def _patch(doing: Doing) -> None:
    body, subresource = doing.step.body["with"], str(doing.step.body.get("subresource", ""))
    for kind, name, namespace in doing.each():
        doing.cluster.patch(kind, name, body, namespace, subresource=subresource)


def _status(doing: Doing) -> None:
    now = doing.cluster.now.strftime("%Y-%m-%dT%H:%M:%SZ")
    body = {"status": _timed(doing.step.body["with"], now)}
    for kind, name, namespace in doing.each():
        doing.cluster.patch(kind, name, body, namespace, subresource="status")


def _timed(value: Any, now: str) -> Any:
    if isinstance(value, Mapping):
        return {field: _timed(inner, now) for field, inner in value.items()}
    if isinstance(value, list):
        return [_timed(inner, now) for inner in value]
    return now if value == "now" else value


def _image(doing: Doing) -> None:
    for obj in doing.objects():
        kind, _ = doing.target
        (first, *_) = plain(obj)["spec"]["template"]["spec"]["containers"]
        container = {"name": first["name"], "image": doing.step.body["to"]}
        body = {"spec": {"template": {"spec": {"containers": [container]}}}}
        doing.cluster.patch(kind, obj.metadata.name, body, doing.namespace)


def _scale(doing: Doing) -> None:
    for kind, name, namespace in doing.each():
        doing.cluster.scale(kind, name, doing.step.body["to"], namespace)


def _own(doing: Doing) -> None:
    body = doing.step.body
    word, _, owner = str(body["by"]).partition("/")
    sort = doing.cluster.kind(word)
    reference = {
        "apiVersion": sort.api_version,
        "kind": sort.name,
        "name": owner,
        "uid": plain(doing.cluster.get(word, owner, doing.namespace))["metadata"]["uid"],
        "blockOwnerDeletion": bool(body.get("blocking", False)),
    }
    for kind, name, namespace in doing.each():
        doing.cluster.patch(kind, name, {"metadata": {"ownerReferences": [reference]}}, namespace)


def _delete(doing: Doing) -> None:
    body = doing.step.body
    for kind, name, namespace in list(doing.each()):
        doing.cluster.delete(
            kind, name, namespace, propagation=body.get("propagation"), grace=body.get("grace")
        )


def _node(doing: Doing) -> None:
    node = doing.cluster.node(str(doing.step.about))
    fates: Mapping[str, Callable[[], None]] = {
        "fail": node.fail,
        "recover": node.recover,
        "reboot": node.reboot,
        "cordon": node.cordon,
        "uncordon": node.uncordon,
        "drain": node.drain,
    }
    fates[doing.step.body["do"]]()


def _advance(doing: Doing) -> None:
    doing.cluster.advance(seconds=seconds(doing.step.about))


def _settle(doing: Doing) -> None:
    about = doing.step.about
    horizon = max(HORIZON if about is None else seconds(about), doing.pace.horizon)
    doing.cluster.settle(horizon, limit=LIMIT)
    if doing.pace.pause:
        doing.cluster.advance(seconds=doing.pace.pause)
        doing.cluster.settle(horizon, limit=LIMIT)


def _until(doing: Doing) -> None:
    within = seconds(doing.step.body.get("within", WITHIN)) + doing.pace.horizon
    try:
        doing.cluster.wait_until(lambda: not doing.unlike(), within)
    except Unmet:
        raise Missed(f"{doing.step}: not within {within:g} s: {doing.unlike()}") from None


def _expect(doing: Doing) -> None:
    wrong = doing.unlike()
    if wrong:
        raise Missed(f"{doing.step}: {wrong}")


@dataclass(frozen=True, slots=True)
class Verb:
    """What can be done in a step: how, and what else it must or may say."""

    do: Callable[[Doing], None]
    needs: tuple[str, ...] = ()
    may: tuple[str, ...] = ()


VERBS: Mapping[str, Verb] = {
    "apply": Verb(_apply, may=("namespace",)),
    "create": Verb(_create, may=("namespace",)),
    "patch": Verb(_patch, ("with",), ("subresource", *ABOUT)),
    "status": Verb(_status, ("with",), ABOUT),
    "image": Verb(_image, ("to",), ABOUT),
    "scale": Verb(_scale, ("to",), ABOUT),
    "own": Verb(_own, ("by",), ("blocking", *ABOUT)),
    "delete": Verb(_delete, may=("propagation", "grace", *ABOUT)),
    "node": Verb(_node, ("do",)),
    "advance": Verb(_advance),
    "settle": Verb(_settle),
    "until": Verb(_until, may=("has", "count", "gone", "within", *ABOUT)),
    "expect": Verb(_expect, may=("has", "count", "gone", *ABOUT)),
}


def read(given: object) -> Step:
    """A step as a file has it. Raises `BadScenario`."""
    if isinstance(given, str):
        given = {given: None}
    if not isinstance(given, Mapping):
        raise BadScenario(f"a step is a map such as `settle: 10s`, not {short(given)}")
    said = [word for word in given if word in VERBS]
    if len(said) != 1:
        raise BadScenario(f"a step has one of {', '.join(VERBS)}; there is none or more in {short(given)}")
    verb = VERBS[said[0]]
    body = {word: value for word, value in given.items() if word != said[0]}
    missing = [word for word in verb.needs if word not in body]
    odd = [word for word in body if word not in (*verb.needs, *verb.may)]
    if missing or odd:
        words = [f"needs {word}" for word in missing] + [f"knows no {word}" for word in odd]
        raise BadScenario(f"{said[0]} {' and '.join(words)}: {short(given)}")
    return Step(said[0], given[said[0]], body)


def seconds(said: object) -> float:
    """A span of time: a number of seconds, or a text such as ``1m30s`` or ``2d``. Raises `BadScenario`."""
    found: float | None = None
    if isinstance(said, int | float):
        found = float(said)
    elif isinstance(said, str):
        days = said.removesuffix("d")
        found = 86_400.0 * int(days) if days.isdecimal() and days != said else span(said)
    if found is None:
        raise BadScenario(f"{said!r} is no span of time such as 90s or 3h")
    return found
