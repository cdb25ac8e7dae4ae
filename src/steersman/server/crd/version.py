"""CompiledVersion: one version of a custom resource with its schema compiled for pruning, defaulting and validation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

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
from steersman.server.crd.custom import CustomResource, copy_content
from steersman.server.crd.defaulting import ApplyDefaults, compile_defaulting
from steersman.server.crd.embedded import (
    compile_coercion,
    compile_embedded_validation,
    compile_unknown_metadata_search,
    unknown_metadata,
)
from steersman.server.crd.errors import MISSING, NO_FIELD, Check, SchemaViolation, field_errors
from steersman.server.crd.paths import InvalidPath, split, value_at
from steersman.server.crd.pruning import OBJECT_FIELDS, PruneFunction, compile_pruning, prune
from steersman.server.crd.structural_schema import Walk, every_schema
from steersman.server.crd.value_validation import compile_list_type_check, compile_schema
from steersman.server.status_errors import FieldError
from steersman.server.validation.field_errors import FieldErrors, Verbatim

if TYPE_CHECKING:
    from steersman.server.crd.rules import RuleNode

_MAX_REPLICAS = 2**31 - 1
_BLOCKING_REASONS = (
    "FieldValueNotSupported",
    "FieldValueRequired",
    "FieldValueTooLong",
    "FieldValueTooMany",
    "FieldValueTypeInvalid",
)


class CompiledVersion(msgspec.Struct, frozen=True, eq=False):
    """The names of a version, and the compiled operations of its schema."""

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
    """The selectable fields: ``spec.color``."""
    _prune: PruneFunction
    _fill: ApplyDefaults
    _coerce: Walk | None
    _find_unknown_metadata: Walk | None
    _check: Check
    _check_status: Check | None
    _check_embedded: Walk | None
    _check_lists: Walk | None
    _validates_metadata: bool
    _rules: RuleNode | None
    _has_rules: bool

    @property
    def api_version(self) -> str:
        """The apiVersion of objects: ``example.com/v1``."""
        return f"{self.group}/{self.name}"

    # -- pruning and defaulting ---------------------------------------------------------------

    def prune_and_default(
        self, content: Mapping[str, Any], *, stored: bool = False, applied: bool = False
    ) -> dict[str, Any]:
        """A copy of a content with unknown fields pruned and defaults applied; nulls of an ``applied`` one are left to validation.

        Raises `BadRequest` for malformed embedded resources, unless the content is ``stored`` already.
        """
        try:
            made = copy_content(content)
            prune(self._prune, made)
        except RecursionError:
            raise self._cannot_handle("it is nested too deeply") from None
        except TypeError as error:
            raise self._cannot_handle(str(error)) from None
        if self._coerce is not None:
            errors = FieldErrors()
            self._coerce(made, "", errors)
            if errors and not stored:
                raise self._cannot_handle(str(errors[0]))
        self._fill(made, applied)
        return made

    def _cannot_handle(self, why: str) -> BadRequest:
        return refusals.bad_request(
            f'{self.kind} in version "{self.name}" cannot be handled as a {self.kind}: {why}'
        )

    def unknown_fields(self, document: Mapping[str, Any]) -> tuple[str, ...]:
        """The paths of the fields in a document that this version does not have."""
        content = {name: value for name, value in document.items() if name not in OBJECT_FIELDS}
        made = copy_content(content)
        unknown_fields = [*unknown_metadata(document.get("metadata")), *prune(self._prune, made, report=True)]
        if self._find_unknown_metadata is not None:
            errors = FieldErrors()
            self._find_unknown_metadata(made, "", errors)
            unknown_fields += sorted(problem.field for problem in errors)
        return tuple(unknown_fields)

    def prune_content(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """A copy of a content with unknown fields pruned, without defaulting."""
        made = copy_content(content)
        prune(self._prune, made)
        return made

    # -- validation ---------------------------------------------------------------------------

    def validate(
        self, obj: CustomResource, old: CustomResource | None = None, warnings: list[str] | None = None
    ) -> list[FieldError]:
        """Validates the content of an object; with ``old``, unchanged violations are tolerated (ratcheting).

        Rules that unchanged values break are added to ``warnings``.
        """
        violations: list[SchemaViolation] = []
        self._check(self._document(obj), "", violations, MISSING if old is None else self._document(old))
        errors = FieldErrors(field_errors(violations))
        self._validate_scale(obj, errors)
        if self._check_embedded is not None:
            self._check_embedded(obj.content, "", errors)
        self._validate_list_types(obj, old, errors)
        return self._validate_rules(obj, old, errors, warnings)

    def validate_status(
        self, obj: CustomResource, old: CustomResource, warnings: list[str] | None = None
    ) -> list[FieldError]:
        """Validates the new status of an object."""
        violations: list[SchemaViolation] = []
        if self._check_status is not None and "status" in obj.content:
            before = old.content.get("status", MISSING)
            self._check_status(obj.content["status"], "", violations, before)
        errors = FieldErrors(field_errors(violations, "status"))
        self._validate_scale(obj, errors, spec=False)
        self._validate_list_types(obj, old, errors)
        return self._validate_rules(obj, old, errors, warnings)

    def _document(self, obj: CustomResource) -> dict[str, Any]:
        meta = to_builtins(obj.metadata) if self._validates_metadata else {}
        return {"apiVersion": self.api_version, "kind": self.kind, "metadata": meta, **obj.content}

    def _validate_list_types(
        self, obj: CustomResource, old: CustomResource | None, errors: FieldErrors
    ) -> None:
        if self._check_lists is None:
            return
        new, before = FieldErrors(), FieldErrors()
        self._check_lists(obj.content, "", new)
        if new and old is not None:
            self._check_lists(old.content, "", before)
        if not before:
            errors += new

    def _validate_scale(self, obj: CustomResource, errors: FieldErrors, *, spec: bool = True) -> None:
        """Validates the types of the values that the scale subresource reads."""
        if self.scale is None:
            return
        for path in (self.scale.specReplicasPath,) * spec + (self.scale.statusReplicasPath,):
            try:
                count = value_at(obj.content, split(path), int) or 0
            except InvalidPath as error:
                errors.invalid(path, 0, str(error))
                continue
            if count < 0:
                errors.invalid(path, count, "should be a non-negative integer")
            elif count > _MAX_REPLICAS:
                errors.invalid(path, count, f"should be less than or equal to {_MAX_REPLICAS}")
        selector = self.scale.labelSelectorPath
        if selector:
            try:
                value_at(obj.content, split(selector), str)
            except InvalidPath as error:
                errors.invalid(selector, "", str(error))

    def _validate_rules(
        self,
        obj: CustomResource,
        old: CustomResource | None,
        errors: FieldErrors,
        warnings: list[str] | None,
    ) -> list[FieldError]:
        """The errors, with those of validation rules; or with upstream's note that the object is too invalid for these."""
        if not self._has_rules:
            return errors
        if any(problem.reason in _BLOCKING_REASONS for problem in errors):
            errors.invalid(
                NO_FIELD,
                Verbatim("null"),
                "some validation rules were not checked because the object was invalid; correct the "
                "existing errors to complete validation",
            )
        elif self._rules is not None:
            before = None if old is None else self._rule_document(old)
            found, warned = self._rules.check(self._rule_document(obj), before)
            errors += found
            if warnings is not None:
                warnings += warned
        return errors

    def _rule_document(self, obj: CustomResource) -> dict[str, Any]:
        """An object as rules see it: of its metadata only the name."""
        meta = {"name": obj.metadata.name}
        if obj.metadata.generateName:
            meta["generateName"] = obj.metadata.generateName
        return {"apiVersion": self.api_version, "kind": self.kind, "metadata": meta, **obj.content}


