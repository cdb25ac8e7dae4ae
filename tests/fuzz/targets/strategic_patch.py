"""Strategic merge patches: a difference leads from the old document to the new one, once and again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from steersman.api.generated import load
from steersman.api.patch import Field, PatchError, Schema, schema_of, strategic
from steersman.api.patch.schema import DELETE_FROM, DIRECTIVE, ORDER, RETAIN
from tests.fuzz.documents import decoded, encoded, equal, values, without_nulls
from tests.fuzz.target import Target


@dataclass(frozen=True)
class _Schema:
    """A schema with every patch strategy."""

    name: str
    fields: Mapping[str, Field]

    def field(self, name: str) -> Field | None:
        return self.fields.get(name)


_ITEM = _Schema("Item", {"tags": Field(merges=True), "args": Field(), "labels": Field()})
_THING = _Schema(
    "Thing",
    {
        "items": Field(merges=True, key="name", schema=_ITEM),
        "sources": Field(merges=True, retains=True, key="name", schema=_ITEM),
        "tags": Field(merges=True),
        "args": Field(),
        "labels": Field(),
        "strategy": Field(retains=True, schema=_ITEM),
        "whole": Field(replaces=True, schema=_ITEM),
        "object": Field(schema=_ITEM),
    },
)
_SCHEMAS: Mapping[str, Schema] = {
    "Thing": _THING,
    "Pod": schema_of(load("", "v1", "Pod").type),
    "Deployment": schema_of(load("apps", "v1", "Deployment").type),
    "Service": schema_of(load("", "v1", "Service").type),
}


def check(data: bytes) -> None:
    given = decoded(data)
    schema = _SCHEMAS.get(str(given.get("schema")), _THING)
    old, new, patch = given.get("old"), given.get("new"), given.get("patch")
    if not isinstance(old, dict):
        return
    if isinstance(patch, dict):
        _patch(old, patch, schema)
    if isinstance(new, dict):
        _difference(without_nulls(old), without_nulls(new), schema)


def _patch(old: dict[str, Any], patch: dict[str, Any], schema: Schema) -> None:
    before = json.dumps([old, patch])
    try:
        result = strategic.apply(old, patch, schema)
    except PatchError:
        result = {}
    assert json.dumps([old, patch]) == before
    if not _has_directive(old):
        assert not _has_directive(result), "a directive is left in the document"


def _difference(old: dict[str, Any], new: dict[str, Any], schema: Schema) -> None:
    if _has_directive(old) or _has_directive(new) or _has_duplicate(old) or _has_duplicate(new):
        return
    try:
        patch = strategic.diff(old, new, schema)
        made = strategic.apply(old, patch, schema)
        again = strategic.apply(made, patch, schema)
    except PatchError:
        # Documents that do not fit the schema.
        return
    assert equal(made, new)
    assert equal(again, new), "a second application changes the document"
    assert strategic.diff(new, new, schema) == {}


def _has_directive(value: Any) -> bool:
    if isinstance(value, dict):
        return any(
            key in (DIRECTIVE, RETAIN) or key.startswith((DELETE_FROM, ORDER)) or _has_directive(child)
            for key, child in value.items()
        )
    return isinstance(value, list) and any(map(_has_directive, value))


def _has_duplicate(value: Any) -> bool:
    """Whether a list has an item twice, or two with a value in common that may be their key."""
    if isinstance(value, dict):
        return any(map(_has_duplicate, value.values()))
    if not isinstance(value, list):
        return False
    keys = [
        (name, json.dumps(item[name]))
        for item in value
        if isinstance(item, dict)
        for name in item
        if not isinstance(item[name], dict | list)
    ]
    scalars = [json.dumps(item) for item in value if not isinstance(item, dict)]
    return len(set(keys)) < len(keys) or len(set(scalars)) < len(scalars) or any(map(_has_duplicate, value))


# -- inputs -----------------------------------------------------------------------------------

_texts = st.lists(st.sampled_from(("x", "y", "z")), max_size=3, unique=True)
_labels = st.dictionaries(st.sampled_from(("a", "b")), st.sampled_from(("1", "2")), max_size=2)
_fields: dict[str, st.SearchStrategy[Any]] = {"tags": _texts, "args": _texts, "labels": _labels}
_items = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from("pqrs")}, optional=_fields),
    max_size=3,
    unique_by=lambda item: item["name"],
)
_item = st.fixed_dictionaries({}, optional=_fields)
_things = st.fixed_dictionaries(
    {},
    optional={
        **_fields,
        "items": _items,
        "sources": _items,
        "strategy": _item,
        "whole": _item,
        "object": _item,
    },
)
_directives = (DIRECTIVE, RETAIN, f"{ORDER}/items", f"{ORDER}/tags", f"{DELETE_FROM}/tags")
_names = st.sampled_from((*_THING.fields, *_directives, "name"))
_scalars = st.sampled_from(("replace", "delete", "merge", "x", "p", None, 1))
_patches = st.dictionaries(_names, values(_names, _scalars), max_size=4)

TARGET = Target(
    name="strategic_patch",
    check=check,
    seeds=(
        b'{"schema": "Pod", "old": {"spec": {"containers": [{"name": "a", "image": "x", "ports": [{"containerPort": 1}]}], '
        b'"volumes": [{"name": "v", "emptyDir": {}}]}}, "new": {"spec": {"containers": [{"name": "b"}, {"name": "a", '
        b'"image": "y"}], "volumes": [{"name": "v", "hostPath": {"path": "/"}}]}}, "patch": {"spec": '
        b'{"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}], "containers": [{"name": "b"}, '
        b'{"name": "a", "$patch": "delete"}], "volumes": [{"$retainKeys": ["name"], "name": "v"}]}}}',
        b'{"schema": "Deployment", "old": {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {}}}}, '
        b'"new": {"spec": {"strategy": {"type": "Recreate"}}}, "patch": {"metadata": {"finalizers": ["a"], '
        b'"$deleteFromPrimitiveList/finalizers": ["b"], "$setElementOrder/finalizers": ["a"]}}}',
        b'{"old": {"tags": ["x"]}, "new": {"tags": ["y", "x"]}, "patch": {"tags": ["z"], "whole": {"$patch": "replace"}}}',
    ),
    strategy=encoded(st.fixed_dictionaries({"old": _things, "new": _things, "patch": _things | _patches})),
    dictionary=(
        *(f'"{name}": '.encode() for name in (*_directives, *_THING.fields)),
        b'"replace"',
        b'"delete"',
        b'"merge"',
        b"null",
        b'"name": "p"',
    ),
)
