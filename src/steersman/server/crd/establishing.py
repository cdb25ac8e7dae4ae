"""The establishing controller: accepts the names of definitions, serves their resources, and cleans up.

It reconciles a definition right after the write that changed it, each step as a write of its own: watchers see
the same updates as upstream, and clients need not wait for a definition to be established.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from steersman.api.generated.apiextensions_v1 import CustomResourceDefinition, CustomResourceDefinitionSpec
from steersman.server import status_errors
from steersman.server.crd.conditions import (
    accept_names,
    check_conditions,
    condition,
    establish,
    is_true,
    with_condition,
)
from steersman.server.crd.conversion import WebhookConverter
from steersman.server.crd.definitions import (
    default_definition,
    validate_definition,
    validate_definition_status,
    with_stored_version,
)
from steersman.server.crd.resource import convert_stored, resource_of
from steersman.server.crd.version import CompiledVersion, compile_version
from steersman.server.crd.warnings import warnings
from steersman.server.registry import graceful_deletion
from steersman.server.registry.resources import Resource
from steersman.server.registry.strategy import WriteContext
from steersman.server.server import Server
from steersman.server.storage.watch import Selection

GROUP, PLURAL, KIND = "apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition"
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
"""The finalizer that keeps a definition until its custom resources are deleted."""

_log = logging.getLogger(__name__)


def install(server: Server) -> EstablishingController:
    """Installs custom resources in a server. Existing definitions are served at once."""
    return EstablishingController(server)


# -- strategy ---------------------------------------------------------------------------------


def prepare_for_create(
    definition: CustomResourceDefinition, context: WriteContext
) -> CustomResourceDefinition:
    """Clears the status of a new definition and validates it. Raises `Invalid`."""
    empty = CustomResourceDefinition().status
    definition = with_stored_version(replace(definition, status=empty))
    errors = validate_definition(definition)
    if errors:
        raise status_errors.invalid(GROUP, KIND, definition.metadata.name, errors)
    for text in warnings(definition):
        _log.warning("%s: %s", definition.metadata.name, text)
    return definition


def prepare_for_update(
    new: CustomResourceDefinition, old: CustomResourceDefinition, context: WriteContext
) -> CustomResourceDefinition:
    """Keeps the status of an updated definition and validates it. Raises `Invalid`."""
    new = with_stored_version(replace(new, status=old.status))
    errors = validate_definition(new, old)
    if errors:
        raise status_errors.invalid(GROUP, KIND, new.metadata.name, errors)
    for text in warnings(new, old):
        _log.warning("%s: %s", new.metadata.name, text)
    return new


def prepare_for_status_update(
    new: CustomResourceDefinition, old: CustomResourceDefinition, context: WriteContext
) -> CustomResourceDefinition:
    """Updates the status only and validates it. Raises `Invalid`."""
    new = replace(new, spec=old.spec)
    errors = validate_definition_status(new, old)
    if errors:
        raise status_errors.invalid(GROUP, KIND, new.metadata.name, errors)
    return new


def mark_terminating(definition: CustomResourceDefinition, context: WriteContext) -> CustomResourceDefinition:
    """Marks a deleted definition as terminating: its custom resources are deleted first."""
    meta = definition.metadata
    finalizers = meta.finalizers if CLEANUP in meta.finalizers else (*meta.finalizers, CLEANUP)
    detail = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    pending = condition("Terminating", "True", "InstanceDeletionPending", detail)
    return with_condition(
        replace(definition, metadata=replace(meta, deletionTimestamp=context.now, finalizers=finalizers)),
        pending,
        context.now,
    )


# -- controller -------------------------------------------------------------------------------


class ServedDefinition(msgspec.Struct, frozen=True, eq=False):
    """An established definition and the resources it serves."""

    spec: CustomResourceDefinitionSpec
    names: object
    terminating: bool
    storage: CompiledVersion
    versions: tuple[CompiledVersion, ...]
    """The served versions, in the definition's order."""
    converter: WebhookConverter | None
    """The conversion webhook; None if it has none."""
    resources: tuple[Resource, ...]


