"""The combinators anyOf, oneOf, allOf and not: values against several schemas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from steersman.api.generated.apiextensions_v1 import JSONSchemaProps
from steersman.server.crd.errors import Check, SchemaViolation, object_violation


def combinator_check(
    schema: JSONSchemaProps, compile_schema: Callable[[JSONSchemaProps], Check]
) -> Check | None:
    """The check of the combinators of a schema; None if it has none."""
    any_of, one_of, all_of = (
        tuple(compile_schema(each) for each in schemas)
        for schemas in (schema.anyOf, schema.oneOf, schema.allOf)
    )
    none_of = compile_schema(schema.not_) if schema.not_ is not None else None
    if not any_of and not one_of and not all_of and none_of is None:
        return None

    def check(value: Any, path: str, out: list[SchemaViolation], old: Any) -> int:
        count = 0
        if any_of:
            right, best, score = _try_schemas(any_of, value, path, old, enough=1)
            count += score
            if not right:
                out.append(object_violation(path, "must validate at least one schema (anyOf)"))
                out += best
        if one_of:
            right, best, score = _try_schemas(one_of, value, path, old, enough=len(one_of))
            count += score
            if right != 1:
                found_text = f"Found {right} valid alternatives" if right else "Found none valid"
                out.append(
                    object_violation(path, f"must validate one and only one schema (oneOf). {found_text}")
                )
                out += best
        if all_of:
            start, right = len(out), 0
            for each in all_of:
                before = len(out)
                count += each(value, path, out, old)
                right += len(out) == before
            if len(out) > start:
                none = "" if right else ". None validated"
                out.append(object_violation(path, f"must validate all the schemas (allOf){none}"))
        if none_of is not None:
            wrong: list[SchemaViolation] = []
            none_of(value, path, wrong, old)
            if not wrong:
                out.append(object_violation(path, "must not validate the schema (not)"))
        return count

    return check


def _try_schemas(
    checks: tuple[Check, ...], value: Any, path: str, old: Any, enough: int
) -> tuple[int, list[SchemaViolation], int]:
    """How many schemas match; if none does, the violations of the closest one; and a score."""
    right, first, best, score = 0, 0, [], -1
    for check in checks:
        wrong: list[SchemaViolation] = []
        count = check(value, path, wrong, old)
        if not wrong:
            right += 1
            first = first or count
            if right == enough:
                break
        elif count > score:
            best, score = wrong, count
    if right:
        return right, [], first if right == 1 else 0
    return 0, best, score
