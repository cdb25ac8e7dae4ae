"""What a plugin is: frozen, small, and pure but for what it looks up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar, NamedTuple, Protocol

from steersman.api.generated.core_v1 import PodSpec
from steersman.server import status_errors
from steersman.server.server import Attributes, Settle


class Lookups(Protocol):
    """What plugins may know of the state. Resources go by the names of their tables."""

    @property
    def names(self) -> Random:
        """Where made-up names come from."""
        ...

    def get(self, resource: str, namespace: str, name: str) -> Any | None:
        """One object, or None."""
        ...

    def all(self, resource: str, namespace: str = "") -> tuple[Any, ...]:
        """The objects of a namespace, or of all, in order."""
        ...

    def write(self, resource: str, obj: Any) -> None:
        """Replace an object on the server's own account."""
        ...

    def taken(self, pool: str, key: Any) -> str:
        """The service that has an address (pool ``ips``) or a port (pool ``ports``), or ``""``."""
        ...


class Refused(Exception):
    """Why a plugin does not let a request pass. It becomes a 403 that names the object."""


def refusal(request: Attributes, why: str) -> Exception:
    """A refusal in the words a real server puts around it."""
    name = request.name
    if not name and request.obj is not None:
        # While plugins change objects, names are not generated yet.
        name = request.obj.metadata.name or request.obj.metadata.generateName
    resource = request.resource
    return status_errors.forbidden(resource.group, resource.plural, name or "Unknown", why)


@dataclass(frozen=True, slots=True)
class Plugin:
    """Base of all plugins. ``"*"`` stands for every namespaced resource."""

    name: ClassVar[str] = ""
    mutates: ClassVar[tuple[str, ...]] = ()
    """Resources whose objects it may change."""
    validates: ClassVar[tuple[str, ...]] = ()
    """Resources whose objects it may refuse."""
    subresources: ClassVar[tuple[str, ...]] = ("",)
    """Which of their subresources it minds; ``""`` is the object itself."""
    reads: ClassVar[tuple[str, ...]] = ()
    """Resources its decisions depend on: what was remembered is forgotten when one of them changes."""

    def mutate(self, request: Attributes, look: Lookups) -> Any:
        """The object as it shall be. Raises `Refused`."""
        return request.obj

    def validate(self, request: Attributes, look: Lookups) -> Settle | None:
        """What to do when the request is carried out. Raises `Refused`."""
        return None

    def warn(self, request: Attributes, look: Lookups) -> tuple[str, ...]:
        """What to tell whoever made a request that passes."""
        return ()


class Draft(NamedTuple):
    """A pod's spec on its way through the plugins, and the annotations they leave."""

    spec: PodSpec
    notes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PodPlugin(Plugin):
    """Decides about new pods by their spec and namespace alone, so once for all pods of a template."""

    def fill(self, draft: Draft, namespace: str, look: Lookups) -> Draft:
        """The spec of a new pod as it shall be. Raises `Refused`."""
        return draft

    def fault(self, spec: PodSpec, annotations: Mapping[str, str], namespace: str, look: Lookups) -> str:
        """Why a new pod with this spec is refused, or ``""``."""
        return ""
