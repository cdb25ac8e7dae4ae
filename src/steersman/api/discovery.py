"""`DiscoveryResult`: the resources that a server serves, for controllers that handle every resource.

Group versions that could not be discovered are listed, so that they cannot be mistaken for ones that are not served.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import msgspec

from steersman.api.partial_object import PartialObject, partial_kind
from steersman.api.scheme import Kind


class ApiResource(msgspec.Struct, frozen=True):
    """One resource in one version, as upstream's APIResource."""

    group: str
    version: str
    kind: str
    name: str
    """The path segment: ``pods``."""
    namespaced: bool
    verbs: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    """``scale``, ``status`` …"""
    short_names: tuple[str, ...] = ()
    """As kubectl accepts them: ``cm``."""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def id(self) -> str:
        """The group-resource, as RBAC writes it: ``deployments.apps``."""
        return f"{self.name}.{self.group}" if self.group else self.name

    @property
    def partial(self) -> Kind[PartialObject]:
        """The kind that decodes only the metadata of this resource."""
        return partial_kind(self.group, self.version, self.kind, self.name, self.namespaced)

    def supports(self, *verbs: str) -> bool:
        """Report whether the resource supports all of these verbs."""
        return set(verbs).issubset(self.verbs)


class FailedGroupVersion(msgspec.Struct, frozen=True):
    """A group version whose resources could not be discovered."""

    group_version: str
    error: str

    @property
    def group(self) -> str:
        return self.group_version.rpartition("/")[0]


class DiscoveryResult(msgspec.Struct, frozen=True, dict=True):
    """The discovered resources, and the group versions that could not be discovered."""

    resources: tuple[ApiResource, ...] = ()
    """All versions of all resources; within a group the preferred version comes first."""
    failed: tuple[FailedGroupVersion, ...] = ()
    malformed: tuple[str, ...] = ()
    """Strings that are not valid group versions."""

    @cached_property
    def preferred(self) -> tuple[ApiResource, ...]:
        """Each resource once, in its preferred version."""
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
        """Return the resource of a kind; None if none was discovered."""
        return self._kinds.get((api_version, kind))

    def is_incomplete(self, group: str) -> bool:
        """Report whether some version of a group could not be discovered."""
        return any(missing.group == group for missing in self.failed)

    @property
    def error_message(self) -> str:
        """Upstream's error message for the failed group versions; empty if there are none."""
        if not self.failed:
            return ""
        each = sorted(f"{missing.group_version}: {missing.error}" for missing in self.failed)
        return f"unable to retrieve the complete list of server APIs: {', '.join(each)}"


def merge_results(parts: Iterable[DiscoveryResult]) -> DiscoveryResult:
    """Merge several results into one."""
    found = tuple(parts)
    return DiscoveryResult(
        tuple(resource for part in found for resource in part.resources),
        tuple(missing for part in found for missing in part.failed),
        tuple(name for part in found for name in part.malformed),
    )
