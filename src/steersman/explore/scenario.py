"""Scenarios: YAML files with the steps of a run, with and without faults.

::

    name: scale-down
    description: A Deployment is scaled from five to two; three pods are deleted.
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

from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec
import yaml
from msgspec.structs import replace

from steersman.api.suggestions import hint
from steersman.cloud.local import LocalProvider
from steersman.controllers import CONTROLLERS
from steersman.explore.matching import short
from steersman.explore.steps import InvalidScenario, Step, StepFailed, Timing, read, seconds
from steersman.intent.controller import Controller, Flag
from steersman.intent.gates import GATES
from steersman.sim.faults.requests import RequestLatency
from steersman.sim.kubelet import KubeletSettings
from steersman.testing.cluster import Cluster

__all__ = (
    "InvalidScenario",
    "Scenario",
    "Step",
    "StepFailed",
    "Timing",
    "catalogue",
    "find",
    "load",
    "seconds",
    "write_latency",
)

NODE_LIFECYCLE = "node-lifecycle-controller"
PACKAGE = "steersman.explore.scenarios"
FIELDS = ("name", "description", "cluster", "tolerance", "steps")
CLUSTER = ("nodes", "controllers", "flags", "feature-gates", "kubelets", "write-latency", "cloud", "dra")
NO_GATE = "`steersman run --help` lists the gates"
CLOUD = ("routes", "instances")
"""The parts of the cloud provider that a scenario may ask for; each cluster has load balancers."""


class Scenario(msgspec.Struct, frozen=True):
    """A scenario."""

    name: str
    description: str
    steps: tuple[Step, ...]
    nodes: int = 3
    controllers: tuple[str, ...] = ()
    """Names of the controllers that run; empty: all."""
    gates: tuple[str, ...] = ()
    """Feature gates that are on, besides those that are on by default."""
    flags: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """Flags of the controllers that differ from their defaults."""
    dra: bool = False
    """Whether nodes have simulated devices, and ResourceClaims are allocated."""
    kubelets: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """Timing of the kubelets: fields of `steersman.sim.kubelet.KubeletSettings`."""
    latency: tuple[RequestLatency, ...] = ()
    """How long writes of controllers take in every run, with and without faults; empty: no time."""
    tolerance: Mapping[str, int] = msgspec.field(default_factory=dict)
    """By plural: how many more objects may be created or deleted than without faults. How far a step gets before the
    next one begins depends on timing."""
    cloud: tuple[str, ...] = ()
    """The parts of the cloud provider besides load balancers."""
    path: str = ""
    """The file it was loaded from; empty for a packaged one."""

    @property
    def selected_controllers(self) -> tuple[Controller[Any], ...]:
        """The controllers that run."""
        if not self.controllers:
            return tuple(CONTROLLERS)
        return tuple(each for each in CONTROLLERS if each.name in self.controllers)

    @property
    def guarded_nodes(self) -> tuple[str, ...]:
        """The nodes from which no pod may be evicted while their kubelets run: all, where a controller keeps their taints."""
        if all(each.name != NODE_LIFECYCLE for each in self.selected_controllers):
            return ()
        return tuple(f"node-{number}" for number in range(1, self.nodes + 1))

    def cloud_provider(self) -> LocalProvider | None:
        """A new cloud provider, which outlives the managers of a run; None: the default of a cluster."""
        if not self.cloud:
            return None
        return LocalProvider(routes="routes" in self.cloud, instances="instances" in self.cloud)

    @property
    def settings(self) -> KubeletSettings | None:
        """Settings of the kubelets; None: the defaults of a cluster."""
        if not self.kubelets:
            return None
        return replace(KubeletSettings(start_delay=1.0, lease_interval=0.0), **self.kubelets)

    def play(self, cluster: Cluster, timing: Timing = Timing()) -> None:
        """Run all steps. Raises `StepFailed`."""
        for number, step in enumerate(self.steps, 1):
            try:
                step.run(cluster, timing)
            except StepFailed as error:
                raise StepFailed(f"step {number}, {error}") from error.__cause__


def load(text: str, path: str = "") -> Scenario:
    """Parse a scenario. Raises `InvalidScenario`."""
    where = path or "the scenario"
    try:
        given = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InvalidScenario(f"{where}: {error}") from None
    if not isinstance(given, Mapping) or not isinstance(given.get("steps"), Sequence):
        raise InvalidScenario(f"{where}: a scenario is a map with a name, a description and steps")
    _only(where, given, FIELDS)
    cluster = given.get("cluster") or {}
    _only(f"{where}: cluster", cluster, CLUSTER)
    try:
        steps = tuple(read(step) for step in given["steps"])
        kubelets = {
            name.replace("-", "_"): seconds(value) for name, value in cluster.get("kubelets", {}).items()
        }
        latency = write_latency(cluster.get("write-latency", ()))
        flags = dict(_flags(cluster.get("flags") or {}))
    except InvalidScenario as error:
        raise InvalidScenario(f"{where}: {error}") from None
    controllers = tuple(cluster.get("controllers", ()))
    known = [each.name for each in CONTROLLERS]
    unknown = [name for name in controllers if name not in known]
    if unknown:
        raise InvalidScenario(f"{where}: unknown controller {unknown[0]}; {hint(unknown[0], known)}")
    cloud = tuple(cluster.get("cloud", ()))
    unknown = [part for part in cloud if part not in CLOUD]
    if unknown:
        raise InvalidScenario(f"{where}: the cloud has no {unknown[0]}; it may have {', '.join(CLOUD)}")
    gates = tuple(cluster.get("feature-gates", ()))
    for gate in gates:
        if gate not in GATES:
            raise InvalidScenario(f"{where}: unknown feature gate {gate}; {hint(gate, GATES, NO_GATE)}")
    return Scenario(
        name=str(given.get("name", "")) or Path(path).stem,
        description=" ".join(str(given.get("description", "")).split()),
        steps=steps,
        nodes=int(cluster.get("nodes", 3)),
        controllers=controllers,
        gates=gates,
        flags=flags,
        dra=bool(cluster.get("dra", False)),
        kubelets=kubelets,
        latency=latency,
        tolerance=given.get("tolerance") or {},
        cloud=cloud,
        path=path,
    )


def write_latency(given: object) -> tuple[RequestLatency, ...]:
    """Parse the latency of writes: two durations, such as ``[1ms, 300ms]``, or none. Raises `InvalidScenario`."""
    if not given:
        return ()
    if not isinstance(given, Sequence) or isinstance(given, str) or len(given) != 2:
        told = ", ".join(map(str, given)) if isinstance(given, tuple) else short(given)
        raise InvalidScenario(f"write latency: {told} is not a minimum and a maximum, such as 1ms, 300ms")
    try:
        minimum, maximum = map(seconds, given)
        return (RequestLatency(minimum, maximum),)
    except ValueError as error:
        raise InvalidScenario(f"write latency: {error}") from None


def _flags(given: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Parse flags of controllers; those with a duration take one, such as ``24h``. Raises `InvalidScenario`."""
    known = {flag.name: flag for each in CONTROLLERS for flag in each.flags}
    known |= {each.workers.name: each.workers for each in CONTROLLERS if isinstance(each.workers, Flag)}
    for name, value in given.items():
        flag = known.get(name)
        if flag is None:
            raise InvalidScenario(f"no controller has the flag {name}; {hint(name, known)}")
        yield name, seconds(value) if isinstance(flag.default, float) else value


