"""House rules that a machine can check, one test and one message each. CONTRIBUTING.md gives their reasons."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "steersman"
LONGEST_MODULE = 600
"""Lines. A longer module holds more than one thought."""

UNNAMED = re.compile(r"\b(nobody|somebody|whoever)\b", re.IGNORECASE)
PRONOUN = re.compile(r"\s*(What|Who|Whoever|It|Those|They|That|Nobody|Somebody)\b")
"""The beginning of a docstring that leaves its subject to be guessed."""
MACHINE_PATH = re.compile(r"(?<![\w.~])/(?:home|root|Users|work|opt/k8s)/[\w.]")
DECIDES_ALONE = ("asyncio", "time", "random", "threading", "socket")
"""Modules that a decision must not import: time and chance come from the framework."""


@cache
def modules() -> dict[Path, ast.Module]:
    """The hand-written modules of the package, parsed."""
    return {
        path: ast.parse(path.read_text("utf-8"))
        for path in sorted(SOURCE.rglob("*.py"))
        if "generated" not in path.parts
    }


def shown(path: Path, line: int = 0) -> str:
    """A place as an editor opens it."""
    name = str(path.relative_to(ROOT))
    return f"{name}:{line}" if line else name


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The docstrings of a module with their lines, those of attributes too."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            yield node.lineno, node.value.value


def public_functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """The functions of a module and of its public classes that others may call."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if not node.name.startswith("_") or node.name in ("__init__", "__call__"):
                yield node
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from public_functions(node)


def types_in(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.expr]:
    """The types that a signature names."""
    every = function.args
    for each in (*every.posonlyargs, *every.args, *every.kwonlyargs, every.vararg, every.kwarg):
        if each is not None and each.annotation is not None:
            yield each.annotation
    if function.returns is not None:
        yield function.returns


def is_any(annotation: ast.expr) -> bool:
    """Whether a type is ``Any`` itself. ``dict[str, Any]`` is a JSON document and ``Kind[Any]`` any kind: both are fine."""
    return isinstance(annotation, ast.Name) and annotation.id == "Any"


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        shown(path) for path, tree in modules().items() if tree.body and ast.get_docstring(tree) is None
    ]
    assert silent == [], "a module begins with a docstring that names its subject"


def test_docstrings_name_who_acts() -> None:
    found = [
        f"{shown(path, line)}: {match[0]}"
        for path, tree in modules().items()
        for line, text in docstrings(tree)
        if (match := UNNAMED.search(text))
    ]
    assert found == [], "name the actor: the controller, the client, the user, the API server"


def test_docstrings_begin_with_their_subject() -> None:
    found = [
        f"{shown(path, line)}: {text.strip().splitlines()[0]}"
        for path, tree in modules().items()
        for line, text in docstrings(tree)
        if PRONOUN.match(text)
    ]
    assert found == [], (
        'name the subject by its noun: "The header of a snapshot", not "What a snapshot holds"; "The pod runs", not "It runs"'
    )


def test_texts_and_comments_name_who_acts() -> None:
    found = [
        f"{shown(path, number)}: {match[0]}"
        for path in modules()
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if (match := UNNAMED.search(line))
    ]
    assert found == [], "name the actor in messages and comments, too: users read them"


def test_a_module_is_one_thought() -> None:
    long = {shown(path): len(path.read_text("utf-8").splitlines()) for path in modules()}
    assert {name: lines for name, lines in long.items() if lines > LONGEST_MODULE} == {}, (
        f"a module of more than {LONGEST_MODULE} lines is split by what its parts are about"
    )


@pytest.mark.parametrize("package", ["intent", "controllers"])
def test_what_controllers_say_is_typed(package: str) -> None:
    untyped = [
        f"{shown(path, function.lineno)}: {function.name}"
        for path, tree in modules().items()
        if path.is_relative_to(SOURCE / package)
        for function in public_functions(tree)
        if any(map(is_any, types_in(function)))
    ]
    assert untyped == [], "a public signature names its types; Any hides what a controller is given"


def test_controllers_take_time_and_chance_from_the_framework() -> None:
    found = []
    for path, tree in modules().items():
        if not path.is_relative_to(SOURCE / "controllers"):
            continue
        for node in ast.walk(tree):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [each.name for each in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module]
            found += [f"{shown(path)}: {name}" for name in names if name.split(".")[0] in DECIDES_ALONE]
            if isinstance(node, ast.Attribute) and ast.unparse(node) in (
                "datetime.now",
                "datetime.utcnow",
                "date.today",
            ):
                found.append(f"{shown(path, node.lineno)}: {ast.unparse(node)}")
    assert found == [], "a decision is given `now` and asks for random bits by an action"


def test_the_packages_keep_their_layers() -> None:
    # In a process of its own, since import-linter disables the loggers that there are.
    command = [
        sys.executable,
        "-c",
        "from importlinter.cli import lint_imports_command as main; main()",
        "--no-cache",
    ]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, (
        f"an import goes against the layers of pyproject.toml; see the arrows in docs/architecture.md\n{checked.stdout}"
    )


def test_pem_is_read_in_one_place() -> None:
    found = [
        shown(path, number)
        for path in modules()
        if path != SOURCE / "api" / "pem.py"
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if "-----BEGIN" in line or "load_pem_" in line
    ]
    assert found == [], "steersman.api.pem finds the blocks that Go finds; another reader may find others"


def test_the_program_does_not_need_its_tests() -> None:
    found = [
        shown(path, node.lineno)
        for path, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ("tests", "benchmarks")
    ]
    assert found == [], "the wheel holds src alone"


def test_nothing_depends_on_one_machine() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    found = []
    for name in filter(None, listed.stdout.split("\0")):
        path = ROOT / name
        if path.suffix not in (".py", ".md", ".toml", ".yaml", ".sh", "") or not path.is_file():
            continue
        for number, line in enumerate(path.read_text("utf-8", errors="replace").splitlines(), 1):
            if MACHINE_PATH.search(line) and path != Path(__file__):
                found.append(f"{name}:{number}: {line.strip()[:80]}")
    assert found == [], "paths are relative, given by a flag, or in a temporary directory"


def test_files_are_written_with_their_mode() -> None:
    found = [
        shown(path, node.lineno)
        for path, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in ("write_bytes", "write_text")
    ]
    assert found == [], (
        "write_bytes follows symlinks and keeps the mode it finds: use write_private for keys and kubeconfigs, "
        "write_public for certificates"
    )


def test_no_test_sleeps() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if path != Path(__file__)
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if "time.sleep(" in line
    ]
    assert found == [], "a test waits for what it expects, or lives under virtual time"


def test_the_architecture_names_modules_that_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    named = set(re.findall(r"\b((?:[a-z_]+/)+[a-z_]+\.py)\b", text)) | set(
        re.findall(r"\b((?:[a-z_]+/){2,})", text)
    )
    missing = sorted(name for name in named if not ((SOURCE / name).exists() or (ROOT / name).exists()))
    assert missing == [], "docs/architecture.md shows the way by paths: keep them true"
