"""Assumptions: what a cluster's objects do not tell, and a user of a plan may know. Pure, except for reading a file of metrics.

::

    start=2s               from the binding of a pod until its containers run                     (1s)
    ready=20s              from there until they are ready                                        (0s)
    shutdown=5s            how long containers take to stop                                       (0s)
    work=10m               how long the containers of new Jobs run                                (1s)
    image=web:v9:never     an image that cannot be pulled; repeat it for more
    metrics=load.yaml      what pods use, for autoscalers

A file of metrics is a map of workloads to what they use, each pod, or all of them together::

    shop/web: {cpu: 250m, memory: 64Mi}
    shop/api: {cpu: "6", per: workload}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml

from steersman.api.quantity import Quantity
from steersman.api.suggestions import hint
from steersman.sim.kubelet.behaviour import seconds
from steersman.sim.kubelet.pod_plan import KubeletSettings

SPANS = ("start", "ready", "shutdown", "work")
NAMES = (*SPANS, "image", "metrics")
NEVER = "never"


class Load(msgspec.Struct, frozen=True):
    """The load of a workload's pods: millicores and bytes."""

    namespace: str
    workload: str
    cpu: int | None = None
    memory: int | None = None
    shared: bool = False
    """Whether all pods use it together, each its share."""


class Assumptions(msgspec.Struct, frozen=True):
    """The assumptions of a plan. Times are in seconds."""

    start: float = 1.0
    ready: float = 0.0
    shutdown: float = 0.0
    work: float = 1.0
    missing_images: tuple[str, ...] = ()
    loads: tuple[Load, ...] | None = None
    """None: the load stays as the autoscalers saw it last."""

    @property
    def settings(self) -> KubeletSettings:
        """The timing of the simulated kubelets."""
        return KubeletSettings(
            start_delay=self.start,
            ready_delay=self.ready,
            shutdown=self.shutdown,
            work=self.work,
            missing_images=self.missing_images,
        )

    def described(self) -> tuple[str, ...]:
        """The assumptions in words."""
        lines = [
            f"containers start {self.start:g} s after their pod is bound, are ready {self.ready:g} s later, and take "
            f"{self.shutdown:g} s to stop",
            f"containers of new Jobs run {self.work:g} s and succeed",
            "containers that run now go on running; those that fail now go on failing",
        ]
        lines += [f"image {image} cannot be pulled" for image in self.missing_images]
        if not self.missing_images:
            lines.append("every image can be pulled")
        if self.loads is not None:
            lines.append("pods use what the file of metrics says")
        return tuple(lines)


def parse(words: Iterable[str]) -> Assumptions:
    """Read the values of ``--assume``. Raises `ValueError`."""
    spans: dict[str, float] = {}
    images: list[str] = []
    loads: list[Load] | None = None
    for word in words:
        name, _, value = word.partition("=")
        if name not in NAMES or not value:
            raise ValueError(f"{word!r} is no assumption; {hint(name, NAMES)} (such as ready=20s)")
        if name in SPANS:
            length = seconds(value)
            if length is None:
                raise ValueError(f"{word!r}: {value!r} is no duration, such as 20s or 5m")
            spans[name] = length
        elif name == "image":
            image, _, outcome = value.rpartition(":")
            if not image or outcome != NEVER:
                raise ValueError(f"{word!r}: an image is assumed as NAME:TAG:never, such as web:v9:never")
            images.append(image)
        else:
            loads = [*(loads or ()), *_file(Path(value))]
    return Assumptions(**spans, missing_images=tuple(images), loads=None if loads is None else tuple(loads))


def _file(path: Path) -> list[Load]:
    try:
        content = yaml.safe_load(path.read_text())
    except OSError as error:
        raise ValueError(f"metrics={path}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"metrics={path}: no YAML: {' '.join(str(error).split())}") from None
    try:
        return read_loads(content)
    except ValueError as error:
        raise ValueError(f"metrics={path}: {error}") from None


def read_loads(content: object) -> list[Load]:
    """The loads of a document. Raises `ValueError`."""
    if not isinstance(content, Mapping):
        raise ValueError("a map of NAMESPACE/WORKLOAD to what it uses is expected")
    return [_load(str(name), value) for name, value in content.items()]


def _load(name: str, value: Any) -> Load:
    namespace, _, workload = name.rpartition("/")
    if not workload or not isinstance(value, Mapping):
        raise ValueError(f"{name!r} is no NAMESPACE/WORKLOAD: {{cpu: 250m, memory: 64Mi}}")
    unknown = [key for key in value if key not in ("cpu", "memory", "per")]
    if unknown:
        raise ValueError(
            f"{name}: unknown field {unknown[0]!r}; {hint(str(unknown[0]), ('cpu', 'memory', 'per'))}"
        )
    per = value.get("per", "pod")
    if per not in ("pod", "workload"):
        raise ValueError(f"{name}: per must be pod or workload, not {per!r}")
    try:
        cpu = Quantity.parse(value["cpu"]).milli() if "cpu" in value else None
        memory = Quantity.parse(value["memory"]).value() if "memory" in value else None
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    return Load(namespace or "default", workload, cpu, memory, per == "workload")
