"""One version of a custom resource: its schema, compiled, and what it makes of objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from steersman.api.errors import BadRequest
from steersman.api.generated.apiextensions_v1 import (
    CustomResourceColumnDefinition,
    CustomResourceDefinition,
    CustomResourceDefinitionVersion,
    CustomResourceSubresourceScale,
    JSONSchemaProps,
)
from steersman.server import status_errors as refusals
from steersman.server.codec.convert import to_builtins
from steersman.server.crd.custom import Custom, copied
from steersman.server.crd.defaulting import Fill, filler
from steersman.server.crd.embedded import coercion, embedded_check, metadata_search, unknown_metadata
from steersman.server.crd.errors import MISSING, NOWHERE, Check, Fault, problems
from steersman.server.crd.lists import lists_check
from steersman.server.crd.paths import BadPath, split, value_at
from steersman.server.crd.pruning import META, Prune, prune, pruner
from steersman.server.crd.structural_schema import every_schema
from steersman.server.crd.value_validation import compiled
from steersman.server.crd.walk import Visit
from steersman.server.status_errors import FieldError
from steersman.server.validation.field_errors import FieldErrors, Verbatim

_MOST_REPLICAS = 2**31 - 1
_BLOCKING = (
    "FieldValueNotSupported",
    "FieldValueRequired",
    "FieldValueTooLong",
    "FieldValueTooMany",
    "FieldValueTypeInvalid",
)


class Version(msgspec.Struct, frozen=True, eq=False):
    """What a version is called, and what is done to its objects."""

    group: str
    name: str
    kind: str
    plural: str
    namespaced: bool
    schema: JSONSchemaProps
    has_status: bool
    scale: CustomResourceSubresourceScale | None
    columns: tuple[CustomResourceColumnDefinition, ...]
    selectable: tuple[str, ...]
    """The fields a selector may ask for: ``spec.color``."""
    _prune: Prune
    _fill: Fill
    _coerce: Visit | None
    _search: Visit | None
    _check: Check
    _check_status: Check | None
    _check_embedded: Visit | None
    _check_lists: Visit | None
    _looks_at_metadata: bool
    _has_rules: bool

    @property
    def api_version(self) -> str:
        """As objects say it: ``example.com/v1``."""
        return f"{self.group}/{self.name}"

    # -- giving objects their form ------------------------------------------------------------

    def fit(self, content: Mapping[str, Any], *, stored: bool = False) -> dict[str, Any]:
        """A content as this version has it: unknown fields gone, defaults filled in.

        Shares nothing with what was given. Raises `BadRequest` for embedded objects that are none, unless
        they are stored as such already.
        """
        try:
            made = copied(content)
            prune(self._prune, made)
        except RecursionError:
            raise self._not_one("it is nested too deeply") from None
        except TypeError as error:
            raise self._not_one(str(error)) from None
        if self._coerce is not None:
            errors = FieldErrors()
            self._coerce(made, "", errors)
            if errors and not stored:
                raise self._not_one(str(errors[0]))
        self._fill(made)
        return made

    def _not_one(self, why: str) -> BadRequest:
        return refusals.bad_request(
            f'{self.kind} in version "{self.name}" cannot be handled as a {self.kind}: {why}'
        )

    def unknown(self, document: Mapping[str, Any]) -> tuple[str, ...]:
        """The paths of the fields of a document that this version does not have."""
        content = {name: value for name, value in document.items() if name not in META}
        made = copied(content)
        gone = [*unknown_metadata(document.get("metadata")), *prune(self._prune, made, tell=True)]
        if self._search is not None:
            errors = FieldErrors()
            self._search(made, "", errors)
            gone += sorted(problem.field for problem in errors)
        return tuple(gone)

    def pruned(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """A content without the fields this version does not know, and nothing filled in."""
        made = copied(content)
        prune(self._prune, made)
        return made

    # -- what is refused ----------------------------------------------------------------------

    def problems(self, obj: Custom, old: Custom | None = None) -> list[FieldError]:
        """What is wrong with an object's content, given what it replaces."""
        faults: list[Fault] = []
        self._check(self._whole(obj), "", faults, MISSING if old is None else self._whole(old))
        errors = FieldErrors(problems(faults))
        self._replicas(obj, errors)
        if self._check_embedded is not None:
            self._check_embedded(obj.content, "", errors)
        self._lists(obj, old, errors)
        return self._blocked(errors)

    def status_problems(self, obj: Custom, old: Custom) -> list[FieldError]:
        """What is wrong with an object's new status."""
        faults: list[Fault] = []
        if self._check_status is not None and "status" in obj.content:
            before = old.content.get("status", MISSING)
            self._check_status(obj.content["status"], "", faults, before)
        errors = FieldErrors(problems(faults, "status"))
        self._replicas(obj, errors, spec=False)
        self._lists(obj, old, errors)
        return self._blocked(errors)

    def _whole(self, obj: Custom) -> dict[str, Any]:
        meta = to_builtins(obj.metadata) if self._looks_at_metadata else {}
        return {"apiVersion": self.api_version, "kind": self.kind, "metadata": meta, **obj.content}

    def _lists(self, obj: Custom, old: Custom | None, errors: FieldErrors) -> None:
        if self._check_lists is None:
            return
        new, before = FieldErrors(), FieldErrors()
        self._check_lists(obj.content, "", new)
        if new and old is not None:
            self._check_lists(old.content, "", before)
        if not before:
            errors += new

    def _replicas(self, obj: Custom, errors: FieldErrors, *, spec: bool = True) -> None:
        """What scale reads must be what it expects there."""
        if self.scale is None:
            return
        for path in (self.scale.specReplicasPath,) * spec + (self.scale.statusReplicasPath,):
            try:
                count = value_at(obj.content, split(path), int) or 0
            except BadPath as error:
                errors.invalid(path, 0, str(error))
                continue
            if count < 0:
                errors.invalid(path, count, "should be a non-negative integer")
            elif count > _MOST_REPLICAS:
                errors.invalid(path, count, f"should be less than or equal to {_MOST_REPLICAS}")
        selector = self.scale.labelSelectorPath
        if selector:
            try:
                value_at(obj.content, split(selector), str)
            except BadPath as error:
                errors.invalid(selector, "", str(error))

    def _blocked(self, errors: FieldErrors) -> list[FieldError]:
        """Rules are not evaluated here; where upstream would not have got to them either, it says so."""
        if self._has_rules and any(problem.reason in _BLOCKING for problem in errors):
            errors.invalid(
                NOWHERE,
                Verbatim("null"),
                "some validation rules were not checked because the object was invalid; correct the "
                "existing errors to complete validation",
            )
        return errors


