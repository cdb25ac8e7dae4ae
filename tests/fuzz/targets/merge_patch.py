"""JSON merge patches, against the algorithm in RFC 7386; a difference leads from the old document to the new one."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from steersman.api.patch import PatchError, merge
from tests.fuzz.documents import decoded, encoded, equal, values, without_nulls
from tests.fuzz.target import Target


def rfc_7386(target: Any, patch: Any) -> Any:
    """The algorithm of the RFC."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        result.pop(name, None) if value is None else result.update({name: rfc_7386(result.get(name), value)})
    return result


def check(data: bytes) -> None:
    given = decoded(data)
    document, patch = given.get("document"), given.get("patch")
    if not isinstance(document, dict):
        return
    before = json.dumps([document, patch])
    try:
        result = merge.apply(document, patch)
    except PatchError:
        assert not isinstance(patch, dict)
        return
    assert isinstance(patch, dict)
    assert json.dumps([document, patch]) == before
    if not _has_null_in_list(patch):
        # In objects within lists the RFC keeps nulls. Upstream drops them, unless the list takes the place of an object.
        assert equal(result, rfc_7386(document, patch))
        assert equal(merge.apply(result, patch), result), "a second application changes the document"
    new = without_nulls(patch)
    assert equal(merge.apply(document, merge.diff(document, new)), new)
    assert merge.diff(new, new) == {}


def _has_null_in_list(value: Any, inside: bool = False) -> bool:
    if isinstance(value, dict):
        return any((inside and child is None) or _has_null_in_list(child, inside) for child in value.values())
    return isinstance(value, list) and any(_has_null_in_list(item, True) for item in value)


_names = st.sampled_from(("a", "b", "c"))
_objects = st.dictionaries(_names, values(_names))

TARGET = Target(
    name="merge_patch",
    check=check,
    seeds=(
        b'{"document": {"a": {"b": 1, "c": [1]}, "d": null}, "patch": {"a": {"b": null, "c": {"x": [{"y": null}]}}}}',
        b'{"document": {"a": [{"b": 1}]}, "patch": {"a": {"b": {"c": null}}, "e": {"f": {"g": null}}}}',
    ),
    strategy=encoded(st.fixed_dictionaries({"document": _objects, "patch": _objects | values(_names)})),
    dictionary=(b"null", b'{"a": ', b"[{", b"}]", b"true", b"1.0", b"1"),
)
