"""A hook of mkdocs: writes the reference from the program itself, so that it is never out of date.

A page of docs/reference has an introduction and a line ``<!-- generated: NAME -->``, which is replaced by what a function of `PARTS`
returns: commands from the help of the verbs, flags from the flag table, annotations from the docstrings of the simulation, the
Python API from signatures and docstrings.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterable
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, NamedTuple, is_typeddict

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

SOURCE = Path(__file__).resolve().parent.parent / "src" / "steersman"
MARKER = re.compile(r"<!-- generated: (\w+) -->")
PREFIX = "sim.steersman.dev/"
WIDTH = 100
"""Columns of help texts."""


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Replace the marker of a page."""
    return MARKER.sub(lambda match: PARTS[match[1]](), markdown)


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(head)]
    lines += [["---"] * len(lines[0])]
    lines += [[cell.replace("|", r"\|").replace("\n", " ") for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _text(docstring: str | None) -> str:
    """A docstring as Markdown."""
    return inspect.cleandoc(docstring or "").replace("``", "`")


# -- commands and flags -----------------------------------------------------------------------


def commands() -> str:
    """The verbs of the command line, each with its help."""
    from steersman.manager.verb import help_text
    from steersman.manager.verbs import VERBS

    parts = []
    for verb in VERBS:
        text, more = help_text(verb), ""
        if verb.name == "run":
            text = text.partition(" flags:\n")[0].rpartition("\n\n")[0]
            more = "\nIts flags have [a page of their own](flags.md).\n"
        parts.append(f"## {verb.name}\n\n```text\n{text}\n```\n{more}")
        for each in verb.verbs:
            parts.append(f"### {verb.name} {each.name}\n\n```text\n{help_text(each)}\n```\n")
    return "\n".join(parts)


def flags() -> str:
    """The flags of ``steersman run``, by section."""
    from steersman.manager.flag_table import FLAGS

    parts = []
    for section, options in groupby(FLAGS, lambda option: option.section):
        rows = [
            (
                f"`--{option.name}`",
                _code(option.type.write(option.default)),
                f"{option.help} Deprecated: {option.deprecated.rstrip('.')}."
                if option.deprecated
                else option.help,
            )
            for option in options
        ]
        parts.append(f"## {section}\n\n{_table(('flag', 'default', ''), rows)}\n")
    return "\n".join(parts)


def _code(text: str) -> str:
    return f"`{text}`" if text.strip("[]") else ""


def gates() -> str:
    """The feature gates, with their stages."""
    from steersman.intent.gates import GATES

    rows = [
        (f"`{name}`", gate.stage.lower(), "on" if gate.default else "off", "yes" if gate.locked else "")
        for name, gate in sorted(GATES.items())
    ]
    return _table(("gate", "stage", "default", "locked"), rows)


# -- the simulation ---------------------------------------------------------------------------


def simulation() -> str:
    """The annotations that simulated nodes, storage and devices obey."""
    rows = (
        (f"`{PREFIX}{name}`", each.on, each.meaning) for name, each in sorted(found_annotations().items())
    )
    return _table(("annotation", "on", "meaning"), rows)


class Annotation(NamedTuple):
    """An annotation of the simulation: the object it belongs on, and what it does there."""

    on: str
    meaning: str


def found_annotations() -> dict[str, Annotation]:
    """Annotations by name: those of tables in docstrings of modules, and of documented constants, which say more."""
    tables, constants = {}, {}
    for path in (*sorted((SOURCE / "sim").rglob("*.py")), SOURCE / "server" / "calls.py"):
        tree = ast.parse(path.read_text("utf-8"))
        docstring = ast.get_docstring(tree) or ""
        if PREFIX in docstring:
            rows = re.findall(r"^``([a-z-]+)``  +(\S.*)$", docstring, re.MULTILINE)
            tables.update({name: _annotation(text) for name, text in rows})
        for statement, after in pairwise(tree.body):
            if isinstance(statement, ast.Assign) and isinstance(after, ast.Expr):
                name, text = _constant(statement.value), _constant(after.value)
                if name.startswith(PREFIX) and text.startswith("An annotation of "):
                    text = text.removeprefix("An annotation ")
                    constants[name.removeprefix(PREFIX)] = _annotation(text)
    return tables | constants


def _annotation(text: str) -> Annotation:
    """An annotation from ``of a Node: what it does``; without the object, it is one of a pod."""
    match = re.fullmatch(r"of (an? [^:]+): (.*)", text, re.DOTALL)
    on, meaning = match.groups() if match else ("a pod", text)
    return Annotation(on, _text(meaning).rstrip("."))


def _constant(node: ast.expr) -> str:
    """The string of an expression; that of the prefix for a name, so that ``f"{PREFIX}state"`` is one, too."""
    match node:
        case ast.Constant(str(text)):
            return text
        case ast.JoinedStr(parts):
            return "".join(map(_constant, parts))
        case ast.FormattedValue(value):
            return _constant(value)
        case ast.Name("PREFIX"):
            return PREFIX
        case ast.BinOp(left, ast.Add(), right):
            return _constant(left) + _constant(right)
    return ""


def faults() -> str:
    """The faults of ``steersman.sim.faults``, with their arguments."""
    from steersman.sim.faults import ALL

    rows = ((f"`{each.name}{inspect.signature(each)}`", _text(each.__doc__)) for each in ALL)
    return "\n".join(f"### {call}\n\n{text}\n" for call, text in rows)


# -- the Python API ---------------------------------------------------------------------------


def python() -> str:
    """The classes and functions that tests import."""
    from steersman.api.cloud import CloudProvider
    from steersman.sim.dynamicresources import Devices
    from steersman.sim.kubelet import KubeletSettings, Shape
    from steersman.testing import (
        Client,
        Cluster,
        ClusterOptions,
        Entry,
        Manager,
        Node,
        UnusedFault,
        WaitTimeout,
    )
    from steersman.testing.cluster import AioCluster
    from steersman.testing.decision_driver import walk

    classes = (
        Cluster,
        ClusterOptions,
        AioCluster,
        Client,
        Node,
        Manager,
        Entry,
        WaitTimeout,
        UnusedFault,
        KubeletSettings,
        Shape,
        Devices,
        CloudProvider,
    )
    return "\n".join([*map(_class, classes), _callable(walk.__module__, "walk", walk, "##")])


def _class(cls: type[Any]) -> str:
    module = cls.__module__ if cls.__name__ not in _exported() else "steersman.testing"
    parts = [f"## {cls.__name__}\n\n`from {module} import {cls.__name__}`\n\n{_text(cls.__doc__)}\n"]
    init = vars(cls).get("__init__")
    if init is not None and init.__doc__ and not issubclass(cls, Exception):
        parts.append(f"```python\n{_signature(cls.__name__, init)}\n```\n\n{_text(init.__doc__)}\n")
    fields = getattr(cls, "__struct_fields__", ()) or (
        tuple(cls.__annotations__) if is_typeddict(cls) else ()
    )
    described = _fields(cls)
    if fields:
        parts.append(
            "".join(
                f"- `{name}`: {described[name]}\n" if name in described else f"- `{name}`\n"
                for name in fields
            )
        )
    members = {name: value for base in reversed(cls.__mro__[:-1]) for name, value in vars(base).items()}
    for name, value in members.items():
        if name.startswith("_") or name in fields:
            continue
        if isinstance(value, property) and value.__doc__:
            parts.append(f"### {cls.__name__}.{name}\n\n{_text(value.__doc__)}\n")
        elif isinstance(value, classmethod) and value.__doc__:
            parts.append(_callable(cls.__name__, name, getattr(cls, name), "###"))
        elif inspect.isfunction(value) and value.__doc__:
            parts.append(_callable(cls.__name__, name, value, "###"))
    return "\n".join(parts)


def _exported() -> list[str]:
    from steersman import testing

    return list(testing.__all__)


def _callable(owner: str, name: str, function: Callable[..., Any], level: str) -> str:
    head = f"{owner}.{name}" if level == "###" else name
    keyword = "async def " if inspect.iscoroutinefunction(function) else ""
    return f"{level} {head}\n\n```python\n{keyword}{_signature(name, function)}\n```\n\n{_text(function.__doc__)}\n"


def _signature(name: str, function: Callable[..., Any]) -> str:
    """A call with its parameters, one to a line where they are many."""
    signature = inspect.signature(function)
    given = [each for each in signature.parameters.values() if each.name != "self"]
    answer = signature.return_annotation
    end = "" if answer in (signature.empty, None, "None") else f" -> {_type(answer)}"
    parts = list(map(_parameter, given))
    bare = next((n for n, each in enumerate(given) if each.kind is each.KEYWORD_ONLY), None)
    if bare is not None and not any(each.kind is each.VAR_POSITIONAL for each in given):
        parts.insert(bare, "*")
    line = f"{name}({', '.join(parts)}){end}"
    if len(line) <= WIDTH - 10:
        return line
    return f"{name}(\n{''.join(f'    {part},{chr(10)}' for part in parts)}){end}"


def _parameter(given: inspect.Parameter) -> str:
    """A parameter with its type and default; a default of many words is left out."""
    stars = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(given.kind.name, "")
    typed = "" if given.annotation is given.empty else f": {_type(given.annotation)}"
    if given.default is given.empty:
        return f"{stars}{given.name}{typed}"
    shown = repr(given.default)
    return f"{given.name}{typed} = {shown if len(shown) <= 30 else '...'}"


def _type(annotation: object) -> str:
    name = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return name.replace("builtins.", "").replace("'", "")


def _fields(cls: type[Any]) -> dict[str, str]:
    """The docstrings below the fields of a struct."""
    tree = ast.parse(inspect.cleandoc("\n" + inspect.getsource(cls)))
    body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
    return {
        statement.target.id: _text(_constant(after.value))
        for statement, after in pairwise(body)
        if isinstance(statement, ast.AnnAssign)
        and isinstance(statement.target, ast.Name)
        and isinstance(after, ast.Expr)
    }


PARTS: dict[str, Callable[[], str]] = {
    each.__name__: each for each in (commands, flags, gates, simulation, faults, python)
}
