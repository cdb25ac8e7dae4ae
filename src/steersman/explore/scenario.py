"""Scenarios: stories of a cluster as plain files, to be lived through with and without faults.

::

    name: scale-down
    story: A Deployment is scaled from five to two; three pods go.
    cluster: {nodes: 3}
    steps:
    - apply: {apiVersion: apps/v1, kind: Deployment, …}
    - settle
    - scale: deployment/web
      to: 2
    - settle
    - expect: pods
      count: 2
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import yaml
from msgspec.structs import replace

from steersman.controllers import CONTROLLERS
from steersman.explore.matching import short
from steersman.explore.steps import BadScenario, Missed, Pace, Step, read, seconds
from steersman.intent.controller import Controller
from steersman.sim.kubelet import KubeletSettings
from steersman.testing.cluster import Cluster

__all__ = ("BadScenario", "Missed", "Pace", "Scenario", "Step", "catalogue", "find", "load", "seconds")

PACKAGE = "steersman.explore.scenarios"
FIELDS = ("name", "story", "cluster", "slack", "steps")
CLUSTER = ("nodes", "controllers", "kubelets")


@dataclass(frozen=True, slots=True)
class Scenario:
    """A story."""

    name: str
    story: str
    steps: tuple[Step, ...]
    nodes: int = 3
    controllers: tuple[str, ...] = ()
    """The names of those that run; all when there are none."""
    kubelets: Mapping[str, Any] = field(default_factory=dict)
    """How nodes take their time: fields of `steersman.sim.kubelet.KubeletSettings`."""
    slack: Mapping[str, int] = field(default_factory=dict)
    """By plural: how many more may be created or deleted than when nothing goes wrong, since how far one
    step gets before the next one comes is a matter of time."""
    path: str = ""
    """The file it is from, unless it is one of ours."""

    @property
    def crew(self) -> tuple[Controller[Any], ...]:
        """The controllers that run."""
        if not self.controllers:
            return tuple(CONTROLLERS)
        return tuple(each for each in CONTROLLERS if each.name in self.controllers)

    @property
    def settings(self) -> KubeletSettings | None:
        """How kubelets take their time; None is as a cluster has it."""
        if not self.kubelets:
            return None
        return replace(KubeletSettings(start_delay=1.0, lease_interval=0.0), **self.kubelets)

    def play(self, cluster: Cluster, pace: Pace = Pace()) -> None:
        """Live through it. Raises `Missed`."""
        for number, step in enumerate(self.steps, 1):
            try:
                step.do(cluster, pace)
            except Missed as error:
                raise Missed(f"step {number}, {error}") from error.__cause__


def load(text: str, path: str = "") -> Scenario:
    """A scenario from the text of its file. Raises `BadScenario`."""
    where = path or "the scenario"
    try:
        given = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise BadScenario(f"{where}: {error}") from None
    if not isinstance(given, Mapping) or not isinstance(given.get("steps"), Sequence):
        raise BadScenario(f"{where}: a scenario is a map with a name, a story and steps")
    _only(where, given, FIELDS)
    cluster = given.get("cluster") or {}
    _only(f"{where}: cluster", cluster, CLUSTER)
    try:
        steps = tuple(read(step) for step in given["steps"])
        kubelets = {
            name.replace("-", "_"): seconds(value) for name, value in cluster.get("kubelets", {}).items()
        }
    except BadScenario as error:
        raise BadScenario(f"{where}: {error}") from None
    controllers = tuple(cluster.get("controllers", ()))
    known = [each.name for each in CONTROLLERS]
    unknown = [name for name in controllers if name not in known]
    if unknown:
        raise BadScenario(f"{where}: there is no controller {unknown[0]}; there are: {', '.join(known)}")
    return Scenario(
        name=str(given.get("name", "")) or Path(path).stem,
        story=" ".join(str(given.get("story", "")).split()),
        steps=steps,
        nodes=int(cluster.get("nodes", 3)),
        controllers=controllers,
        kubelets=kubelets,
        slack=given.get("slack") or {},
        path=path,
    )


def _only(where: str, given: object, known: Sequence[str]) -> None:
    if not isinstance(given, Mapping):
        raise BadScenario(f"{where}: {short(given)} is no map")
    odd = [word for word in given if word not in known]
    if odd:
        raise BadScenario(f"{where} knows no {odd[0]}; it knows {', '.join(known)}")


def catalogue() -> tuple[Scenario, ...]:
    """All scenarios that come with the program, by name."""
    files = [each for each in resources.files(PACKAGE).iterdir() if each.name.endswith(".yaml")]
    return tuple(
        _packaged(each.name.removesuffix(".yaml"), each.read_text())
        for each in sorted(files, key=lambda each: each.name)
    )


def _packaged(name: str, text: str) -> Scenario:
    found = load(text)
    if found.name != name:
        raise BadScenario(f"{name}.yaml calls itself {found.name!r}")
    return found


def find(name: str) -> Scenario:
    """A scenario by its name, or by the path of its file. Raises `BadScenario`."""
    path = Path(name)
    if path.suffix in (".yaml", ".yml"):
        try:
            return load(path.read_text(), name)
        except (OSError, UnicodeDecodeError) as error:
            raise BadScenario(f"{name}: {getattr(error, 'strerror', None) or error}") from None
    for each in catalogue():
        if each.name == name:
            return each
    names = ", ".join(each.name for each in catalogue())
    raise BadScenario(f"there is no scenario {name!r}; there are: {names}; or name a .yaml file")