def _only(where: str, given: object, known: Sequence[str]) -> None:
    if not isinstance(given, Mapping):
        raise InvalidScenario(f"{where}: {short(given)} is not a map")
    unknown = [field for field in given if field not in known]
    if unknown:
        raise InvalidScenario(f"{where} has no field {unknown[0]}; {hint(str(unknown[0]), known)}")


def catalogue() -> tuple[Scenario, ...]:
    """All packaged scenarios, by name."""
    files = [each for each in resources.files(PACKAGE).iterdir() if each.name.endswith(".yaml")]
    return tuple(
        _packaged(each.name.removesuffix(".yaml"), each.read_text())
        for each in sorted(files, key=lambda each: each.name)
    )


def _packaged(name: str, text: str) -> Scenario:
    found = load(text)
    if found.name != name:
        raise InvalidScenario(f"{name}.yaml has the name {found.name!r}")
    return found


def find(name: str) -> Scenario:
    """A scenario by its name, or by the path of its file. Raises `InvalidScenario`."""
    path = Path(name)
    if path.suffix in (".yaml", ".yml"):
        try:
            return load(path.read_text(), name)
        except OSError as error:
            raise InvalidScenario(f"{name}: {error.strerror}") from None
        except UnicodeDecodeError as error:
            raise InvalidScenario(f"{name}: {error}") from None
    for each in catalogue():
        if each.name == name:
            return each
    names = [each.name for each in catalogue()]
    meant = hint(name, names, f"available: {', '.join(names)}; or pass a .yaml file")
    raise InvalidScenario(f"unknown scenario {name!r}; {meant}")
