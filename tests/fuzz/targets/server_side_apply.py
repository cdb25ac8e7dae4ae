"""Server-side apply: a second apply of the same configuration changes nothing, and no manager loses a field that stays."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from steersman.api.errors import ApiError
from steersman.api.generated import load
from steersman.server.apply import Applied, ManagedFields, ResourceSchema, apply, field_set, track
from steersman.server.apply.field_set import FieldSet
from steersman.server.apply.openapi import custom_resource_schema
from steersman.server.apply.structs import typed_schema_of
from tests.fuzz.documents import decoded, encoded, equal, values
from tests.fuzz.target import Target

_NOW = datetime(2026, 1, 1, tzinfo=UTC)
_TEXT = {"type": "string"}
_KEYED = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {
        "type": "object",
        "properties": {"name": _TEXT, "value": _TEXT, "tags": {"type": "array", "items": _TEXT}},
    },
}
_SPEC: dict[str, Any] = {
    "type": "object",
    "properties": {
        "items": _KEYED,
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": _TEXT},
        "list": {"type": "array", "items": _TEXT},
        "atom": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": _TEXT},
        "map": {"type": "object", "additionalProperties": _TEXT},
        "any": {"x-kubernetes-preserve-unknown-fields": True},
    },
}
_CUSTOM = custom_resource_schema({"type": "object", "properties": {"spec": _SPEC}})
_SCHEMAS: Mapping[str, ResourceSchema] = {
    "Thing": ResourceSchema("example.com/v1", "Thing", _CUSTOM),
    "Deployment": ResourceSchema(
        "apps/v1", "Deployment", typed_schema_of(load("apps", "v1", "Deployment").type)
    ),
    "Service": ResourceSchema("v1", "Service", typed_schema_of(load("", "v1", "Service").type)),
}
_MOST_STEPS = 6


def check(data: bytes) -> None:
    given = decoded(data)
    schema = _SCHEMAS.get(str(given.get("kind")), _SCHEMAS["Thing"])
    steps = given.get("steps")
    blank = {"apiVersion": schema.api_version, "kind": schema.kind}
    state = Applied(blank, {})
    for step in (steps if isinstance(steps, list) else [])[:_MOST_STEPS]:
        if not isinstance(step, dict) or not isinstance(step.get("spec"), dict):
            continue
        document = {**blank, "metadata": {"name": "x"}, "spec": step["spec"]}
        manager, force = str(step.get("manager")), step.get("force") is True
        try:
            after = _write(
                state, document, manager, schema, force=force, is_update=step.get("update") is True
            )
        except ApiError:
            continue
        # An update that does not match its schema (null in a list with keys) ends the tracking, as upstream has it.
        if after.managed or step.get("update") is not True:
            _loses_nothing_that_stays(state, after, manager)
        state = after


def _write(
    state: Applied,
    document: dict[str, Any],
    manager: str,
    schema: ResourceSchema,
    *,
    force: bool,
    is_update: bool,
) -> Applied:
    if is_update:
        old = state.document if "metadata" in state.document else None
        managed = track(old, document, manager, dict(state.managed), resource_schema=schema, now=_NOW)
        return Applied(document, managed)
    before = json.dumps([state.document, document])
    after = _applied(state, document, manager, schema, force=force)
    assert json.dumps([state.document, document]) == before, "an argument was changed"
    again = _applied(after, document, manager, schema, force=False)
    assert equal(_filled(again.document), _filled(after.document)), "a second apply changes the document"
    if after.managed:
        # Without any, as when only an empty list was applied, the object counts as one that was never tracked.
        assert _owned(again.managed) == _owned(after.managed), "a second apply changes the managed fields"
    return after


def _filled(value: Any) -> Any:
    """A value without empty fields: upstream leaves null of an object whose last field is removed, and {} the next time."""
    if isinstance(value, dict):
        return {key: kept for key, child in value.items() if (kept := _filled(child)) not in (None, {}, [])}
    return [_filled(item) for item in value] if isinstance(value, list) else value


def _applied(
    state: Applied, document: dict[str, Any], manager: str, schema: ResourceSchema, *, force: bool
) -> Applied:
    return apply(
        state.document, document, manager, dict(state.managed), resource_schema=schema, now=_NOW, force=force
    )


def _owned(managed: ManagedFields) -> dict[str, FieldSet]:
    return {str(manager): owned.fields for manager, owned in managed.items()}


def _loses_nothing_that_stays(before: Applied, after: Applied, writer: str) -> None:
    """A manager that did not write keeps the fields whose values are the same as before."""
    for manager, owned in before.managed.items():
        if manager.name == writer:
            continue
        kept = after.managed.get(manager)
        lost = field_set.difference(owned.fields, kept.fields if kept is not None else {})
        for path in _paths(lost):
            was, found = _value(before.document, path)
            now, still = _value(after.document, path)
            # The path of an object stands for the object itself, not for what is in it.
            if found and still and not isinstance(was, dict | list) and not isinstance(now, dict | list):
                assert not equal(was, now), f"{manager.name} lost {path} and its value is the same"


def _paths(fields: FieldSet, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for element, node in fields.items():
        if element == ".":
            yield above
        else:
            yield from _paths(node, (*above, element))


def _value(value: Any, path: tuple[str, ...]) -> tuple[Any, bool]:
    """Return the value at a path, and whether there is one."""
    for element in path:
        sort, text = element[:2], element[2:]
        if sort == "f:" and isinstance(value, dict):
            if text not in value:
                return None, False
            value = value[text]
            continue
        if not isinstance(value, list) or sort not in ("k:", "v:"):
            return None, False
        wanted = json.loads(text)
        if sort == "k:":
            found = [item for item in value if isinstance(item, dict) and wanted.items() <= item.items()]
        else:
            found = [item for item in value if equal(item, wanted)]
        if len(found) != 1:
            return None, False
        value = found[0]
    return value, True


# -- inputs -----------------------------------------------------------------------------------

_texts = st.sampled_from(("a", "b", "c"))
_specs = st.fixed_dictionaries(
    {},
    optional={
        "items": st.lists(
            st.fixed_dictionaries(
                {"name": _texts}, optional={"value": _texts, "tags": st.lists(_texts, max_size=2)}
            ),
            max_size=3,
            unique_by=lambda item: item["name"],
        ),
        "set": st.lists(_texts, unique=True, max_size=3),
        "list": st.lists(_texts, max_size=2),
        "atom": st.dictionaries(_texts, _texts, max_size=2),
        "map": st.dictionaries(_texts, _texts, max_size=3),
        "any": values(_texts),
    },
)
_steps = st.fixed_dictionaries(
    {"manager": st.sampled_from(("m", "n", "kubectl")), "spec": _specs},
    optional={"force": st.booleans(), "update": st.booleans()},
)

TARGET = Target(
    name="server_side_apply",
    check=check,
    seeds=(
        b'{"kind": "Deployment", "steps": [{"manager": "m", "spec": {"replicas": 1, "template": {"spec": {"containers": '
        b'[{"name": "a", "image": "x", "ports": [{"containerPort": 1, "protocol": "TCP"}]}]}}}}, {"manager": "n", '
        b'"force": true, "spec": {"replicas": 2}}, {"manager": "m", "spec": {"template": {"spec": {"containers": '
        b'[{"name": "b", "image": "y"}]}}}}]}',
        b'{"kind": "Service", "steps": [{"manager": "m", "spec": {"ports": [{"port": 1}, {"port": 1, "protocol": "UDP"}], '
        b'"selector": {"a": "b"}}}, {"manager": "n", "update": true, "spec": {"ports": [{"port": 1}]}}]}',
        b'{"steps": [{"manager": "m", "spec": {"items": [{"name": "a", "value": "1"}], "set": ["a"], "any": {"b": [1]}}}, '
        b'{"manager": "n", "spec": {"items": [{"name": "a"}], "set": ["b"], "map": {"a": "b"}}}]}',
    ),
    strategy=encoded(st.fixed_dictionaries({"steps": st.lists(_steps, max_size=_MOST_STEPS)})),
    dictionary=(
        b'"items": [{"name": "a"}]',
        b'"set": ["a"]',
        b'"map": {',
        b'"any": ',
        b'"atom": ',
        b'"force": true',
        b'"update": true',
        b"null",
        b'"manager": "n"',
        b"[]",
        b"{}",
    ),
)  # fmt: skip
