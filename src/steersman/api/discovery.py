"""What a server serves, as it says itself. Controllers that look after every resource learn them here.

What could not be learned is named: a group whose server does not answer is never taken for a group
that is not there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import msgspec

from steersman.api.partial_object import PartialObject, partial_kind
from steersman.api.scheme import Kind


class ApiResource(msgspec.Struct, frozen=True):
    """One resource in one version."""

    group: str
    version: str
    kind: str
    name: str
    """The path segment: ``pods``."""
    namespaced: bool
    verbs: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    """Its subresources: ``scale``, ``status``."""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def id(self) -> str:
        """The group-resource, as RBAC writes it: ``deployments.apps``."""
        return f"{self.name}.{self.group}" if self.group else self.name

    @property
    def partial(self) -> Kind[PartialObject]:
        """The resource, read for its metadata alone."""
        return partial_kind(self.group, self.version, self.kind, self.name, self.namespaced)

    def supports(self, *verbs: str) -> bool:
        """Whether all of these may be asked of it."""
        return all(verb in self.verbs for verb in verbs)


class FailedGroupVersion(msgspec.Struct, frozen=True):
    """A group-version that is served, of which could not be learned what is in it."""

    group_version: str
    error: str

    @property
    def group(self) -> str:
        return self.group_version.rpartition("/")[0]


@dataclass(frozen=True)
class DiscoveryResult:
    """What is served, and what could not be learned of it."""

    resources: tuple[ApiResource, ...] = ()
    """In all their versions; within a group the preferred version comes first."""
    failed: tuple[FailedGroupVersion, ...] = ()
    malformed: tuple[str, ...] = ()
    """Group-versions that are none."""

    @cached_property
    def preferred(self) -> tuple[ApiResource, ...]:
        """Every resource once, in its preferred version."""
        best: dict[str, ApiResource] = {}
        for resource in self.resources:
            best.setdefault(resource.id, resource)
        return tuple(best.values())

    @cached_property
    def _kinds(self) -> dict[tuple[str, str], ApiResource]:
        kinds: dict[tuple[str, str], ApiResource] = {}
        for resource in self.resources:
            kinds.setdefault((resource.api_version, resource.kind), resource)
        return kinds

    def find(self, api_version: str, kind: str) -> ApiResource | None:
        """The resource by which objects of a kind are served; None where there is none that we know of."""
        return self._kinds.get((api_version, kind))

    def is_incomplete(self, group: str) -> bool:
        """Whether there may be more in a group than is known."""
        return any(missing.group == group for missing in self.failed)

    @property
    def error_message(self) -> str:
        """What could not be learned, in upstream's words; empty where all was."""
        if not self.failed:
            return ""
        each = sorted(f"{missing.group_version}: {missing.error}" for missing in self.failed)
        return f"unable to retrieve the complete list of server APIs: {', '.join(each)}"


def merge_results(parts: Iterable[DiscoveryResult]) -> DiscoveryResult:
    """Several answers as one."""
    found = tuple(parts)
    return DiscoveryResult(
        tuple(resource for part in found for resource in part.resources),
        tuple(missing for part in found for missing in part.failed),
        tuple(name for part in found for name in part.malformed),
    )
