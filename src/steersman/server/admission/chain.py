"""The plugins of one server, in order, and what they may look up.

Built when a server is extended with it, so a fork has its own. What plugins read is remembered and
forgotten again by the server's own reactions: nothing polls.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from steersman.server.admission.plugin import Plugin, PodPlugin, Refused, refusal
from steersman.server.admission.pod_template_memo import Templates
from steersman.server.registry.resources import Resource
from steersman.server.server import Attributes, Reaction, Server, Settle
from steersman.server.storage.store import object_key
from steersman.server.storage.watch import Selection


class Shelf:
    """`Lookups` into a server's tables. Lists of what plugins read are kept until something changes."""

    def __init__(self, server: Server, kept: frozenset[str]) -> None:
        self.server = server
        self._kept = kept
        self._lists: dict[str, dict[str, tuple[Any, ...]]] = {}
        self._pools: dict[str, dict[Any, str]] = {"ips": {}, "ports": {}}
        self._held: dict[str, tuple[tuple[str, Any], ...]] = {}
        """By service: what it holds of the pools."""

    @property
    def names(self) -> Random:
        return self.server.names

    def get(self, resource: str, namespace: str, name: str) -> Any | None:
        return self.server.store.table(resource).get(object_key(namespace, name))

    def all(self, resource: str, namespace: str = "") -> tuple[Any, ...]:
        lists = self._lists.get(resource)
        if lists is None:
            lists = self._lists[resource] = {}
        found = lists.get(namespace)
        if found is None:
            found = tuple(self.server.store.table(resource).select(Selection(namespace)))
            if resource in self._kept:
                lists[namespace] = found
        return found

    def write(self, resource: str, obj: Any) -> None:
        meta = obj.metadata
        found = self.server.registry.find("", "v1", resource)
        self.server.rewrite(found, meta.namespace, meta.name, lambda old: obj, subresource="status")

    def taken(self, pool: str, key: Any) -> str:
        return self._pools[pool].get(key, "")

    def changed(self, resource: str, obj: Any) -> None:
        """An object was written or removed."""
        lists = self._lists.get(resource)
        if lists:
            lists.pop(obj.metadata.namespace, None)
            lists.pop("", None)

    def hold(self, service: Any, holds: Callable[[Any], tuple[tuple[str, Any], ...]]) -> None:
        """A service was written or removed: note what of the pools is its own now."""
        meta = service.metadata
        key = object_key(meta.namespace, meta.name)
        for pool, item in self._held.pop(key, ()):
            self._pools[pool].pop(item, None)
        there = self.get("services", meta.namespace, meta.name)
        if there is not None:
            self._held[key] = held = holds(there)
            for pool, item in held:
                self._pools[pool][item] = key


Holds = Callable[[Any], tuple[tuple[str, Any], ...]]


class Chain:
    """`steersman.server.server.Admission` by a list of plugins."""

    def __init__(self, server: Server, plugins: tuple[Plugin, ...], holds: Holds) -> None:
        self.plugins = plugins
        read = tuple(dict.fromkeys(name for plugin in plugins for name in plugin.reads))
        self.look = Shelf(server, frozenset(read))
        self._templates = Templates(
            tuple(plugin for plugin in plugins if isinstance(plugin, PodPlugin)), self.look
        )
        self._decides = frozenset(
            name for plugin in plugins if isinstance(plugin, PodPlugin) for name in plugin.reads
        )
        self._mutators: dict[tuple[str, str], tuple[Plugin, ...]] = {}
        self._validators: dict[tuple[str, str], tuple[Plugin, ...]] = {}
        for name in read:
            _react(server, name, self._forgets(name))
        for service in server.store.table("services").select(Selection()):
            self.look.hold(service, holds)
        _react(server, "services", lambda service: self.look.hold(service, holds))

    def _forgets(self, resource: str) -> Reaction:
        decides = resource in self._decides

        def changed(obj: Any) -> None:
            self.look.changed(resource, obj)
            if decides:
                meta = obj.metadata
                self._templates.forget(meta.name if resource == "namespaces" else meta.namespace)

        return changed

    # -- asking -------------------------------------------------------------------------------

    def mutate(self, request: Attributes) -> Any:
        resource, subresource = request.resource, request.subresource
        if resource.id == "pods" and not subresource and request.operation == "CREATE":
            return self._templates.mutate(request)
        key = (resource.id, subresource)
        plugins = self._mutators.get(key)
        if plugins is None:
            plugins = self._mutators[key] = self._minding(resource, subresource, "mutates")
        if not plugins:
            return request.obj
        try:
            for plugin in plugins:
                request = request._replace(obj=plugin.mutate(request, self.look))
        except Refused as refused:
            raise refusal(request, str(refused)) from None
        return request.obj

    def validate(self, request: Attributes) -> Settle | None:
        resource, subresource = request.resource, request.subresource
        if request.operation == "DELETE":
            return None
        if resource.id == "pods" and not subresource and request.operation == "CREATE":
            self._templates.validate(request)
        key = (resource.id, subresource)
        plugins = self._validators.get(key)
        if plugins is None:
            plugins = self._validators[key] = self._minding(resource, subresource, "validates")
        settles: list[Settle] = []
        try:
            for plugin in plugins:
                settle = plugin.validate(request, self.look)
                if settle is not None:
                    settles.append(settle)
        except Refused as refused:
            raise refusal(request, str(refused)) from None
        return partial(_settle_all, settles) if settles else None

    def warnings(self, request: Attributes) -> tuple[str, ...]:
        """What to tell whoever made a request that passed. Asked by the edge, once it has."""
        told = (text for plugin in self.plugins for text in plugin.warn(request, self.look))
        return tuple(dict.fromkeys(told))

    def _minding(self, resource: Resource, subresource: str, how: str) -> tuple[Plugin, ...]:
        return tuple(
            plugin
            for plugin in self.plugins
            if subresource in plugin.subresources
            and (resource.id in getattr(plugin, how) or (resource.namespaced and "*" in getattr(plugin, how)))
        )


def _settle_all(settles: list[Settle]) -> None:
    for settle in settles:
        settle()


def _react(server: Server, resource: str, reaction: Reaction) -> None:
    """Add a reaction to those there are."""
    before = server.reactions.get(resource)

    def both(obj: Any) -> None:
        assert before is not None
        before(obj)
        reaction(obj)

    server.reactions[resource] = reaction if before is None else both
