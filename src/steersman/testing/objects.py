"""The objects of a cluster: reading and writing them, and their history."""

from __future__ import annotations

import builtins
from abc import abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from steersman.api.errors import NotFound
from steersman.api.scheme import Key, Kind
from steersman.api.suggestions import hint
from steersman.client.api import Api
from steersman.server.apply.options import APPLY_YAML
from steersman.server.server import Server
from steersman.testing import kinds
from steersman.testing.generated.objects import TypedObjects
from steersman.testing.history import Entry, History

if TYPE_CHECKING:
    from steersman.api.generated.core_v1 import Event

T = TypeVar("T")
Propagation = Literal["Background", "Foreground", "Orphan"]

STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"
JSON = "application/json-patch+json"


class Objects(TypedObjects):
    """Reading and writing, which take no time: the part of `Cluster` that is the same in a coroutine.

    Kinds are given by any of their names (``Deployment``, ``deploy``, ``deployments.apps``), as struct type or as `Kind`.
    Built-in objects are frozen structs, custom ones plain dicts.
    """

    _api: Api
    _history: History
    _reads: dict[tuple[str, Key], Any]
    """The objects read since it was last cleared."""

    @property
    @abstractmethod
    def _server(self) -> Server: ...

    @abstractmethod
    def _ask(self, request: Coroutine[Any, Any, T]) -> T:
        """Run a request that does not wait for anything, at once."""

    # -- reading ------------------------------------------------------------------------------

    def _get(self, kind: object, name: str, namespace: str) -> Any:
        found = self.kind(kind)
        obj = self._ask(self._api.get(found, namespace, name))
        self._reads[found.resource, _key(obj)] = obj
        return obj

    def _list(self, kind: object, namespace: str | None, selector: str) -> builtins.list[Any]:
        found = self.kind(kind)
        items = self._ask(self._api.list(found, namespace or "", label_selector=selector)).items
        self._reads.update({(found.resource, _key(obj)): obj for obj in items})
        return items

    def history(self, of: object = None, name: str = "", namespace: str = "default") -> builtins.list[Entry]:
        """The history of an object, of ``history("Deployment", "web")``, or of all: time, actor and change."""
        if of is None:
            return self._history.entries()
        kind, key = self._about(of, name, namespace)
        return self._history.entries(kind.resource, key)

    def events(self, of: object = None, name: str = "", namespace: str = "default") -> builtins.list[Event]:
        """The events about an object, or all, oldest first. Events expire after an hour."""
        found: builtins.list[Event] = self._list("events", None, "")
        found.sort(key=lambda event: int(event.metadata.resourceVersion))
        if of is None:
            return found
        kind, key = self._about(of, name, namespace)
        names = kind.name, key.namespace, key.name
        return [
            event
            for event in found
            if (event.involvedObject.kind, event.involvedObject.namespace, event.involvedObject.name) == names
        ]

    def kind(self, name_or_type: object) -> Kind[Any]:
        """The `Kind` of ``"deploy"``, ``"deployments.apps"``, ``"widgets"`` or a struct type: its group, version, plural and scope.

        Names are looked up in any case among built-in kinds, then among the custom ones that are served: kind, plural,
        singular, short names, or in full, as ``widgets.example.com``. Of several versions the stored one is meant.
        Objects of built-in kinds are frozen structs, custom ones plain dicts. Raises `LookupError`.
        """
        return kinds.kind(self._server, name_or_type)

    def _about(self, of: object, name: str, namespace: str) -> tuple[Kind[Any], Key]:
        if name:
            kind = self.kind(of)
            return kind, Key(namespace if kind.namespaced else "", name)
        if isinstance(of, str | type | Kind):
            raise TypeError(f"the name is missing: {self.kind(of).name} of which name?")
        kind = kinds.kind_of_object(self._server, of)
        return kind, _key(of)

    # -- writing ------------------------------------------------------------------------------

    def apply(
        self, what: object, namespace: str = "default", *, server_side: bool = True, manager: str = "kubectl"
    ) -> Any:
        """Apply manifests: YAML or JSON text, a file, a directory, a document, a typed object, or many of them.

        Returns the object, or a list where there are several. ``server_side=False`` creates missing objects and replaces
        existing ones.
        """
        return self._each(what, lambda document: self._apply(document, namespace, server_side, manager))

    def create(self, what: object, namespace: str = "default") -> Any:
        """Create objects, in any form `apply` takes. Raises `AlreadyExists`."""
        return self._each(what, lambda document: self._create(document, namespace))

    def patch(
        self,
        kind: object,
        name: str,
        body: object,
        namespace: str = "default",
        *,
        subresource: str = "",
    ) -> Any:
        """Patch an object as kubectl does: a strategic merge patch for built-in kinds, a JSON merge patch for custom ones, a
        JSON patch where the body is a list. Raises `BadRequest` for fields that the kind does not have."""
        found = self.kind(kind)
        if not isinstance(body, Mapping | list | tuple):
            raise TypeError(f"a patch is a document or a list of operations, not {body!r}")
        kinds.check_fields(self._server, found, body, subresource)
        content = JSON if isinstance(body, list | tuple) else MERGE if found.type is dict else STRATEGIC
        change = self._api.patch(found, namespace, name, body, content_type=content, subresource=subresource)
        return self._ask(change)

    def scale(self, kind: object, name: str, replicas: int, namespace: str = "default") -> None:
        """Set the number of replicas."""
        if isinstance(replicas, bool) or not isinstance(replicas, int) or replicas < 0:
            raise ValueError(f"replicas must be 0 or more, not {replicas!r}")
        self.patch(kind, name, {"spec": {"replicas": replicas}}, namespace, subresource="scale")

    def delete(
        self,
        of: object,
        name: str = "",
        namespace: str = "default",
        *,
        propagation: Propagation | None = None,
        grace: int | None = None,
    ) -> None:
        """Delete an object, or ``delete("Deployment", "web")``. ``grace`` is its grace period in seconds."""
        if propagation is not None and propagation not in get_args(Propagation):
            raise ValueError(
                f"unknown propagation {propagation!r}; {hint(propagation, get_args(Propagation))}"
            )
        if grace is not None and grace < 0:
            raise ValueError(f"grace must be 0 or more seconds, not {grace!r}")
        kind, key = self._about(of, name, namespace)
        self._ask(self._api.delete(kind, key.namespace, key.name, propagation=propagation, grace=grace))

    def _each(self, what: object, do: Callable[[kinds.Document], Any]) -> Any:
        made = [do(document) for document in kinds.documents(self._server, what)]
        return made[0] if len(made) == 1 else made

    def _apply(self, document: kinds.Document, namespace: str, server_side: bool, manager: str) -> Any:
        kind = kinds.kind_of_object(self._server, document)
        where, name = kinds.address(kind, document, namespace)
        if not name:
            return self._create(document, namespace)
        if server_side:
            change = self._api.patch(
                kind, where, name, document, content_type=APPLY_YAML, field_manager=manager, force=True
            )
            return self._ask(change)
        kinds.check_fields(self._server, kind, document)
        try:
            return self._ask(self._api.update(kind, where, name, document))
        except NotFound:
            return self._create(document, namespace)

    def _create(self, document: kinds.Document, namespace: str) -> Any:
        kind = kinds.kind_of_object(self._server, document)
        where, _ = kinds.address(kind, document, namespace)
        kinds.check_fields(self._server, kind, document)
        return self._ask(self._api.create(kind, where, document))


def _key(obj: Any) -> Key:
    if isinstance(obj, dict):
        meta = obj.get("metadata", {})
        return Key(meta.get("namespace", ""), meta.get("name", ""))
    return Key(obj.metadata.namespace, obj.metadata.name)
