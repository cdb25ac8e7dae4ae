"""Defaults in a schema must themselves be values the schema allows."""

from __future__ import annotations

from steersman.api.generated.apiextensions_v1 import JSONSchemaProps
from steersman.api.patch.values import deep_copy, json_equal
from steersman.server.crd.embedded import coercion, embedded_check
from steersman.server.crd.errors import MISSING, Fault, problems
from steersman.server.crd.pruning import META, pruner
from steersman.server.crd.value_validation import compiled
from steersman.server.validation.field_errors import FieldErrors


def default_problems(
    schema: JSONSchemaProps, path: str, *, root: bool = True, inside_metadata: bool = False
) -> FieldErrors:
    """What is wrong with the defaults in a structural schema."""
    errors = FieldErrors()
    if schema.default is not None:
        _default(schema, path, errors, inside_metadata)
    if isinstance(schema.items, JSONSchemaProps):
        errors += default_problems(schema.items, f"{path}.items", root=False, inside_metadata=inside_metadata)
    whole = root or schema.xKubernetesEmbeddedResource
    for name, each in schema.properties.items():
        inside = (whole and name in META) or (inside_metadata and not schema.xKubernetesEmbeddedResource)
        errors += default_problems(each, f"{path}.properties[{name}]", root=False, inside_metadata=inside)
    return errors


def _default(schema: JSONSchemaProps, path: str, errors: FieldErrors, inside_metadata: bool) -> None:
    where = f"{path}.default"
    value = deep_copy(schema.default)
    if not inside_metadata and type(value) in (dict, list):
        pruner(schema, root=schema.xKubernetesEmbeddedResource)(value, "", None)
        if not json_equal(value, schema.default):
            errors.invalid(where, schema.default, "must not have unknown fields")
            value = deep_copy(schema.default)
    for visit in (coercion(schema), embedded_check(schema)):
        wrong = FieldErrors()
        if visit is not None:
            visit(value, where, wrong)
        if wrong:
            errors += wrong
            return
    faults: list[Fault] = []
    compiled(schema)(value, "", faults, MISSING)
    errors += problems(faults, where)
