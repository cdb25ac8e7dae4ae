"""The life of definitions: their names are accepted, their resources served, and at the end removed.

Everything happens right after the write that is its cause, each step as a write of its own: watchers see
what they see of a real server, and who waits for a definition to be established need not wait.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from steersman.api.generated.apiextensions_v1 import CustomResourceDefinition, CustomResourceDefinitionSpec
from steersman.server import status_errors
from steersman.server.crd.definitions import (
    defaulted,
    definition_problems,
    status_problems,
    with_stored_version,
)
from steersman.server.crd.naming import condition, established, is_true, judged, named, with_condition
from steersman.server.crd.resource import refitted, resource_of
from steersman.server.crd.version import Version, version_of
from steersman.server.crd.warnings import warnings
from steersman.server.registry import graceful_deletion
from steersman.server.registry.resources import Resource
from steersman.server.registry.strategy import WriteContext
from steersman.server.server import Server
from steersman.server.storage.watch import Selection

GROUP, PLURAL, KIND = "apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition"
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
"""The finalizer by which a definition outlives its objects."""

_log = logging.getLogger(__name__)


def install(server: Server) -> Definitions:
    """Let a server have custom resources. Those it has definitions of already are served at once."""
    return Definitions(server)


# -- definitions as objects -------------------------------------------------------------------


def prepare_for_create(
    definition: CustomResourceDefinition, context: WriteContext
) -> CustomResourceDefinition:
    """A new definition, which nobody knows yet. Raises `Invalid`."""
    empty = CustomResourceDefinition().status
    definition = with_stored_version(replace(definition, status=empty))
    wrong = definition_problems(definition)
    if wrong:
        raise status_errors.invalid(GROUP, KIND, definition.metadata.name, wrong)
    for text in warnings(definition):
        _log.warning("%s: %s", definition.metadata.name, text)
    return definition


def prepare_for_update(
    new: CustomResourceDefinition, old: CustomResourceDefinition, context: WriteContext
) -> CustomResourceDefinition:
    """A definition in place of another, whose status it keeps. Raises `Invalid`."""
    new = with_stored_version(replace(new, status=old.status))
    wrong = definition_problems(new, old)
    if wrong:
        raise status_errors.invalid(GROUP, KIND, new.metadata.name, wrong)
    for text in warnings(new, old):
        _log.warning("%s: %s", new.metadata.name, text)
    return new


def prepare_for_status_update(
    new: CustomResourceDefinition, old: CustomResourceDefinition, context: WriteContext
) -> CustomResourceDefinition:
    """A definition with another status. Raises `Invalid`."""
    new = replace(new, spec=old.spec)
    wrong = status_problems(new, old)
    if wrong:
        raise status_errors.invalid(GROUP, KIND, new.metadata.name, wrong)
    return new


def mark_terminating(definition: CustomResourceDefinition, context: WriteContext) -> CustomResourceDefinition:
    """A definition somebody wants deleted: its objects go first."""
    meta = definition.metadata
    finalizers = meta.finalizers if CLEANUP in meta.finalizers else (*meta.finalizers, CLEANUP)
    says = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    pending = condition("Terminating", "True", "InstanceDeletionPending", says)
    return with_condition(
        replace(definition, metadata=replace(meta, deletionTimestamp=context.now, finalizers=finalizers)),
        pending,
        context.now,
    )


# -- definitions at work ----------------------------------------------------------------------


class Served(msgspec.Struct, frozen=True, eq=False):
    """What a definition makes the server serve."""

    spec: CustomResourceDefinitionSpec
    names: object
    terminating: bool
    storage: Version
    versions: tuple[Version, ...]
    """Those that are served, in the definition's order."""
    resources: tuple[Resource, ...]


