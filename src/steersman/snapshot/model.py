"""The values of a snapshot: its header, its kinds, and the sink that its objects go to."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

if TYPE_CHECKING:
    from steersman.server.storage.store import Store

_EMPTY: Mapping[str, str] = {}


class SnapshotKind(msgspec.Struct, frozen=True):
    """One resource of a snapshot, in the version that its objects were read in."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    resourceVersion: str = ""
    """Of the list: all objects of the kind are as of this moment."""
    objects: int = 0

    @property
    def id(self) -> str:
        """The group-resource: ``deployments.apps``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The header of a snapshot: its contents, when and by which program it was made, and what it lacks."""

    name: str
    format: int
    tool: str = ""
    """The version of the program that made it."""
    server: str = ""
    """The version of the API server."""
    time: datetime | None = None
    redacted: bool = True
    """Whether the data of Secrets and ConfigMaps are hashes."""
    kinds: tuple[SnapshotKind, ...] = ()
    unread: Mapping[str, str] = {}
    """Resources that could not be read, with the reason."""
    omitted: Mapping[str, str] = {}
    """Resources that were left out on purpose, with the reason."""
    size: int = 0
    """Bytes of the compressed documents."""
    sha256: str = ""
    """Of the compressed documents."""

    @property
    def objects(self) -> int:
        """The number of objects."""
        return sum(kind.objects for kind in self.kinds)


class Sink(Protocol):
    """Where the objects of a snapshot go: a file, or a store."""

    def begin(self, kind: SnapshotKind) -> None:
        """Start a kind; its objects follow."""
        ...

    def add(self, document: bytes) -> None:
        """Add an object as JSON, with its apiVersion and kind."""
        ...

    def restart(self) -> None:
        """Forget the objects of the current kind: its list starts over."""
        ...

    def end(self, resource_version: str) -> None:
        """End the current kind."""
        ...


class LoadedSnapshot(NamedTuple):
    """The objects of a cluster in a store, and what is known about their origin."""

    store: Store
    time: datetime
    """When the cluster was read."""
    server: str = ""
    unread: Mapping[str, str] = _EMPTY
    unknown: Mapping[str, str] = _EMPTY
    """Resources whose objects this program cannot decode, with the reason. They are not in the store."""
    redacted: bool = True
    """Whether the data of Secrets and ConfigMaps are hashes."""

    @property
    def nodes(self) -> tuple[Any, ...]:
        """The Nodes."""
        table = self.store.table("nodes")
        return tuple(table.get(key) for key in table.keys())  # noqa: SIM118  (a table is no dict)
