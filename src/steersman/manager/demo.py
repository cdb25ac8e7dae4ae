"""``steersman demo``: Deployments through scaling, rollouts and a bad image, in one process under virtual time."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import yaml

from steersman.api.errors import ApiError
from steersman.api.generated import load
from steersman.api.scheme import Key
from steersman.controllers import CONTROLLERS
from steersman.intent.verdict import Rest, Wake
from steersman.manager.flags import UsageError
from steersman.manager.output import BOLD, CYAN, paint_for_stdout
from steersman.manager.verb import Given
from steersman.runtime.controller_group import ControllerGroup
from steersman.runtime.trace import Failure, Round, span
from steersman.sim.nodes import Nodes
from steersman.sim.storage import SimulatedStorage
from steersman.sim.storage import install as install_storage
from steersman.sim.volume_names import STORAGE_USER
from steersman.sim.world import NotSettled, World
from steersman.testing.kinds import documents, kind_at

SHOP = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec: {containers: [{name: web, image: "shop:v1"}]}
"""
START_DELAY = 2.0
"""Seconds a container takes to start."""
LONGEST = 3600
"""Seconds of a progress deadline that is waited for."""
DEADLINE = 600
"""Seconds of a Deployment's progressDeadlineSeconds by default."""
BESIDE = (
    ("v1", "Namespace"),
    ("scheduling.k8s.io/v1", "PriorityClass"),
    ("v1", "LimitRange"),
    ("v1", "ResourceQuota"),
    ("v1", "ServiceAccount"),
    ("v1", "ConfigMap"),
    ("v1", "Secret"),
    ("v1", "PersistentVolume"),
    ("v1", "PersistentVolumeClaim"),
    ("v1", "Service"),
    ("policy/v1", "PodDisruptionBudget"),
)
"""Kinds that are created for the Deployments, in this order. Others are left out: the demo plays Deployments."""

DEPLOYMENTS = load("apps", "v1", "Deployment")
NAMESPACES = load("", "v1", "Namespace")
EVENTS = load("", "v1", "Event")


class Target(NamedTuple):
    """A Deployment, as its steps need it."""

    key: Key
    replicas: int
    container: str
    image: str
    deadline: int

    def __str__(self) -> str:
        return self.key.name if self.key.namespace == "default" else str(self.key)

    def tagged(self, tag: str) -> str:
        """Its image with another tag."""
        name = self.image.partition("@")[0]
        folder, slash, last = name.rpartition("/")
        return f"{folder}{slash}{last.partition(':')[0]}:{tag}"

    @property
    def next_image(self) -> str:
        """The image to roll out."""
        return self.tagged("v2") if self.image != self.tagged("v2") else self.tagged("v3")


class Step(msgspec.Struct, frozen=True):
    """A change that a user makes to a Deployment: its description and its patch."""

    description: Callable[[Target], str]
    patch: Callable[[Target], dict[str, Any]]
    waits: bool = False
    """Whether the step lasts beyond the progress deadline, so that the rollout is reported as failed."""


def image(target: Target, version: str) -> dict[str, Any]:
    container = {"name": target.container, "image": version}
    return {"spec": {"template": {"spec": {"containers": [container]}}}}


STEPS = (
    Step(
        lambda target: f"scale to {target.replicas + 2}",
        lambda target: {"spec": {"replicas": target.replicas + 2}},
    ),
    Step(
        lambda target: f"roll out {target.next_image}",
        lambda target: image(target, target.next_image),
    ),
    Step(
        lambda target: f"roll out {target.tagged('bad')}, an image that cannot be pulled",
        lambda target: image(target, target.tagged("bad")),
        waits=True,
    ),
    Step(
        lambda target: f"roll back to {target.next_image}",
        lambda target: image(target, target.next_image),
    ),
)


def main(given: Given) -> int:
    """Entry point; returns the exit code."""
    path = given.values["file"]
    try:
        with Demo(given.values["seed"]) as demo:
            demo.play(demo.read(path) if path else [yaml.safe_load(SHOP)])
    except (ApiError, NotSettled) as error:
        print(f"Error: {path + ': ' if path else ''}{error}", file=sys.stderr)
        return 1
    return 0