class Definitions:
    """The definitions of one server."""

    def __init__(self, server: Server) -> None:
        self._server = server
        row = server.registry.find(GROUP, "v1", PLURAL)
        strategy = replace(
            row.strategy,
            default=defaulted,
            prepare_for_create=prepare_for_create,
            prepare_for_update=prepare_for_update,
            prepare_for_status_update=prepare_for_status_update,
            mark_terminating=mark_terminating,
        )
        self._resource = replace(row, strategy=strategy)
        self._served: dict[str, Served] = {}
        self._judged: dict[str, CustomResourceDefinitionSpec] = {}
        self._due: dict[str, None] = {}
        self._busy = False
        server.registry.add(self._resource)
        server.reactions[self._resource.id] = lambda obj: self._look_at(obj.metadata.name)
        self._due.update(dict.fromkeys(server.table(self._resource).keys()))
        self._settle()

    def served(self) -> tuple[Version, ...]:
        """Every custom resource there is, version by version: for discovery, tables and documentation."""
        return tuple(version for name in sorted(self._served) for version in self._served[name].versions)

    def find(self, group: str, version: str, plural: str) -> Version | None:
        """A version of a custom resource, None where it is none."""
        served = self._served.get(f"{plural}.{group}")
        versions = served.versions if served is not None else ()
        return next((each for each in versions if each.name == version), None)

    # -- one thing after the other ------------------------------------------------------------

    def _look_at(self, name: str) -> None:
        """Something happened to a definition, or to the objects of one that is going."""
        self._due[name] = None
        self._settle()

    def _settle(self) -> None:
        # What is written here comes back here as something that happened.
        if self._busy:
            return
        self._busy = True
        try:
            while self._due:
                name = next(iter(self._due))
                del self._due[name]
                self._see_to(name)
        finally:
            self._busy = False

    def _see_to(self, name: str) -> None:
        """Take the next step in a definition's life; a step that is written is followed by another."""
        definition = self._server.table(self._resource).get(name)
        if definition is None:
            self._unserve(name)
            self._judged.pop(name, None)
            self._reconsider(name)
            return
        for step in self._steps(name, definition):
            if step is not definition:
                self._write(name, definition, step)
                if step.status.acceptedNames != definition.status.acceptedNames:
                    self._reconsider(name)
                return
        self._serve(name, definition)
        if definition.metadata.deletionTimestamp is not None and CLEANUP in definition.metadata.finalizers:
            self._clean_up(name, definition)

    def _steps(self, name: str, definition: CustomResourceDefinition) -> Iterator[CustomResourceDefinition]:
        """What may have to be said of a definition; itself where that is said already."""
        now = self._server.now()
        yield named(
            definition, [each for each in self._all() if each.spec.group == definition.spec.group], now
        )
        if self._judged.get(name) is not definition.spec:
            yield judged(definition, now)
            # Schemas are large, and change less often than what is said of them.
            self._judged[name] = definition.spec
        yield established(definition, now)

    def _all(self) -> list[CustomResourceDefinition]:
        return list(self._server.table(self._resource).select(Selection()))

    def _reconsider(self, name: str) -> None:
        """Names may be free now that others of the group asked for in vain."""
        group = name.partition(".")[2]
        for each in self._all():
            if each.spec.group == group and each.spec.names != each.status.acceptedNames:
                self._due[each.metadata.name] = None

    # -- serving ------------------------------------------------------------------------------

    def _serve(self, name: str, definition: CustomResourceDefinition) -> None:
        spec, names = definition.spec, definition.status.acceptedNames
        if not is_true(definition, "Established") or self._server.registry.built_in(spec.group, names.plural):
            # What is built in cannot be defined anew; upstream, too, goes on serving it.
            self._unserve(name)
            return
        terminating = is_true(definition, "Terminating")
        old = self._served.get(name)
        if old is not None and old.spec == spec and old.names == names:
            if old.terminating != terminating:
                self._register(name, replace(old, terminating=terminating))
            return
        try:
            compiled = {said.name: version_of(definition, said) for said in spec.versions}
        except (ValueError, RecursionError) as error:
            # Nobody could create such a definition here; another program may have stored it.
            _log.error("%s cannot be served: %s", name, error)
            self._unserve(name)
            return
        storage = next(compiled[said.name] for said in spec.versions if said.storage)
        versions = tuple(compiled[said.name] for said in spec.versions if said.served)
        table = self._server.store.table(name)
        table.convert_objects(lambda obj: refitted(compiled, storage, obj))
        self._unregister(name)
        self._register(name, Served(spec, names, terminating, storage, versions, ()))
        # Objects may look different now, so who watches them begins anew, as with a real server.
        table.watchers.close()

    def _register(self, name: str, served: Served) -> None:
        resources = tuple(
            resource_of(
                version,
                served.storage,
                alone=len(served.spec.versions) == 1,
                terminating=served.terminating,
            )
            for version in served.versions
        )
        for resource in resources:
            self._server.registry.add(resource)
        self._served[name] = replace(served, resources=resources)
        if served.terminating:
            self._server.reactions[name] = lambda obj: self._look_at(name)

    def _unregister(self, name: str) -> None:
        served = self._served.pop(name, None)
        for resource in served.resources if served is not None else ():
            self._server.registry.remove(resource)
        self._server.reactions.pop(name, None)

    def _unserve(self, name: str) -> None:
        if name in self._served:
            self._unregister(name)
            self._server.store.table(name).watchers.close()

    def _write(self, name: str, old: CustomResourceDefinition, new: CustomResourceDefinition) -> None:
        owners = self._server.owners(self._resource, "status", old, new)
        self._server.write(self._resource, name, new, owners)

    # -- the end ------------------------------------------------------------------------------

    def _clean_up(self, name: str, definition: CustomResourceDefinition) -> None:
        now = self._server.now()
        begun = condition(
            "Terminating", "True", "InstanceDeletionInProgress", "CustomResource deletion is in progress"
        )
        marked = with_condition(definition, begun, now)
        if marked != definition:
            self._write(name, definition, marked)
            return
        served = self._served.get(name)
        if served is not None:
            self._delete_all(resource_of(served.storage, served.storage))
            if len(self._server.store.table(name)):
                # differs: upstream gives up after a minute of waiting, says so, and begins again.
                return
            done = condition("Terminating", "False", "InstanceDeletionCompleted", "removed all instances")
        else:
            done = condition("Terminating", "False", "NeverEstablished", "resource was never established")
        meta = definition.metadata
        finalizers = tuple(each for each in meta.finalizers if each != CLEANUP)
        if finalizers:
            kept = replace(definition, metadata=replace(meta, finalizers=finalizers))
            self._write(name, definition, with_condition(kept, done, now))
        else:
            self._server.remove(self._resource, name)

    def _delete_all(self, resource: Resource) -> None:
        """Delete all objects, or begin to: past admission, since nobody asked to keep them."""
        server, now = self._server, self._server.now()
        table = server.table(resource)
        for key in list(table.keys()):
            obj: Any = table.get(key)
            if obj is None or obj.metadata.deletionTimestamp is not None:
                continue
            plan = graceful_deletion.plan_deletion(
                obj, resource.strategy, graceful_deletion.DeletionOptions(), now
            )
            if plan.write is not None and plan.write != obj.metadata:
                server.write(resource, key, replace(obj, metadata=plan.write))
            if plan.remove:
                server.remove(resource, key)
