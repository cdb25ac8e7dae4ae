"""Writes src/steersman/testing/generated: the types of built-in kinds by their names, for type checkers and editors.

`Cluster.get`, `Cluster.list` and the client's ``get`` and ``list`` have an overload for each kind that can be read, from the
table of kinds.

    python tools/generate_typed_kinds.py
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from steersman.api.generated import Resource, resources

TARGET = Path(__file__).resolve().parent.parent / "src" / "steersman" / "testing" / "generated"

INIT = '''"""Written by tools/generate_typed_kinds.py: the types of built-in kinds by their names."""
'''
NAMES = '''"""The names of built-in kinds, as kubectl takes them. Written by tools/generate_typed_kinds.py."""

from typing import Literal, TypeAlias

'''
HEAD = '''"""{about}

Written by tools/generate_typed_kinds.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar, overload

from steersman.api.scheme import Kind
{imports}
if TYPE_CHECKING:
    import builtins

    from steersman.api.generated import {modules}
    from steersman.testing.generated import names

T = TypeVar("T")


class {name}(ABC):
    """{doc}"""
'''
OBJECTS = '''
    @abstractmethod
    def _get(self, kind: object, name: str, namespace: str) -> Any: ...

    @abstractmethod
    def _list(self, kind: object, namespace: str | None, selector: str) -> builtins.list[Any]: ...

{get}
    @overload
    def get(self, kind: Kind[T] | type[T], name: str, namespace: str = "default") -> T: ...
    @overload
    def get(self, kind: str, name: str, namespace: str = "default") -> Any: ...
    def get(self, kind: object, name: str, namespace: str = "default") -> Any:
        """Get an object: ``get("deploy", "web")``. Raises `NotFound`."""
        return self._get(kind, name, namespace)

{list}
    @overload
    def list(self, kind: Kind[T] | type[T], namespace: str | None = None, selector: str = "") -> builtins.list[T]: ...
    @overload
    def list(self, kind: str, namespace: str | None = None, selector: str = "") -> builtins.list[Any]: ...
    def list(self, kind: object, namespace: str | None = None, selector: str = "") -> builtins.list[Any]:
        """List objects of a namespace, or of all: ``list("pods", selector="app=web")``."""
        return self._list(kind, namespace, selector)
'''
CLIENT = '''
    @abstractmethod
    def _get(self, kind: object, namespace: str, name: str) -> Coroutine[Any, Any, Any]: ...

    @abstractmethod
    def _list(self, kind: object, namespace: str, options: dict[str, Any]) -> Coroutine[Any, Any, Any]: ...

{get}
    @overload
    def get(self, kind: Kind[T] | type[T], namespace: str, name: str) -> Coroutine[Any, Any, T]: ...
    @overload
    def get(self, kind: str, namespace: str, name: str) -> Coroutine[Any, Any, Any]: ...
    def get(self, kind: object, namespace: str, name: str) -> Coroutine[Any, Any, Any]:
        """Get an object: ``await client.get("deploy", "default", "web")``. Raises `NotFound`."""
        return self._get(kind, namespace, name)

{list}
    @overload
    def list(self, kind: Kind[T] | type[T], namespace: str = "", **options: Unpack[ListOptions]) -> Coroutine[Any, Any, Page[T | UndecodableObject]]: ...
    @overload
    def list(self, kind: str, namespace: str = "", **options: Unpack[ListOptions]) -> Coroutine[Any, Any, Page[Any]]: ...
    def list(self, kind: object, namespace: str = "", **options: Unpack[ListOptions]) -> Coroutine[Any, Any, Any]:
        """List objects of a namespace, or of all: ``(await client.list("pods", label_selector="app=web")).items``."""
        return self._list(kind, namespace, dict(options))
'''
OPTIONS = '''

class ListOptions(TypedDict, total=False):
    """The options of a list."""

    label_selector: str
    field_selector: str
    limit: int
    continue_: str
    resource_version: str
    resource_version_match: Literal["", "Exact", "NotOlderThan"]

'''


def kinds() -> Iterator[tuple[Resource, tuple[str, ...]]]:
    """The kinds that can be read, each with the names that mean it: the first in the order of discovery has a name."""
    taken: set[str] = set()
    for row in resources():
        full = (f"{row.plural}.{row.group}",) if row.group else ()
        names = dict.fromkeys((row.kind, row.plural, row.singular, *row.short_names, *full))
        own = tuple(name for name in names if name.lower() not in taken)
        taken.update(name.lower() for name in names)
        if own and {"get", "list"} <= {*row.verbs}:
            yield row, own


def _alias(row: Resource, names: tuple[str, ...]) -> str:
    return (
        row.kind
        if row.kind in names
        else f"{row.kind}{row.version.capitalize()}{row.group.partition('.')[0].capitalize()}"
    )


def files() -> dict[str, str]:
    """The generated modules, before they are formatted."""
    found = list(kinds())
    modules = ", ".join(sorted({row.module for row, _ in found}))
    types = [(f"names.{_alias(row, own)}", f"{row.module}.{row.kind}") for row, own in found]
    aliases = "".join(
        f"{_alias(row, own)}: TypeAlias = Literal[{', '.join(map(repr, own))}]\n" for row, own in found
    )

    def each(line: str) -> str:
        return "".join(
            f"    @overload\n    {line.format(names=names, type=type_)}\n" for names, type_ in types
        )

    objects = HEAD.format(
        about="`Cluster.get` and `Cluster.list` with the types of built-in kinds.",
        imports="",
        modules=modules,
        name="TypedObjects",
        doc="Reading objects by the names of their kinds.",
    ).replace("from collections.abc import Coroutine\n", "") + OBJECTS.format(
        get=each('def get(self, kind: {names}, name: str, namespace: str = "default") -> {type}: ...'),
        list=each(
            'def list(self, kind: {names}, namespace: str | None = None, selector: str = "") -> builtins.list[{type}]: ...'
        ),
    )
    client = HEAD.format(
        about="The client's ``get`` and ``list`` with the types of built-in kinds.",
        imports="from steersman.client.api import Page, UndecodableObject\n",
        modules=modules,
        name="TypedClient",
        doc="Reading objects by the names of their kinds, for coroutines.",
    ).replace("    import builtins\n\n", "").replace(
        "TYPE_CHECKING, Any, TypeVar, overload",
        "TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, Unpack, overload",
    ).replace("\n\nclass TypedClient", OPTIONS + "\nclass TypedClient") + CLIENT.format(
        get=each(
            "def get(self, kind: {names}, namespace: str, name: str) -> Coroutine[Any, Any, {type}]: ..."
        ),
        list=each(
            'def list(self, kind: {names}, namespace: str = "", **options: Unpack[ListOptions]) -> Coroutine[Any, Any, Page[{type}]]: ...'
        ),
    )
    return {"__init__.py": INIT, "names.py": NAMES + aliases, "objects.py": objects, "client.py": client}


def formatted(name: str, text: str) -> str:
    """A module as ruff formats it."""
    ruff = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(TARGET / name), "-"]
    return subprocess.run(ruff, input=text, capture_output=True, text=True, check=True).stdout


def main() -> None:
    TARGET.mkdir(exist_ok=True)
    for name, text in files().items():
        (TARGET / name).write_text(formatted(name, text), "utf-8")


if __name__ == "__main__":
    main()