def version_of(definition: CustomResourceDefinition, said: CustomResourceDefinitionVersion) -> Version:
    """A version of a definition, compiled."""
    spec, names = definition.spec, definition.status.acceptedNames
    below = said.subresources
    given = said.schema.openAPIV3Schema if said.schema is not None else None
    schema = given or JSONSchemaProps(type="object", xKubernetesPreserveUnknownFields=True)
    status = schema.properties.get("status")
    has_status = below is not None and below.status is not None
    meta = schema.properties.get("metadata")
    return Version(
        group=spec.group,
        name=said.name,
        kind=names.kind,
        plural=names.plural,
        namespaced=spec.scope == "Namespaced",
        schema=schema,
        has_status=has_status,
        scale=below.scale if below is not None else None,
        columns=said.additionalPrinterColumns,
        selectable=tuple(each.jsonPath.removeprefix(".") for each in said.selectableFields),
        _prune=pruner(schema, root=True),
        _fill=filler(schema),
        _coerce=coercion(schema),
        _search=metadata_search(schema),
        _check=compiled(schema),
        _check_status=compiled(status) if has_status and status is not None else None,
        _check_embedded=embedded_check(schema),
        _check_lists=lists_check(schema),
        _looks_at_metadata=meta is not None and bool(meta.properties),
        _has_rules=any(each.xKubernetesValidations for each in every_schema(schema)),
    )
