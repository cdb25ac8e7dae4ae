"""A pod under judgement, and the words its faults are told in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

from steersman.api.generated.core_v1 import PodSpec


class Subject(NamedTuple):
    """A pod under judgement, and the version of the standards it is judged by."""

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
    def own_users(self) -> bool:
        """Whether its users are not the node's."""
        return self.minor >= 35 and self.spec.hostUsers is False

    def named(self, test: Callable[[Any], bool]) -> list[str]:
        """The containers whose security context passes a test; the context may be None."""
        return [each.name for each in self.containers if test(each.securityContext)]

    def setters(self, test: Callable[[Any], bool]) -> list[str]:
        """Who sets something, as messages say: ``pod``, ``container "a"``. The context is never None here."""
        there = self.spec.securityContext
        who = ["pod"] if there is not None and test(there) else []
        names = self.named(lambda context: context is not None and test(context))
        return [*who, f"{plural('container', names)} {quoted(names)}"] if names else who


Fault: TypeAlias = tuple[str, str] | None
"""A reason and a detail."""


def quoted(names: Iterable[str]) -> str:
    """Each in quotes."""
    return ", ".join(f'"{name}"' for name in names)


def plural(word: str, names: list[str]) -> str:
    """The word for one, or for several."""
    return word if len(names) == 1 else f"{word}s"


def distinct(names: Iterable[str]) -> list[str]:
    """Each once, in order."""
    return sorted(dict.fromkeys(names))
