"""CheckedPod: a pod under evaluation by the Pod Security Standards, and the phrasing of violations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import msgspec

from steersman.api.generated.core_v1 import PodSpec


class CheckedPod(msgspec.Struct, frozen=True):
    """A pod, and the minor version of the standards it is evaluated by."""

    spec: PodSpec
    annotations: Mapping[str, str]
    minor: int

    @property
    def containers(self) -> tuple[Any, ...]:
        return (*self.spec.initContainers, *self.spec.containers, *self.spec.ephemeralContainers)

    @property
    def windows(self) -> bool:
        return self.minor >= 25 and self.spec.os is not None and self.spec.os.name == "windows"

    @property
    def has_user_namespace(self) -> bool:
        """Whether the pod has a user namespace of its own."""
        return self.minor >= 35 and self.spec.hostUsers is False

    def containers_where(self, test: Callable[[Any], bool]) -> list[str]:
        """The names of containers whose security context passes a test; the context may be None."""
        return [each.name for each in self.containers if test(each.securityContext)]

    def set_by(self, test: Callable[[Any], bool]) -> list[str]:
        """The pod and containers whose security context passes a test, as messages name them: ``pod``, ``container "a"``."""
        context = self.spec.securityContext
        setters = ["pod"] if context is not None and test(context) else []
        names = self.containers_where(lambda context: context is not None and test(context))
        return [*setters, f"{plural('container', names)} {quoted(names)}"] if names else setters


Violation: TypeAlias = tuple[str, str] | None
"""A reason and a detail."""


def quoted(names: Iterable[str]) -> str:
    """A comma-separated list of quoted names."""
    return ", ".join(f'"{name}"' for name in names)


def plural(word: str, names: list[str]) -> str:
    """A noun in singular or plural, by the number of names."""
    return word if len(names) == 1 else f"{word}s"


def distinct(names: Iterable[str]) -> list[str]:
    """Sorted names without duplicates."""
    return sorted(dict.fromkeys(names))
