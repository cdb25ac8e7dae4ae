"""The tests of each controller, derived from the source tree.

- *rows*: modules of tests/controllers with tables (``parametrize``) or driven decisions (``walk``) that mirror or import the
  module of the controller; where a module declares several controllers, those that name its variable or its decision;
- *scenarios*: packaged scenarios whose cluster lists the controller;
- *comparisons*: modules of tests/real that run it beside kube-controller-manager and compare: the fixture ``both`` is given its
  name as one of ``controllers``, or the module or test is marked ``compares("NAME", ...)``.

``python tests/harness/controller_coverage.py --renew`` writes what is derived to ``coverage.tsv`` and to the documents.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from steersman import controllers as package
from steersman.controllers import CONTROLLERS
from steersman.intent.controller import Controller
from steersman.manager import controller_table
from steersman.manager.controller_table import Tests

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "steersman"
COVERAGE = SOURCE / "manager" / "coverage.tsv"
PAGE = ROOT / "docs" / "reference" / "controllers.md"
COUNTED = (ROOT / "README.md", ROOT / "docs" / "compatibility.md", PAGE)
"""Documents that say how many controllers there are."""
COUNT = re.compile(r"\b\d+ of 52\b")
TABLE = re.compile(r"(?<=<!-- table -->\n)(?:\|.*\n)*")


def derived() -> dict[str, Tests]:
    """The tests of each registered controller, by name."""
    rows, scenarios, comparisons = _rows(), _scenarios(), _comparisons()
    return {
        name: Tests(tuple(rows[name]), tuple(scenarios.get(name, ())), tuple(comparisons.get(name, ())))
        for name in sorted(controller.name for controller in CONTROLLERS)
    }


# -- rows -------------------------------------------------------------------------------------


class Declaration(NamedTuple):
    """Where a registered controller is declared."""

    name: str
    module: str
    words: tuple[str, ...]
    """Words of which a test of the controller has one: its name, and that of its variable and of its decision."""

    @property
    def mirror(self) -> str:
        """The beginning of the paths of tests that mirror the module."""
        *folders, last = self.module.split(".")[1:]
        return "/".join((*folders, f"test_{last}.py"))


def declarations() -> list[Declaration]:
    """Where the registered controllers are declared."""
    found = []
    for path in sorted((SOURCE / "controllers").rglob("*.py")):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if module == package.__name__:
            continue
        for variable, value in vars(import_module(module)).items():
            if isinstance(value, Controller) and any(value is one for one in CONTROLLERS):
                decide = value.decide.func if isinstance(value.decide, partial) else value.decide
                found.append(Declaration(value.name, module, (value.name, variable, decide.__name__)))
    words = Counter((each.module, word) for each in found for word in each.words)
    # A word that two controllers of a module share tells nothing.
    return [
        each._replace(words=tuple(word for word in each.words if words[each.module, word] == 1))
        for each in found
    ]


def _rows() -> Mapping[str, list[str]]:
    declared = declarations()
    found: dict[str, list[str]] = {each.name: [] for each in declared}
    for path in sorted((ROOT / "tests" / "controllers").rglob("test_*.py")):
        text = path.read_text("utf-8")
        if "parametrize" not in text and "walk(" not in text:
            continue
        imported, shown = _imported(ast.parse(text)), str(path.relative_to(ROOT))
        alone = Counter(each.module for each in declared)
        for each in declared:
            used = shown == f"tests/{each.mirror}" or any(
                name == each.module or name.startswith(f"{each.module}.") for name in imported
            )
            named = any(re.search(rf"\b{re.escape(word)}\b", text) for word in each.words)
            if used and (alone[each.module] == 1 or named):
                found[each.name].append(shown)
    return found


def _imported(tree: ast.Module) -> set[str]:
    """The names that a module imports, in full."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names.update(f"{node.module}.{each.name}" for each in node.names)
    return names


# -- scenarios --------------------------------------------------------------------------------


def _scenarios() -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for path in sorted((SOURCE / "explore" / "scenarios").glob("*.yaml")):
        document: Any = yaml.load(path.read_text("utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        for name in (document.get("cluster") or {}).get("controllers", ()):
            found.setdefault(name, []).append(path.stem)
    return found


# -- comparisons ------------------------------------------------------------------------------


def _comparisons() -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests" / "real").glob("test_*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        for name in sorted(compared(tree)):
            found.setdefault(name, []).append(str(path.relative_to(ROOT)))
    return found


def compared(tree: ast.Module) -> set[str]:
    """The controllers that a module of tests/real compares with the original."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        if ast.unparse(node.func) == "pytest.mark.compares":
            names.update(_strings(node.args, tree))
        elif isinstance(node.func, ast.Name) and node.func.id in ("both", "tell"):
            names.update(_strings([each.value for each in node.keywords if each.arg == "controllers"], tree))
    return names


def _strings(nodes: list[ast.expr], tree: ast.Module) -> Iterator[str]:
    """The strings in expressions, and in what the names in them are assigned anywhere in the module."""
    for node in nodes:
        for each in ast.walk(node):
            if isinstance(each, ast.Constant) and isinstance(each.value, str):
                yield each.value
            elif isinstance(each, ast.Name):
                yield from _strings(list(_assigned(each.id, tree)), ast.Module([], []))


def _assigned(name: str, tree: ast.Module) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == name for target in node.targets
        ):
            yield node.value


# -- what is written --------------------------------------------------------------------------


def renewed(path: Path) -> str:
    """A document with the current count and, where it has one, the current table."""
    text = COUNT.sub(controller_table.count(), path.read_text("utf-8"))
    if path == PAGE:
        from steersman.manager.controllers import markdown

        text = TABLE.sub(markdown(controller_table.controller_table()) + "\n", text)
    return text


def renew() -> None:
    """Write ``coverage.tsv``, then the documents that show it."""
    COVERAGE.write_text(controller_table.write_coverage(derived()), "utf-8")
    controller_table.coverage.cache_clear()
    for path in COUNTED:
        path.write_text(renewed(path), "utf-8")


if __name__ == "__main__" and "--renew" in sys.argv:
    renew()
