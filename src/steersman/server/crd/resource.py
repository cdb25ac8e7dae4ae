"""The resource and strategy of one version of a custom resource.

All versions share a table. It holds objects as they read in the version they were stored in. Without a conversion webhook other
versions serve the same content, pruned by their own schema; with one, what it makes of the content (`conversion`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from steersman.server import status_errors
from steersman.server.apply.field_manager import custom_field_managers
from steersman.server.codec.convert import to_builtins
from steersman.server.crd.conversion import Converted, WebhookConverter
from steersman.server.crd.custom import CustomResource, same_json
from steersman.server.crd.paths import split, text_at
from steersman.server.crd.scale import scale_access
from steersman.server.crd.version import CompiledVersion
from steersman.server.registry.resources import Resource
from steersman.server.registry.strategy import Strategy, WriteContext
from steersman.server.validation import metadata
from steersman.server.validation.field_errors import FieldErrors


def resource_of(
    version: CompiledVersion,
    storage: CompiledVersion,
    *,
    only_version: bool = True,
    terminating: bool = False,
    converter: WebhookConverter | None = None,
) -> Resource:
    """The served resource of a version. ``only_version`` is whether the definition has no other versions."""
    custom_strategy = _CustomStrategy(version, storage, terminating, converter)
    strategy = Strategy(
        default=custom_strategy.default,
        status_default=custom_strategy.default,
        default_applied=custom_strategy.default_applied,
        prepare_for_create=custom_strategy.prepare_for_create,
        prepare_for_update=custom_strategy.prepare_for_update,
        prepare_for_status_update=custom_strategy.prepare_for_status_update if version.has_status else None,
        changes_generation=lambda new, old: not same_json(new.content, old.content),
        allow_unconditional_update=False,
        selectable_fields=_fields(version),
        scale=scale_access(version.scale) if version.scale is not None else None,
        field_managers=custom_field_managers(
            version.api_version,
            version.kind,
            lambda: to_builtins(version.schema),
            CustomResource(),
            has_status=version.has_status,
            only_version=only_version,
        ),
        unknown_fields=version.unknown_fields,
    )
    subresources = (("status",) if version.has_status else ()) + (
        ("scale",) if version.scale is not None else ()
    )
    return Resource(
        version.group,
        version.name,
        version.kind,
        version.plural,
        version.namespaced,
        CustomResource,
        strategy,
        subresources,
        serve=None if only_version else custom_strategy.served,
        store=None if version is storage else custom_strategy.to_stored,
        serve_all=None if converter is None else custom_strategy.serve_all,
        convert=None if only_version else custom_strategy.convert,
    )


def _fields(version: CompiledVersion) -> dict[str, Callable[[Any], str]]:
    def reader(path: str) -> Callable[[Any], str]:
        names = split(path)
        return lambda obj: text_at(obj.content, names)

    return {
        "metadata.name": lambda obj: str(obj.metadata.name),
        **{path: reader(path) for path in version.selectable},
    }


def _has_null(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_has_null, value.values()))
    return value is None or (isinstance(value, list) and any(map(_has_null, value)))


class _CustomStrategy:
    """The strategy functions of one version."""

    def __init__(
        self,
        version: CompiledVersion,
        storage: CompiledVersion,
        terminating: bool,
        converter: WebhookConverter | None,
    ) -> None:
        self._version = version
        self._storage = storage
        self._terminating = terminating
        self._converter = converter
        self._prepared: tuple[Mapping[str, Any], CustomResource] | None = None
        """The object that was last prepared for storage, by its stored content; it is written right after."""

    def default(self, obj: CustomResource) -> CustomResource:
        return replace(obj, content=self._version.prune_and_default(obj.content))

    def default_applied(self, obj: CustomResource) -> CustomResource:
        return replace(obj, content=self._version.prune_and_default(obj.content, applied=True))

    def prepare_for_create(self, obj: CustomResource, context: WriteContext) -> CustomResource:
        version = self._version
        if self._terminating:
            raise status_errors.forbidden(
                version.group,
                version.plural,
                obj.metadata.name,
                "create not allowed while custom resource definition is terminating",
            )
        if version.has_status and "status" in obj.content:
            content = {name: value for name, value in obj.content.items() if name != "status"}
            obj = replace(obj, content=content)
        errors = version.validate(obj, warnings=context.warnings)
        if errors:
            named = FieldErrors()
            metadata.validate_object_meta(named, obj.metadata, namespaced=version.namespaced, kube=False)
            self._raise_invalid(obj, [*named, *errors])
        return self._with_stored(self._without_nulls(obj, context))

    def prepare_for_update(
        self, new: CustomResource, old: CustomResource, context: WriteContext
    ) -> CustomResource:
        version = self._version
        if version.has_status:
            content = {name: value for name, value in new.content.items() if name != "status"}
            if "status" in old.content:
                content["status"] = old.content["status"]
            new = replace(new, content=content)
        errors = version.validate(new, old, context.warnings)
        if errors:
            named = FieldErrors()
            metadata.validate_object_meta_update(named, new.metadata, old.metadata, kube=False)
            self._raise_invalid(new, [*named, *errors])
        return self._with_stored(self._without_nulls(new, context))

    def prepare_for_status_update(
        self, new: CustomResource, old: CustomResource, context: WriteContext
    ) -> CustomResource:
        """Updates the status and the managed fields only."""
        version = self._version
        content = {name: value for name, value in old.content.items() if name != "status"}
        if "status" in new.content:
            content["status"] = new.content["status"]
        meta = replace(old.metadata, managedFields=new.metadata.managedFields)
        new = replace(old, metadata=meta, content=content)
        errors = version.validate_status(new, old, context.warnings)
        if errors:
            self._raise_invalid(new, errors)
        return self._with_stored(self._without_nulls(new, context))

    def _without_nulls(self, obj: CustomResource, context: WriteContext) -> CustomResource:
        """An applied object without the nulls that validation let pass: upstream drops them when it reads the object."""
        return self.default(obj) if context.applied and _has_null(obj.content) else obj

    def _raise_invalid(self, obj: CustomResource, errors: list[status_errors.FieldError]) -> None:
        version = self._version
        raise status_errors.invalid(version.group, version.kind, obj.metadata.name, errors)

    # -- between versions ---------------------------------------------------------------------

    def _with_stored(self, obj: CustomResource) -> CustomResource:
        """The object with its stored content: pruned by the schema of the storage version."""
        storage = self._storage
        if self._version is storage:
            return replace(obj, stored=obj.content, stored_in=storage.name)
        if self._converter is None:
            return replace(obj, stored=storage.prune_content(obj.content), stored_in=storage.name)
        # What the write is answered with is converted back before the write, for then it is too late to fail.
        (stored,) = self._converter.convert((obj,), self._version.name, storage.name)
        (back,) = self._converter.convert((stored,), storage.name, self._version.name)
        self._prepared = stored.content, stored
        return replace(back, stored=stored.content, stored_in=storage.name)

    def to_stored(self, obj: CustomResource) -> CustomResource:
        if self._converter is None:
            return replace(obj, content=self._storage.prune_and_default(obj.stored, stored=True))
        made = replace(obj, content=obj.stored)
        prepared, self._prepared = self._prepared, None
        if prepared is not None and prepared[0] is obj.stored:
            made = Converted.of(prepared[1]).applied_to(obj)
        self._converter.keep(made, self._version.name, Converted.of(obj))
        return made

    def served(self, obj: CustomResource) -> CustomResource:
        if obj.stored_in == self._version.name:
            return obj
        if self._converter is not None:
            return self._converter.served(obj, self._version.name)
        return replace(obj, content=self._version.prune_content(obj.content))

    def serve_all(self, objects: Sequence[CustomResource]) -> None:
        if self._converter is not None:
            self._converter.serve_all(objects, self._version.name)

    def convert(self, obj: CustomResource, target: Resource) -> CustomResource:
        """An object of a request in another version, as a webhook that asks for it is shown it."""
        if self._converter is None:
            return obj
        return self._converter.convert((obj,), self._version.name, target.version)[0]


def convert_stored(
    versions: Mapping[str, CompiledVersion], storage: CompiledVersion, obj: CustomResource
) -> CustomResource:
    """A stored object as it reads by the current definition.

    differs: an object of a removed version is read in the storage version; upstream cannot read it any more.
    """
    return replace(
        obj, content=versions.get(obj.stored_in, storage).prune_and_default(obj.stored, stored=True)
    )
