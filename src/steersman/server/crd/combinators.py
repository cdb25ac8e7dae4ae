"""anyOf, oneOf, allOf and not: a value against several schemas at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from steersman.api.generated.apiextensions_v1 import JSONSchemaProps
from steersman.server.crd.errors import Check, Fault, whole


def junction(schema: JSONSchemaProps, compiled: Callable[[JSONSchemaProps], Check]) -> Check | None:
    """The check of what a schema joins together; None where it joins nothing."""
    any_of, one_of, all_of = (
        tuple(compiled(each) for each in schemas) for schemas in (schema.anyOf, schema.oneOf, schema.allOf)
    )
    none_of = compiled(schema.not_) if schema.not_ is not None else None
    if not any_of and not one_of and not all_of and none_of is None:
        return None

    def check(value: Any, path: str, out: list[Fault], old: Any) -> int:
        count = 0
        if any_of:
            right, best, score = _tried(any_of, value, path, old, enough=1)
            count += score
            if not right:
                out.append(whole(path, "must validate at least one schema (anyOf)"))
                out += best
        if one_of:
            right, best, score = _tried(one_of, value, path, old, enough=len(one_of))
            count += score
            if right != 1:
                told = f"Found {right} valid alternatives" if right else "Found none valid"
                out.append(whole(path, f"must validate one and only one schema (oneOf). {told}"))
                out += best
        if all_of:
            start, right = len(out), 0
            for each in all_of:
                before = len(out)
                count += each(value, path, out, old)
                right += len(out) == before
            if len(out) > start:
                none = "" if right else ". None validated"
                out.append(whole(path, f"must validate all the schemas (allOf){none}"))
        if none_of is not None:
            wrong: list[Fault] = []
            none_of(value, path, wrong, old)
            if not wrong:
                out.append(whole(path, "must not validate the schema (not)"))
        return count

    return check


def _tried(
    checks: tuple[Check, ...], value: Any, path: str, old: Any, enough: int
) -> tuple[int, list[Fault], int]:
    """How many schemas match; where none does, what the closest one complains of; and a score."""
    right, first, best, score = 0, 0, [], -1
    for check in checks:
        wrong: list[Fault] = []
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
