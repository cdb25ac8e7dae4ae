"""JSON patches: what RFC 6902 accepts has its result, all else has a result or `PatchError`, and no argument changes."""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import strategies as st

from steersman.api.nesting import MAX_DEPTH, depth_of
from steersman.api.patch import PatchError
from steersman.api.patch import json as json_patch
from tests.fuzz.documents import decoded, encoded, equal, values
from tests.fuzz.target import Target


class _Refused(Exception):
    """A patch that the RFC refuses, or for which upstream has a rule of its own: a whole document as the target."""


def check(data: bytes) -> None:
    given = decoded(data)
    document, patch = given.get("document"), given.get("patch")
    if not isinstance(document, dict | list) or not isinstance(patch, list):
        return
    before = json.dumps([document, patch])
    try:
        result: Any = json_patch.apply(document, patch)
    except PatchError:
        result = None
    assert json.dumps([document, patch]) == before
    if result is not None:
        assert depth_of(result) <= MAX_DEPTH
    try:
        expected = _patched(json.loads(json.dumps(document)), patch)
    except (_Refused, RecursionError):
        return
    if depth_of(expected) <= MAX_DEPTH:
        assert result is not None, f"refused, and the RFC has {expected}"
        assert equal(result, expected)


# -- the RFC ----------------------------------------------------------------------------------


def _patched(document: Any, patch: list[Any]) -> Any:
    for operation in patch:
        if not isinstance(operation, dict):
            raise _Refused
        path, kind = _pointer(operation, "path"), operation.get("op")
        if kind == "add":
            _add(document, path, _value(operation))
        elif kind == "remove":
            _remove(document, path)
        elif kind == "replace":
            _get(document, path)
            _remove(document, path)
            _add(document, path, _value(operation))
        elif kind in ("move", "copy"):
            source = _pointer(operation, "from")
            value = json.loads(json.dumps(_get(document, source)))
            inside = kind == "move" and path[: len(source)] == source
            if len(json.dumps(value)) > 10_000 or inside:
                raise _Refused
            if kind == "move":
                _remove(document, source)
            _add(document, path, value)
        elif kind == "test":
            if not equal(_get(document, path), _value(operation)) or _has_float(operation):
                raise _Refused
        else:
            raise _Refused
    return document


def _pointer(operation: dict[str, Any], name: str) -> list[str]:
    pointer = operation.get(name)
    if not isinstance(pointer, str) or not pointer.startswith("/") or re.search(r"~(?![01])", pointer):
        raise _Refused
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer[1:].split("/")]


def _value(operation: dict[str, Any]) -> Any:
    if "value" not in operation:
        raise _Refused
    return json.loads(json.dumps(operation["value"]))


def _has_float(operation: dict[str, Any]) -> bool:
    return "." in json.dumps(operation) or "e" in json.dumps(operation["value"])


def _step(container: Any, token: str, *, end: bool = False) -> Any:
    if isinstance(container, dict):
        return token
    if not isinstance(container, list) or not re.fullmatch(r"0|[1-9][0-9]{0,9}", token):
        raise _Refused
    if int(token) >= len(container) + end:
        raise _Refused
    return int(token)


def _get(document: Any, path: list[str]) -> Any:
    for token in path:
        key = _step(document, token)
        if isinstance(document, dict) and key not in document:
            raise _Refused
        document = document[key]
    return document


def _add(document: Any, path: list[str], value: Any) -> None:
    container = _get(document, path[:-1])
    if isinstance(container, dict):
        container[path[-1]] = value
    elif isinstance(container, list) and path[-1] == "-":
        container.append(value)
    else:
        index = _step(container, path[-1], end=True)
        container.insert(index, value)


def _remove(document: Any, path: list[str]) -> None:
    _get(document, path)
    container = _get(document, path[:-1])
    del container[_step(container, path[-1])]


# -- inputs -----------------------------------------------------------------------------------

_names = st.sampled_from(("a", "b", "c", "/", "~", "0", ""))
_paths = st.lists(
    st.sampled_from(("a", "b", "c", "0", "1", "-", "-1", "~1", "~0", "")), min_size=1, max_size=4
).map(lambda tokens: "/" + "/".join(tokens))
_operations = st.one_of(
    st.fixed_dictionaries(
        {"op": st.sampled_from(("add", "replace", "test")), "path": _paths, "value": values(_names)}
    ),
    st.fixed_dictionaries({"op": st.just("remove"), "path": _paths}),
    st.fixed_dictionaries({"op": st.sampled_from(("move", "copy")), "path": _paths, "from": _paths}),
)

TARGET = Target(
    name="json_patch",
    check=check,
    seeds=(
        b'{"document": {"a": [1, {"b": null}], "c": "x"}, "patch": [{"op": "add", "path": "/a/0", "value": 2}, '
        b'{"op": "remove", "path": "/c"}, {"op": "replace", "path": "/a/-1/b", "value": {}}]}',
        b'{"document": {"a": {}}, "patch": [{"op": "copy", "from": "/a", "path": "/a/b"}, '
        b'{"op": "copy", "from": "/a", "path": "/a/b"}, {"op": "move", "from": "/a/b", "path": "/c"}, '
        b'{"op": "test", "path": "/c", "value": {}}]}',
        b'{"document": [[1], 2], "patch": [{"op": "replace", "path": "", "value": []}, {"op": "add", "path": "/-", '
        b'"value": 1}]}',
    ),
    strategy=encoded(
        st.fixed_dictionaries(
            {"document": st.dictionaries(_names, values(_names)), "patch": st.lists(_operations, max_size=5)}
        )
    ),
    dictionary=(
        b'{"op": "add", "path": "/',
        b'{"op": "copy", "from": "/a", "path": "/a/b"},',
        b'"move"',
        b'"test"',
        b'"remove"',
        b'"replace"',
        b'"value": ',
        b"/-",
        b"/-1",
        b"/0",
        b"~0",
        b"~1",
        b"/a/a/a/a",
        b"[[[[",
        b"null",
    ),
)  # fmt: skip
