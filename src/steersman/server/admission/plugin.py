"""Plugin: the base of admission plugins, which are frozen and pure except for the objects they look up."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, ClassVar, Protocol

import msgspec

from steersman.api.generated.core_v1 import PodSpec
from steersman.server import status_errors
from steersman.server.auth.attributes import Authorizer
from steersman.server.server import AdmissionAttributes, BeforeWrite


class Listers(Protocol):
    """The objects and allocations plugins look up. Resources have the names of their tables."""

    @property
    def authorizer(self) -> Authorizer | None:
        """The authorizer of the server; None where every request is allowed."""
        ...

    @property
    def random(self) -> Random:
        """The random source of generated names."""
        ...

    def get(self, resource: str, namespace: str, name: str) -> Any | None:
        """One object, or None."""
        ...

    def list(self, resource: str, namespace: str = "") -> tuple[Any, ...]:
        """The objects of a namespace, or of all namespaces, in order."""
        ...

    def write_status(self, resource: str, obj: Any) -> None:
        """Writes the status of an object, as the server itself."""
        ...

    def allocated_to(self, pool: str, key: Any) -> str:
        """The key of the Service that has an address (pool ``ips``) or a port (pool ``ports``), or ``""``."""
        ...


class AdmissionDenied(Exception):
    """A plugin denies a request. The client gets a 403 that names the object."""


def forbidden_error(request: AdmissionAttributes, reason: str) -> Exception:
    """The Forbidden error of a denied request, with upstream's text."""
    name = request.name
    if not name and request.obj is not None:
        # Names are generated after mutation.
        name = request.obj.metadata.name or request.obj.metadata.generateName
    resource = request.resource
    return status_errors.forbidden(resource.group, resource.plural, name or "Unknown", reason)


class Plugin(msgspec.Struct, frozen=True):
    """The base of all plugins. ``"*"`` is every namespaced resource."""

    name: ClassVar[str] = ""
    mutates: ClassVar[tuple[str, ...]] = ()
    """The resources whose objects it mutates."""
    validates: ClassVar[tuple[str, ...]] = ()
    """The resources whose objects it validates."""
    subresources: ClassVar[tuple[str, ...]] = ("",)
    """The subresources it handles; ``""`` is the object itself."""
    late: ClassVar[bool] = False
    """Whether it runs after webhooks. Upstream allocates addresses and charges quotas once all others have admitted."""
    reads: ClassVar[tuple[str, ...]] = ()
    """The resources its decisions depend on: a change of one invalidates cached decisions."""

    def mutate(self, request: AdmissionAttributes, listers: Listers) -> Any:
        """The mutated object. Raises `AdmissionDenied`."""
        return request.obj

    def validate(self, request: AdmissionAttributes, listers: Listers) -> BeforeWrite | None:
        """Admits the request; the result, if any, is called right before it is written. Raises `AdmissionDenied`."""
        return None

    def warn(self, request: AdmissionAttributes, listers: Listers) -> tuple[str, ...]:
        """Warnings for the client of an admitted request."""
        return ()


class PodDraft(msgspec.Struct, frozen=True):
    """The spec of a new pod between plugins, and the annotations they add."""

    spec: PodSpec
    notes: Mapping[str, str]


class PodPlugin(Plugin, frozen=True):
    """A plugin that decides on new pods by spec and namespace alone, so once for all pods of a template."""

    def mutate_spec(self, draft: PodDraft, namespace: str, listers: Listers) -> PodDraft:
        """The mutated spec of a new pod. Raises `AdmissionDenied`."""
        return draft

    def validate_spec(
        self, spec: PodSpec, annotations: Mapping[str, str], namespace: str, listers: Listers
    ) -> str:
        """The reason to deny a new pod with this spec, or ``""``."""
        return ""
