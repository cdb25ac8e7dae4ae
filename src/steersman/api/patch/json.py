"""Applies JSON patches (RFC 6902) as upstream's library (evanphx/json-patch) does.

As in that library, indexes may be negative, ``replace`` adds a missing field, and ``copy`` of a missing field gives
null.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import msgspec

from steersman.api.nesting import MAX_DEPTH, depth_of
from steersman.api.patch.values import (
    PatchError,
    PatchTestFailed,
    TooManyOperations,
    deep_copy,
    json_equal,
    limits_nesting,
)

MAX_OPERATIONS = 10_000
MAX_COPIED_BYTES = 3 * 1024 * 1024
MAX_MOVED_ITEMS = 50_000_000
"""The items of lists that all operations of a patch may move to insert or delete others: some 0.1 s of work.

differs: upstream has no such limit, and copies the list for each operation.
"""

Container: TypeAlias = dict[str, Any] | list[Any]

_INDEX = re.compile(r"[+-]?[0-9]{1,18}")
_MISSING = "missing value"
_INVALID_INDEX = "Unable to access invalid index: {}: invalid index referenced"


@limits_nesting
def apply(document: Container, patch: Sequence[Any]) -> Container:
    """Return the document with all operations applied. Raises `PatchError`."""
    if not isinstance(patch, list | tuple) or not all(isinstance(op, dict) for op in patch):
        raise PatchError("a JSON patch is a list of operations")
    if len(patch) > MAX_OPERATIONS:
        raise TooManyOperations(
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(patch)}"
        )
    patching = _Patching(deep_copy(document))
    for operation in patch:
        patching.do(operation)
    # An operation can add a value below another, so that no single one is nested too deeply.
    if depth_of(patching.document) > MAX_DEPTH:
        raise PatchError("the document is nested too deeply")
    return patching.document


class _Patching:
    """Applies operations to a document in place."""

    def __init__(self, document: Container) -> None:
        self.document = document
        self._copied = 0
        self._moved = 0
        self._operations: dict[str, Callable[[dict[str, Any]], None]] = {
            "add": self._add,
            "remove": self._remove,
            "replace": self._replace,
            "move": self._move,
            "copy": self._copy,
            "test": self._test,
        }

    def do(self, operation: dict[str, Any]) -> None:
        kind = operation.get("op")
        kind = kind if isinstance(kind, str) else "unknown"
        if kind not in self._operations:
            raise PatchError(f"Unexpected kind: {kind}")
        self._operations[kind](operation)

    def _find(self, path: str) -> tuple[Container, str] | None:
        """Return the container that a path leads to, and the key in it; None if there is no container."""
        tokens = path.split("/")
        if len(tokens) < 2:
            return None
        here: Any = self.document
        for token in tokens[1:-1]:
            try:
                here = _get(here, _decoded(token))
            except PatchError:
                return None
            if not isinstance(here, dict | list):
                return None
        return here, _decoded(tokens[-1])

    def _add(self, operation: dict[str, Any]) -> None:
        path = _pointer(operation, "path", "add", bare=True)
        found = self._find(path)
        if found is None:
            raise PatchError(f'add operation does not apply: doc is missing path: "{path}": {_MISSING}')
        try:
            self._insert(*found, deep_copy(operation.get("value")))
        except PatchError as error:
            raise PatchError(f"error in add for path: '{path}': {error}") from None

    def _remove(self, operation: dict[str, Any]) -> None:
        path = _pointer(operation, "path", "remove", bare=True)
        found = self._find(path)
        if found is None:
            raise PatchError(f'remove operation does not apply: doc is missing path: "{path}": {_MISSING}')
        try:
            self._delete(*found)
        except PatchError as error:
            raise PatchError(f"error in remove for path: '{path}': {error}") from None

    def _replace(self, operation: dict[str, Any]) -> None:
        path = _pointer(operation, "path", "replace")
        value = deep_copy(operation.get("value"))
        if path == "":
            if not isinstance(value, dict | list):
                raise PatchError("replace operation value must be object or array")
            self.document = value
            return
        found = self._find(path)
        if found is None:
            raise PatchError(f"replace operation does not apply: doc is missing path: {path}: {_MISSING}")
        container, key = found
        try:
            _get(container, key)
        except PatchError:
            raise PatchError(
                f"replace operation does not apply: doc is missing key: {path}: {_MISSING}"
            ) from None
        if isinstance(container, list):
            container[_index(key)] = value
        else:
            container[key] = value

    def _move(self, operation: dict[str, Any]) -> None:
        source = _pointer(operation, "from", "move")
        found = self._find(source)
        if found is None:
            raise PatchError(f"move operation does not apply: doc is missing from path: {source}: {_MISSING}")
        try:
            value = _get(*found)
            self._delete(*found)
        except PatchError as error:
            raise PatchError(f"error in move for path: '{found[1]}': {error}") from None
        path = _pointer(operation, "path", "move")
        found = self._find(path)
        if found is None:
            raise PatchError(
                f"move operation does not apply: doc is missing destination path: {path}: {_MISSING}"
            )
        try:
            self._insert(*found, value)
        except PatchError as error:
            raise PatchError(f"error in move for path: '{path}': {error}") from None

    def _copy(self, operation: dict[str, Any]) -> None:
        source = _pointer(operation, "from", "copy")
        found = self._find(source)
        if found is None:
            raise PatchError(f"copy operation does not apply: doc is missing from path: {source}: {_MISSING}")
        try:
            value = _get(*found)
        except PatchError as error:
            raise PatchError(f"error in copy for from: '{source}': {error}") from None
        path = _pointer(operation, "path", "copy", bare=True)
        found = self._find(path)
        if found is None:
            raise PatchError(
                f"copy operation does not apply: doc is missing destination path: {path}: {_MISSING}"
            )
        # A short patch can double a field again and again.
        self._copied += len(msgspec.json.encode(value))
        if self._copied > MAX_COPIED_BYTES:
            raise PatchError(
                f"Unable to complete the copy, the accumulated size increase of copy is {self._copied}, "
                f"exceeding the limit {MAX_COPIED_BYTES}"
            )
        try:
            self._insert(*found, deep_copy(value))
        except PatchError as error:
            raise PatchError(f"error while adding value during copy: {error}") from None

    def _test(self, operation: dict[str, Any]) -> None:
        path = _pointer(operation, "path", "test")
        if path == "":
            value: Any = self.document
        else:
            found = self._find(path)
            if found is None:
                raise PatchError(f"test operation does not apply: is missing path: {path}: {_MISSING}")
            try:
                value = _get(*found)
            except PatchError as error:
                raise PatchError(f"error in test for path: '{path}': {error}") from None
        if not json_equal(value, operation.get("value")):
            raise PatchTestFailed(f"testing value {path} failed: test failed")

    # -- containers ---------------------------------------------------------------------------

    def _insert(self, container: Container, key: str, value: Any) -> None:
        if isinstance(container, dict):
            container[key] = value
            return
        if key == "-":
            container.append(value)
            return
        try:
            index = _index(key)
        except PatchError as error:
            raise PatchError(f"value was not a proper array index: '{key}': {error}") from None
        size = len(container) + 1
        if not -size <= index < size:
            raise PatchError(_INVALID_INDEX.format(index))
        at = index if index >= 0 else index + size
        self._count_moved(len(container) - at)
        container.insert(at, value)

    def _delete(self, container: Container, key: str) -> None:
        if isinstance(container, dict):
            if key not in container:
                raise PatchError(f"Unable to remove nonexistent key: {key}: {_MISSING}")
            del container[key]
            return
        _get(container, key)
        index = _index(key)
        self._count_moved(len(container) - index if index >= 0 else -index)
        del container[index]

    def _count_moved(self, items: int) -> None:
        self._moved += items
        if self._moved > MAX_MOVED_ITEMS:
            raise PatchError(
                f"Unable to complete the patch, its operations move more than {MAX_MOVED_ITEMS} items of lists"
            )


def _pointer(operation: dict[str, Any], field: str, kind: str, *, bare: bool = False) -> str:
    pointer = operation.get(field)
    if isinstance(pointer, str):
        return pointer
    comma = "," if field == "from" else ""
    why = _MISSING if bare else f"operation{comma} missing {field} field: {_MISSING}"
    raise PatchError(f"{kind} operation failed to decode {field}: {why}")


def _decoded(token: str) -> str:
    return token.replace("~1", "/").replace("~0", "~")


def _index(token: str) -> int:
    if not _INDEX.fullmatch(token):
        raise PatchError(f'strconv.Atoi: parsing "{token}": invalid syntax')
    return int(token)


def _get(container: Container, key: str) -> Any:
    """Return the value at a key or index; None for a missing field."""
    if isinstance(container, dict):
        return container.get(key)
    index = _index(key)
    if not -len(container) <= index < len(container):
        raise PatchError(_INVALID_INDEX.format(index))
    return container[index]