def _compile_rules(schema: JSONSchemaProps) -> RuleNode | None:
    # Few definitions have rules, and all of CEL comes with them.
    from steersman.server.crd.rules import compile_rules

    return compile_rules(schema)


def compile_version(
    definition: CustomResourceDefinition, version_spec: CustomResourceDefinitionVersion
) -> CompiledVersion:
    """Compiles a version of a definition."""
    spec, names = definition.spec, definition.status.acceptedNames
    subresources = version_spec.subresources
    given = version_spec.schema.openAPIV3Schema if version_spec.schema is not None else None
    schema = given or JSONSchemaProps(type="object", xKubernetesPreserveUnknownFields=True)
    status = schema.properties.get("status")
    has_status = subresources is not None and subresources.status is not None
    meta = schema.properties.get("metadata")
    has_rules = any(each.xKubernetesValidations for each in every_schema(schema))
    return CompiledVersion(
        group=spec.group,
        name=version_spec.name,
        kind=names.kind,
        plural=names.plural,
        namespaced=spec.scope == "Namespaced",
        schema=schema,
        has_status=has_status,
        scale=subresources.scale if subresources is not None else None,
        columns=version_spec.additionalPrinterColumns,
        selectable=tuple(each.jsonPath.removeprefix(".") for each in version_spec.selectableFields),
        _prune=compile_pruning(schema, root=True),
        _fill=compile_defaulting(schema),
        _coerce=compile_coercion(schema),
        _find_unknown_metadata=compile_unknown_metadata_search(schema),
        _check=compile_schema(schema),
        _check_status=compile_schema(status) if has_status and status is not None else None,
        _check_embedded=compile_embedded_validation(schema),
        _check_lists=compile_list_type_check(schema),
        _validates_metadata=meta is not None and bool(meta.properties),
        _rules=_compile_rules(schema) if has_rules else None,
        _has_rules=has_rules,
    )
