"""A store with the objects of a snapshot: uids, resourceVersions, timestamps, status and owners as they were."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from steersman.api.generated.core_v1 import Namespace
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.server.bootstrap_objects import create_bootstrap_objects
from steersman.server.registry.resources import Registry
from steersman.server.rest.create import create_as_server
from steersman.server.server import Server
from steersman.server.storage.durable.documents import DEFINITIONS, DocumentDecoder
from steersman.server.storage.store import Store, object_key
from steersman.snapshot import file
from steersman.snapshot.model import Header, LoadedSnapshot, SnapshotKind

NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
"""The namespaces that every API server has."""


class StoreBuilder:
    """A sink that decodes objects for a store.

    Kinds that this program does not know are kept as they are: as custom resources whose definition is not served.
    """

    def __init__(self) -> None:
        self.unknown: dict[str, str] = {}
        self._decoder = DocumentDecoder(Registry())
        # CustomResourceDefinitions come before their custom resources.
        self._tables: dict[str, dict[str, Any]] = {DEFINITIONS: {}}
        self._kind = ""
        self._objects: dict[str, Any] = {}
        self._revision = 1

    def begin(self, kind: SnapshotKind) -> None:
        self._kind = kind.id
        self._objects = self._tables.setdefault(kind.id, {})

    def add(self, document: bytes) -> None:
        try:
            obj = self._decoder.decode(self._kind, document)
        except (ValueError, msgspec.MsgspecError) as error:
            self.unknown.setdefault(self._kind, str(error))
            return
        meta = obj.metadata
        self._objects[object_key(meta.namespace, meta.name)] = obj
        if meta.resourceVersion.isdecimal():
            self._revision = max(self._revision, int(meta.resourceVersion))

    def restart(self) -> None:
        self._objects.clear()

    def end(self, resource_version: str) -> None:
        if resource_version.isdecimal():
            self._revision = max(self._revision, int(resource_version))

    def build(self) -> Store:
        """The store. It continues above every resourceVersion of the snapshot."""
        store = Store(revision=self._revision, compacted=self._revision)
        for resource, objects in self._tables.items():
            store.table(resource).load(objects)
        return store


def load_file(path: Path, progress: Callable[[int, int], None] = lambda done, total: None) -> LoadedSnapshot:
    """Load a snapshot file. Raises `DataDirError`."""
    builder = StoreBuilder()
    header: Header = file.read(path, builder, progress)
    time = header.time or datetime.now(UTC)
    return LoadedSnapshot(
        builder.build(), time, header.server, header.unread, builder.unknown, header.redacted
    )


# -- a server ---------------------------------------------------------------------------------


def restore_bootstrap_objects(server: Server, cidr: str) -> None:
    """Create the namespaces, classes and services that every server has, where the snapshot could not read them."""
    resource = server.registry.find("", "v1", "namespaces")
    for name in NAMESPACES:
        if server.table(resource).get(name) is None:
            create_as_server(server, resource, "", Namespace(metadata=ObjectMeta(name=name)))
    create_bootstrap_objects(server, cidr=cidr)
