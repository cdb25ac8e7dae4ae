"""Embedded resources (x-kubernetes-embedded-resource): their apiVersion, kind and metadata."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from steersman.api.generated.apiextensions_v1 import JSONSchemaProps
from steersman.api.generated.merge import fields_of
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.api.kinds import Struct
from steersman.server.codec.convert import to_builtins
from steersman.server.crd.custom import read_metadata
from steersman.server.crd.structural_schema import Walk, compile_walk
from steersman.server.status_errors import FieldError
from steersman.server.validation import metadata
from steersman.server.validation.field_errors import FieldErrors
from steersman.server.validation.names import dns1035_label, path_segment


def compile_coercion(schema: JSONSchemaProps) -> Walk | None:
    """A walk that converts embedded metadata to ObjectMeta's form, in place; None if nothing is embedded.

    Metadata that cannot be converted is an error; unlike others, it makes the document malformed, not invalid.
    """
    return compile_walk(schema, _is_embedded, _coerce)


def compile_embedded_validation(schema: JSONSchemaProps) -> Walk | None:
    """A walk that validates embedded resources like any object; None if nothing is embedded."""
    return compile_walk(schema, _is_embedded, _check)


def compile_unknown_metadata_search(schema: JSONSchemaProps) -> Walk | None:
    """A walk that reports unknown fields in embedded metadata; None if nothing is embedded."""

    def search(schema: JSONSchemaProps, value: Any, path: str, errors: FieldErrors) -> None:
        if type(value) is dict:
            for each in unknown_metadata(value.get("metadata"), _child(path, "metadata")):
                errors.forbidden(each, "unknown field")

    return compile_walk(schema, _is_embedded, search)


def unknown_metadata(given: Any, path: str = "metadata") -> list[str]:
    """The paths of unknown fields in metadata."""
    return _unknown(ObjectMeta, given, path)


def _unknown(type_: type[Struct], given: Any, path: str) -> list[str]:
    if type(given) is not dict:
        return []
    errors = []
    known = fields_of(type_)
    for name, value in given.items():
        field = known.get(name)
        if field is None:
            errors.append(f"{path}.{name}")
        elif field.struct is not None and field.shape == "list" and type(value) is list:
            for index, item in enumerate(value):
                errors += _unknown(field.struct, item, f"{path}.{name}[{index}]")
    return errors


def _is_embedded(schema: JSONSchemaProps) -> bool:
    return schema.xKubernetesEmbeddedResource


def _child(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _coerce(schema: JSONSchemaProps, value: Any, path: str, errors: FieldErrors) -> None:
    if type(value) is not dict:
        return
    for name in ("apiVersion", "kind"):
        if name in value and type(value[name]) is not str:
            errors.invalid(_child(path, name), value[name], "must be a string")
    if "metadata" in value:
        try:
            value["metadata"] = to_builtins(read_metadata(value["metadata"]))
        except ValueError as error:
            errors.invalid(_child(path, "metadata"), value["metadata"], str(error))


def _check(schema: JSONSchemaProps, value: Any, path: str, errors: FieldErrors) -> None:
    if type(value) is not dict:
        return
    for name, rule in (("apiVersion", _version_errors), ("kind", _kind_errors)):
        where = _child(path, name)
        field = value.get(name)
        if name not in value:
            errors.required(where)
        elif type(field) is not str:
            errors.invalid(where, field, "must be a string")
        else:
            errors.invalid_each(where, field, rule(field) if field else ("must not be empty",))
    if "metadata" in value:
        _check_metadata(value["metadata"], path, errors)


def _version_errors(version: str) -> tuple[str, ...]:
    return (f"unexpected GroupVersion string: {version}",) if version.count("/") > 1 else ()


def _kind_errors(kind: str) -> tuple[str, ...]:
    wrong = dns1035_label(kind.lower())
    return (f"may have mixed case, but should otherwise match: {','.join(wrong)}",) if wrong else ()


def _check_metadata(given: Any, path: str, errors: FieldErrors) -> None:
    try:
        meta = read_metadata(given)
    except ValueError as error:
        errors.invalid(_child(path, "metadata"), given, str(error))
        return
    # The name may be missing: a template has none.
    named = meta if meta.name else replace(meta, name="fakename")
    prefix = path and f"{path}."
    wrong = FieldErrors()
    metadata.validate_object_meta(wrong, named, path_segment, namespaced=bool(meta.namespace), kube=False)
    errors += [FieldError(problem.reason, prefix + problem.field, problem.message) for problem in wrong]
