"""Rules validates the objects of one kind: on create, on update, and on updates of a subresource."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.server.status_errors import FieldError
from steersman.server.validation import metadata, names
from steersman.server.validation.field_errors import FieldErrors


class HasMetadata(Protocol):
    """An object with metadata: one of the generated top-level structs."""

    @property
    def metadata(self) -> ObjectMeta: ...


T = TypeVar("T", bound=HasMetadata)

CreateRule: TypeAlias = Callable[[FieldErrors, T], None]
UpdateRule: TypeAlias = Callable[[FieldErrors, T, T], None]
GroupKind: TypeAlias = tuple[str, str]

_NO_SUBRESOURCES: Mapping[str, Any] = MappingProxyType({})


class Rules(Generic[T]):
    """The validation of one kind. Each method returns the field errors; a valid object has none."""

    __slots__ = ("_create", "_generic_metadata", "_updates")

    def __init__(
        self,
        create: CreateRule[T] | None = None,
        update: UpdateRule[T] | None = None,
        *,
        status: UpdateRule[T] | None = None,
        subresources: Mapping[str, UpdateRule[T]] = _NO_SUBRESOURCES,
        generic_metadata: bool = False,
    ) -> None:
        """Without ``create`` only the metadata is validated.

        ``subresources`` are those besides ``status``. ``generic_metadata`` marks a kind whose ``create`` does
        not validate the metadata, so that the generic rules do.
        """
        self._create = create
        self._generic_metadata = generic_metadata
        updates = dict(subresources)
        if update is not None:
            updates[""] = update
        if status is not None:
            updates["status"] = status
        self._updates = updates

    def create(self, obj: T, *, namespaced: bool) -> list[FieldError]:
        """The field errors of a new object."""
        errors = FieldErrors()
        if self._create is None:
            metadata.validate_object_meta(errors, obj.metadata, namespaced=namespaced, kube=False)
        else:
            self._create(errors, obj)
            if self._generic_metadata and not errors:
                metadata.validate_object_meta(
                    errors, obj.metadata, names.path_segment, namespaced=namespaced, kube=False
                )
        return errors

    def update(self, new: T, old: T, subresource: str = "", *, namespaced: bool) -> list[FieldError]:
        """The field errors of an update, of the object itself or of a subresource."""
        errors = FieldErrors()
        metadata.validate_generic_update(errors, new.metadata, old.metadata, namespaced=namespaced)
        update = self._updates.get(subresource)
        if update is not None:
            update(errors, new, old)
        return errors


AnyRules: TypeAlias = Rules[Any]

METADATA_ONLY: AnyRules = Rules()
"""The rules of a kind that has none of its own."""
