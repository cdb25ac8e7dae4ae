"""``steersman demo``: a control plane in this process, under virtual time, on a Deployment of your own or ours."""

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
from steersman.manager.flag_types import BOOL, INT, STRING
from steersman.manager.flags import Option, UsageError, parse, usage
from steersman.runtime.controller_group import ControllerGroup
from steersman.runtime.trace import Failure, Round, span
from steersman.sim.nodes import Nodes
from steersman.sim.world import World

OPTIONS = (
    Option("file", STRING, "", "A manifest with Deployments to live through instead of ours.", "Demo", "f"),
    Option("seed", INT, 1, "Same seed, same world: names, uids and the order of things.", "Demo"),
    Option("help", BOOL, False, "Show this and end.", "Demo", "h"),
)
HEAD = """\
Watch Deployments live: real controllers, an API server and three nodes in this process, with a clock that
jumps to the next thing that happens. Nothing is started, nothing is left behind.

Usage: steersman demo [--file=deployments.yaml] [--seed=N]
"""
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
"""Seconds until a container has started."""

DEPLOYMENTS = load("apps", "v1", "Deployment")
EVENTS = load("", "v1", "Event")


@dataclass(frozen=True, slots=True)
class Step:
    """Something a user does, in words and as a patch."""

    words: str
    patch: dict[str, Any] = field(default_factory=dict)
    horizon: float = 10.0
    """How long nothing may happen before the next step, in seconds."""


def image(version: str) -> dict[str, Any]:
    container = {"name": "web", "image": version}
    return {"spec": {"template": {"spec": {"containers": [container]}}}}


STEPS = (
    Step("scales it to 5", {"spec": {"replicas": 5}}),
    Step("rolls out shop:v2", image("shop:v2")),
    # The horizon is beyond the progress deadline, so that the rollout is seen to fail.
    Step("rolls out shop:bad, an image that never comes", image("shop:bad"), horizon=700),
    Step("goes back to shop:v2", image("shop:v2")),
)


def main(argv: Sequence[str]) -> int:
    """Entry point; answers the exit code."""
    if any(word in ("-h", "--help") for word in argv):
        print(HEAD + "\n" + usage(OPTIONS))
        return 0
    try:
        values = parse(OPTIONS, argv)
        manifests = read(values["file"]) if values["file"] else [yaml.safe_load(SHOP)]
        steps = () if values["file"] else STEPS
        with Show(values["seed"]) as show:
            show.play(manifests, steps)
    except (UsageError, ApiError) as error:
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
        raise UsageError(f"{path}: there is no Deployment in it")
    return found


class Show:
    """A world, and the telling of what happens in it."""

    def __init__(self, seed: int) -> None:
        self._world = World(seed)
        self._api = self._world.api()
        self._fleet = ControllerGroup(CONTROLLERS, self._world.api("manager"), self._world)
        self._world.spawn(self._fleet.run(), name="manager")
        nodes = Nodes(self._world.api("nodes"), self._world, start_delay=START_DELAY)
        self._world.spawn(nodes.run(), name="nodes")
        self._told: dict[str, None] = {}
        self._colours = sys.stdout.isatty()

    def __enter__(self) -> Show:
        return self

    def __exit__(self, *exception: object) -> None:
        self._world.close()

    def play(self, manifests: list[dict[str, Any]], steps: Sequence[Step]) -> None:
        began = time.perf_counter()
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
            self._line("you", f"{names[0]}: {step.words}", "1")
            content = "application/strategic-merge-patch+json"
            change = self._api.patch(DEPLOYMENTS, "default", names[0], step.patch, content_type=content)
            self._world.run(change)
            self._settle(names, step.horizon)
        took = time.perf_counter() - began
        print(f"\n{span(self._world.monotonic())} went by, in {span(took)} of yours.")

    def _settle(self, names: list[str], horizon: float) -> None:
        """Let everything happen that will, and tell it."""
        self._world.run(self._world.settle(horizon))
        for at, who, words in self._news():
            self._line(who, words, at=at)
        for name in names:
            self._line("why", f"{name} {self._standing(name)}", "36")

    def _news(self) -> Iterator[tuple[str, str, str]]:
        """Events that were not told yet, in the order they came; a repeated one is told once."""
        events: list[Any] = self._world.run(self._api.list(EVENTS, "default")).items
        for event in sorted(events, key=lambda event: int(event.metadata.resourceVersion)):
            if event.metadata.uid not in self._told:
                self._told[event.metadata.uid] = None
                at = (event.firstTimestamp or self._world.now()).strftime("%H:%M:%S")
                yield at, event.source.component.removesuffix("-controller"), event.message

    def _standing(self, name: str) -> str:
        rounds: list[Round] = self._fleet.trace.rounds("deployment-controller", Key("default", name))
        match rounds[-1].ending:
            case Rest(because):
                return f"rests: {because}"
            case Wake(after, because):
                return f"wakes in {span(after.total_seconds())}: {because}"
            case Failure(error):
                return f"failed: {error}"

    def _line(self, who: str, words: str, colour: str = "", at: str = "") -> None:
        at = at or self._world.now().strftime("%H:%M:%S")
        text = f"{at}  {who:<11} {words}"
        print(f"\033[{colour}m{text}\033[0m" if colour and self._colours else text)