class EstablishingController:
    """Establishes the definitions of one server and serves their custom resources."""

    def __init__(self, server: Server) -> None:
        self._server = server
        row = server.registry.find(GROUP, "v1", PLURAL)
        strategy = replace(
            row.strategy,
            default=default_definition,
            prepare_for_create=prepare_for_create,
            prepare_for_update=prepare_for_update,
            prepare_for_status_update=prepare_for_status_update,
            mark_terminating=mark_terminating,
        )
        self._resource = replace(row, strategy=strategy)
        self._served: dict[str, ServedDefinition] = {}
        self._checked_specs: dict[str, CustomResourceDefinitionSpec] = {}
        self._queue: dict[str, None] = {}
        self._processing = False
        server.registry.add(self._resource)
        server.reactions[self._resource.id] = lambda obj: self._enqueue(obj.metadata.name)
        self._queue.update(dict.fromkeys(server.table(self._resource).keys()))
        self._process_queue()

    def served(self) -> tuple[CompiledVersion, ...]:
        """Every served version of every custom resource, for discovery, tables and OpenAPI."""
        return tuple(version for name in sorted(self._served) for version in self._served[name].versions)

    def find(self, group: str, version: str, plural: str) -> CompiledVersion | None:
        """A served version of a custom resource; None if there is none."""
        served = self._served.get(f"{plural}.{group}")
        versions = served.versions if served is not None else ()
        return next((each for each in versions if each.name == version), None)

    # -- reconciliation -----------------------------------------------------------------------

    def _enqueue(self, name: str) -> None:
        """Reconciles a definition that changed, or that is terminating and whose objects changed."""
        self._queue[name] = None
        self._process_queue()

    def _process_queue(self) -> None:
        # Writes below trigger the reaction that calls this method again.
        if self._processing:
            return
        self._processing = True
        try:
            while self._queue:
                name = next(iter(self._queue))
                del self._queue[name]
                self._reconcile(name)
        finally:
            self._processing = False

    def _reconcile(self, name: str) -> None:
        """Writes the next status update of a definition, or serves it; each write enqueues the definition again."""
        definition = self._server.table(self._resource).get(name)
        if definition is None:
            self._unserve(name)
            self._checked_specs.pop(name, None)
            self._requeue_group(name)
            return
        for step in self._status_updates(name, definition):
            if step is not definition:
                self._write(name, definition, step)
                if step.status.acceptedNames != definition.status.acceptedNames:
                    self._requeue_group(name)
                return
        self._serve(name, definition)
        if definition.metadata.deletionTimestamp is not None and CLEANUP in definition.metadata.finalizers:
            self._clean_up(name, definition)

    def _status_updates(
        self, name: str, definition: CustomResourceDefinition
    ) -> Iterator[CustomResourceDefinition]:
        """The status updates a definition may need, in order; the definition itself where none is needed."""
        now = self._server.now()
        yield accept_names(
            definition, [each for each in self._all() if each.spec.group == definition.spec.group], now
        )
        if self._checked_specs.get(name) is not definition.spec:
            yield check_conditions(definition, now)
            # Schemas are large, so conditions are checked once per spec.
            self._checked_specs[name] = definition.spec
        yield establish(definition, now)

    def _all(self) -> list[CustomResourceDefinition]:
        return list(self._server.table(self._resource).select(Selection()))

    def _requeue_group(self, name: str) -> None:
        """Enqueues the definitions of the group with unaccepted names, which may be free now."""
        group = name.partition(".")[2]
        for each in self._all():
            if each.spec.group == group and each.spec.names != each.status.acceptedNames:
                self._queue[each.metadata.name] = None

    # -- serving ------------------------------------------------------------------------------

    def _serve(self, name: str, definition: CustomResourceDefinition) -> None:
        spec, names = definition.spec, definition.status.acceptedNames
        if not is_true(definition, "Established") or self._server.registry.built_in(spec.group, names.plural):
            # A definition cannot replace a built-in resource, as upstream.
            self._unserve(name)
            return
        terminating = is_true(definition, "Terminating")
        old = self._served.get(name)
        if old is not None and old.spec == spec and old.names == names:
            if old.terminating != terminating:
                self._register(name, replace(old, terminating=terminating))
            return
        try:
            versions_by_name = {
                version_spec.name: compile_version(definition, version_spec) for version_spec in spec.versions
            }
        except (ValueError, RecursionError) as error:
            # Validation refuses such a definition, but a data directory may hold one.
            _log.error("%s cannot be served: %s", name, error)
            self._unserve(name)
            return
        storage = next(
            versions_by_name[version_spec.name] for version_spec in spec.versions if version_spec.storage
        )
        versions = tuple(
            versions_by_name[version_spec.name] for version_spec in spec.versions if version_spec.served
        )
        table = self._server.store.table(name)
        table.convert_objects(lambda obj: convert_stored(versions_by_name, storage, obj))
        self._unregister(name)
        converter = self._converter(name, spec, versions_by_name)
        self._register(name, ServedDefinition(spec, names, terminating, storage, versions, converter, ()))
        # Objects may have another representation now, so watches are closed, as upstream does.
        table.watchers.close()

    def _converter(
        self, name: str, spec: CustomResourceDefinitionSpec, versions: Mapping[str, CompiledVersion]
    ) -> WebhookConverter | None:
        conversion = spec.conversion
        if conversion is None or conversion.strategy != "Webhook" or conversion.webhook is None:
            return None
        return WebhookConverter(self._server, name, conversion.webhook, versions)

    def _register(self, name: str, served: ServedDefinition) -> None:
        resources = tuple(
            resource_of(
                version,
                served.storage,
                only_version=len(served.spec.versions) == 1,
                terminating=served.terminating,
                converter=served.converter,
            )
            for version in served.versions
        )
        for resource in resources:
            self._server.registry.add(resource)
        self._served[name] = replace(served, resources=resources)
        if served.terminating:
            self._server.reactions[name] = lambda obj: self._enqueue(name)

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

    # -- termination --------------------------------------------------------------------------

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
                # differs: upstream gives up after a minute, sets a condition, and tries again.
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
        """Deletes all custom resources, or marks them as terminating; admission does not apply."""
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