class Demo:
    """A simulated control plane whose events and verdicts are printed."""

    def __init__(self, seed: int) -> None:
        self._world = World(seed)
        self._api = self._world.api()
        self._fleet = ControllerGroup(CONTROLLERS, self._world.api("manager"), self._world)
        self._world.spawn(self._fleet.run(), name="manager")
        nodes = Nodes(self._world.api("nodes"), self._world, start_delay=START_DELAY)
        self._world.spawn(nodes.run(), name="nodes")
        self._printed: dict[str, None] = {}
        self._paint = paint_for_stdout()

    def __enter__(self) -> Demo:
        return self

    def __exit__(self, *exception: object) -> None:
        self._world.close()

    def read(self, path: str) -> list[dict[str, Any]]:
        """The objects of a file. Raises `UsageError` with the file's name."""
        try:
            found = list(documents(self._world.server, yaml.safe_load_all(Path(path).read_text())))
        except (OSError, UnicodeDecodeError, yaml.YAMLError, TypeError) as error:
            reason = getattr(error, "problem", None) or getattr(error, "strerror", None) or error
            raise UsageError(f"{path}: {reason}") from None
        if not any(each.get("kind") == DEPLOYMENTS.name for each in found):
            raise UsageError(f"{path}: no Deployment found")
        return found

    # -- what happens -------------------------------------------------------------------------

    def play(self, manifests: Sequence[dict[str, Any]]) -> None:
        """Create the Deployments with what they need, then take all steps with each."""
        start = time.perf_counter()
        self._world.run(self._world.settle())
        self._prepare(manifests)
        targets = [self._create(each) for each in manifests if each.get("kind") == DEPLOYMENTS.name]
        self._settle(targets)
        for step in STEPS:
            for target in targets:
                self._line("you", f"{target}: {step.description(target)}", BOLD)
                content = "application/strategic-merge-patch+json"
                change = self._api.patch(DEPLOYMENTS, *target.key, step.patch(target), content_type=content)
                self._world.run(change)
            self._settle(targets, waits=step.waits)
        took = time.perf_counter() - start
        print(f"\n{span(self._world.monotonic())} of cluster time in {span(took)}.")

    def _prepare(self, manifests: Iterable[dict[str, Any]]) -> None:
        """Create the objects that Deployments need, and name those that are left out."""
        others = [each for each in manifests if each.get("kind") != DEPLOYMENTS.name]
        needed = [each for kind in BESIDE for each in others if _kind(each) == kind]
        left = [f"{each.get('kind')} {_name(each)}" for each in others if _kind(each) not in BESIDE]
        if left:
            self._line("demo", f"leaves out {', '.join(left)}: it plays Deployments", BOLD)
        namespaces = {_name(each): each for each in needed if each["kind"] == "Namespace"}
        for each in manifests:
            where = str((each.get("metadata") or {}).get("namespace") or "default")
            namespaces.setdefault(where, {"metadata": {"name": where}})
        present = {each.metadata.name for each in self._world.run(self._api.list(NAMESPACES)).items}
        for name, document in namespaces.items():
            if name not in present:
                self._world.run(self._api.create(NAMESPACES, "", document))
        # Its ServiceAccount, without which a namespace admits no pods.
        self._world.run(self._world.settle())
        if any(each["kind"] == "PersistentVolumeClaim" for each in needed):
            install_storage(self._world.server)
            self._world.spawn(
                SimulatedStorage(self._world.api(STORAGE_USER), self._world).run(), name="storage"
            )
        for each in needed:
            if each["kind"] != "Namespace":
                kind = kind_at(self._world.server, str(each.get("apiVersion", "")), each["kind"])
                self._world.run(
                    self._api.create(kind.untyped, _namespace(each) if kind.namespaced else "", each)
                )

    def _create(self, manifest: dict[str, Any]) -> Target:
        made = self._world.run(self._api.create(DEPLOYMENTS, _namespace(manifest), manifest))
        first = made.spec.template.spec.containers[0]
        target = Target(
            Key(made.metadata.namespace, made.metadata.name),
            made.spec.replicas,
            first.name,
            first.image,
            made.spec.progressDeadlineSeconds or DEADLINE,
        )
        self._line("you", f"create Deployment {target} with {_count(target.replicas)}", BOLD)
        return target

    def _settle(self, targets: Sequence[Target], *, waits: bool = False) -> None:
        """Advance until nothing is written any more, then print events and verdicts."""
        deadline = min(max(each.deadline for each in targets), LONGEST)
        horizon = deadline + 100.0 if waits else 10.0
        self._world.run(self._world.settle(horizon))
        for (at, component, message), same in groupby(self._events()):
            times = len(list(same))
            self._line(component, f"{message} ({times} times)" if times > 1 else message, at=at)
        for target in targets:
            self._line("why", f"{target} {self._verdict(target.key)}", CYAN)

    # -- what is printed ----------------------------------------------------------------------

    def _events(self) -> Iterator[tuple[str, str, str]]:
        """Events not printed yet, by time, as time, component and message. A repeated event appears once."""
        found: list[Any] = self._world.run(self._api.list(EVENTS)).items
        lines = []
        for event in sorted(found, key=lambda event: int(event.metadata.resourceVersion)):
            if event.metadata.uid in self._printed:
                continue
            self._printed[event.metadata.uid] = None
            component = event.source.component.removesuffix("-controller")
            # What kubelets do for every container is left out, unless it fails.
            if component != "kubelet" or event.type != "Normal":
                at = (event.firstTimestamp or self._world.now()).strftime("%H:%M:%S")
                lines.append((at, component, event.message))
        # Alike lines of one moment stand together, where the first of them stands.
        places: dict[tuple[str, str, str], int] = {}
        for line in lines:
            places.setdefault(line, len(places))
        return iter(sorted(lines, key=lambda line: (line[0], places[line])))

    def _verdict(self, key: Key) -> str:
        rounds: list[Round] = self._fleet.trace.rounds("deployment-controller", key)
        match rounds[-1].ending:
            case Rest(because):
                return f"rests: {because}"
            case Wake(after, because):
                return f"wakes in {span(after.total_seconds())}: {because}"
            case Failure(error):
                return f"failed: {error}"

    def _line(self, component: str, message: str, colour: str = "", at: str = "") -> None:
        at = at or self._world.now().strftime("%H:%M:%S")
        text = f"{at}  {component:<11} {message}"
        print(self._paint(text, colour) if colour else text)


def _count(replicas: int) -> str:
    return f"{replicas} replica{'' if replicas == 1 else 's'}"


def _kind(document: dict[str, Any]) -> tuple[str, str]:
    return str(document.get("apiVersion")), str(document.get("kind"))


def _name(document: dict[str, Any]) -> str:
    return str((document.get("metadata") or {}).get("name") or "")


def _namespace(document: dict[str, Any]) -> str:
    return str((document.get("metadata") or {}).get("namespace") or "default")
