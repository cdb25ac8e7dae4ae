"""A version of a custom resource as the server's verbs treat it.

All versions share a table. An object is in it as it reads in the version it was stored in; other versions
show the same without what they do not know: nothing is converted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from steersman.server import status_errors
from steersman.server.apply.field_manager import custom_field_managers
from steersman.server.codec.convert import to_builtins
from steersman.server.crd.custom import Custom, same
from steersman.server.crd.paths import split, text_at
from steersman.server.crd.scale import scale_access
from steersman.server.crd.version import Version
from steersman.server.registry.resources import Resource
from steersman.server.registry.strategy import Strategy, WriteContext
from steersman.server.validation import metadata
from steersman.server.validation.field_errors import FieldErrors


def resource_of(
    version: Version, storage: Version, *, alone: bool = True, terminating: bool = False
) -> Resource:
    """What is served of a version. ``alone`` is whether there are no others, so that all objects are of it."""
    behaviour = _Behaviour(version, storage, terminating)
    strategy = Strategy(
        default=behaviour.default,
        prepare_for_create=behaviour.prepare_for_create,
        prepare_for_update=behaviour.prepare_for_update,
        prepare_for_status_update=behaviour.prepare_for_status_update if version.has_status else None,
        changes_generation=lambda new, old: not same(new.content, old.content),
        allow_unconditional_update=False,
        selectable_fields=_fields(version),
        scale=scale_access(version.scale) if version.scale is not None else None,
        field_managers=custom_field_managers(
            version.api_version,
            version.kind,
            lambda: to_builtins(version.schema),
            Custom(),
            has_status=version.has_status,
            replicas=version.scale.specReplicasPath if version.scale is not None else "",
            only_version=alone,
        ),
        unknown_fields=version.unknown,
    )
    below = (("status",) if version.has_status else ()) + (("scale",) if version.scale is not None else ())
    return Resource(
        version.group,
        version.name,
        version.kind,
        version.plural,
        version.namespaced,
        Custom,
        strategy,
        below,
        serve=None if alone else behaviour.served,
        store=None if version is storage else behaviour.in_table,
    )


def _fields(version: Version) -> dict[str, Callable[[Any], str]]:
    def reader(path: str) -> Callable[[Any], str]:
        names = split(path)
        return lambda obj: text_at(obj.content, names)

    return {
        "metadata.name": lambda obj: str(obj.metadata.name),
        **{path: reader(path) for path in version.selectable},
    }


class _Behaviour:
    """What creating and updating mean for objects of a version."""

    def __init__(self, version: Version, storage: Version, terminating: bool) -> None:
        self._version = version
        self._storage = storage
        self._terminating = terminating

    def default(self, obj: Custom) -> Custom:
        return replace(obj, content=self._version.fit(obj.content))

    def prepare_for_create(self, obj: Custom, context: WriteContext) -> Custom:
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
        wrong = version.problems(obj)
        if wrong:
            named = FieldErrors()
            metadata.validate_object_meta(named, obj.metadata, namespaced=version.namespaced, kube=False)
            self._refuse(obj, [*named, *wrong])
        return self._stored(obj)

    def prepare_for_update(self, new: Custom, old: Custom, context: WriteContext) -> Custom:
        version = self._version
        if version.has_status:
            content = {name: value for name, value in new.content.items() if name != "status"}
            if "status" in old.content:
                content["status"] = old.content["status"]
            new = replace(new, content=content)
        wrong = version.problems(new, old)
        if wrong:
            named = FieldErrors()
            metadata.validate_object_meta_update(named, new.metadata, old.metadata, kube=False)
            self._refuse(new, [*named, *wrong])
        return self._stored(new)

    def prepare_for_status_update(self, new: Custom, old: Custom, context: WriteContext) -> Custom:
        """Only the status is new; of the metadata, who manages which field."""
        version = self._version
        fit = version.fit(new.content)
        content = {name: value for name, value in old.content.items() if name != "status"}
        if "status" in fit:
            content["status"] = fit["status"]
        meta = replace(old.metadata, managedFields=new.metadata.managedFields)
        new = replace(old, metadata=meta, content=content)
        wrong = version.status_problems(new, old)
        if wrong:
            self._refuse(new, wrong)
        return self._stored(new)

    def _refuse(self, obj: Custom, wrong: list[status_errors.FieldError]) -> None:
        version = self._version
        raise status_errors.invalid(version.group, version.kind, obj.metadata.name, wrong)

    # -- between versions ---------------------------------------------------------------------

    def _stored(self, obj: Custom) -> Custom:
        """The object with what is written of it: without what the storage version does not know."""
        storage = self._storage
        content = obj.content if self._version is storage else storage.pruned(obj.content)
        return replace(obj, stored=content, stored_in=storage.name)

    def in_table(self, obj: Custom) -> Custom:
        return replace(obj, content=self._storage.fit(obj.stored, stored=True))

    def served(self, obj: Custom) -> Custom:
        if obj.stored_in == self._version.name:
            return obj
        return replace(obj, content=self._version.pruned(obj.content))


def refitted(versions: Mapping[str, Version], storage: Version, obj: Custom) -> Custom:
    """A stored object as it reads now, given all versions there are.

    differs: where the version it was stored in is no more, it is read in the one objects are stored in now;
    upstream could not read it any more.
    """
    return replace(obj, content=versions.get(obj.stored_in, storage).fit(obj.stored, stored=True))
