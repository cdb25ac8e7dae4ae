"""``steersman demo``: a Deployment through scaling, rollouts and a bad image, in one process under virtual time."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from steersman.api.errors import ApiError
from steersman.api.generated import load
from steersman.api.scheme import Key
from steersman.controllers import CONTROLLERS
from steersman.intent.verdict import Rest, Wake
from steersman.manager.flags import UsageError
from steersman.manager.verb import Given
from steersman.runtime.controller_group import ControllerGroup
from steersman.runtime.trace import Failure, Round, span
from steersman.sim.nodes import Nodes
from steersman.sim.world import World

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

DEPLOYMENTS = load("apps", "v1", "Deployment")
EVENTS = load("", "v1", "Event")


@dataclass(frozen=True, slots=True)
class Step:
    """A change that a user makes: its description and its patch."""

    description: str
    patch: dict[str, Any] = field(default_factory=dict)
    horizon: float = 10.0
    """Seconds without any write after which the next step begins."""


def image(version: str) -> dict[str, Any]:
    container = {"name": "web", "image": version}
    return {"spec": {"template": {"spec": {"containers": [container]}}}}


STEPS = (
    Step("scale to 5", {"spec": {"replicas": 5}}),
    Step("roll out shop:v2", image("shop:v2")),
    # Longer than the progress deadline, so that the rollout is reported as failed.
    Step("roll out shop:bad, an image that cannot be pulled", image("shop:bad"), horizon=700),
    Step("roll back to shop:v2", image("shop:v2")),
)


def main(given: Given) -> int:
    """Entry point; returns the exit code."""
    values = given.values
    try:
        manifests = read(values["file"]) if values["file"] else [yaml.safe_load(SHOP)]
        steps = () if values["file"] else STEPS
        with Demo(values["seed"]) as demo:
            demo.play(manifests, steps)
    except ApiError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    return 0


def read(path: str) -> list[dict[str, Any]]:
    """The Deployments of a file. Raises `UsageError` with the file's name."""
    try:
        documents = [doc for doc in yaml.safe_load_all(Path(path).read_text()) if doc]
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = getattr(error, "problem", None) or getattr(error, "strerror", None) or error
        raise UsageError(f"{path}: {reason}") from None
    found = [doc for doc in documents if isinstance(doc, dict) and doc.get("kind") == "Deployment"]
    if not found:
        raise UsageError(f"{path}: no Deployment found")
    return found


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
        self._colours = sys.stdout.isatty()

    def __enter__(self) -> Demo:
        return self

    def __exit__(self, *exception: object) -> None:
        self._world.close()

    def play(self, manifests: list[dict[str, Any]], steps: Sequence[Step]) -> None:
        start = time.perf_counter()
        self._world.run(self._world.settle())
        names = []
        for manifest in manifests:
            made = self._world.run(self._api.create(DEPLOYMENTS, "default", manifest))
            names.append(made.metadata.name)
            self._line(
                "you", f"create Deployment {made.metadata.name} with {made.spec.replicas} replicas", "1"
            )
        self._settle(names, 10.0 if steps else 700.0)
        for step in steps:
            self._line("you", f"{names[0]}: {step.description}", "1")
            content = "application/strategic-merge-patch+json"
            change = self._api.patch(DEPLOYMENTS, "default", names[0], step.patch, content_type=content)
            self._world.run(change)
            self._settle(names, step.horizon)
        took = time.perf_counter() - start
        print(f"\n{span(self._world.monotonic())} of cluster time in {span(took)}.")

    def _settle(self, names: list[str], horizon: float) -> None:
        """Advance until no write happens for ``horizon`` seconds, then print events and verdicts."""
        self._world.run(self._world.settle(horizon))
        for at, component, message in self._events():
            self._line(component, message, at=at)
        for name in names:
            self._line("why", f"{name} {self._verdict(name)}", "36")

    def _events(self) -> Iterator[tuple[str, str, str]]:
        """Events not printed yet, oldest first, as time, component and message. A repeated event appears once."""
        events: list[Any] = self._world.run(self._api.list(EVENTS, "default")).items
        for event in sorted(events, key=lambda event: int(event.metadata.resourceVersion)):
            if event.metadata.uid not in self._printed:
                self._printed[event.metadata.uid] = None
                at = (event.firstTimestamp or self._world.now()).strftime("%H:%M:%S")
                yield at, event.source.component.removesuffix("-controller"), event.message

    def _verdict(self, name: str) -> str:
        rounds: list[Round] = self._fleet.trace.rounds("deployment-controller", Key("default", name))
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
        print(f"\033[{colour}m{text}\033[0m" if colour and self._colours else text)
