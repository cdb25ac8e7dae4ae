"""Fuzz targets: what a target declares, where targets are found, and the corpus of inputs kept for them.

A target is a module in ``tests/fuzz/targets`` with a constant ``TARGET``. Its name is the module's name.
"""

from __future__ import annotations

import hashlib
import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hypothesis.strategies import SearchStrategy

HERE = Path(__file__).parent
CORPUS = HERE / "corpus"
"""One folder for each target: inputs that once broke it, each with a file that gives the reason, and seeds too large for code."""
REASON = ".reason"
"""Suffix of the file beside an input that says what the input broke."""


@dataclass(frozen=True)
class Target:
    """One parser under test."""

    name: str
    check: Callable[[bytes], object]
    """Raises when an invariant is broken.

    Invariants are: the parser raises no exception but those it declares, reads what its oracle reads, and reads back
    what it wrote. The check catches the declared exceptions; any other exception is a finding.
    """
    seeds: tuple[bytes, ...]
    """A few valid inputs, from which mutation starts."""
    strategy: SearchStrategy[bytes] | None = None
    """Builds structured inputs, where mutated bytes would seldom get far into the parser."""
    dictionary: tuple[bytes, ...] = ()
    """Tokens of the format, which mutation inserts."""
    max_bytes: int = 4096
    """Bytes of the longest input."""
    seconds_per_byte: float = 50e-6
    """CPU time that a byte may take, beyond the constant that every input has (see `tests.fuzz.bounds`)."""
    memory_per_byte: int = 2000
    """Bytes of memory that a byte of input may take, beyond the constant that every input has."""

    def kept_inputs(self, corpus: Path = CORPUS) -> list[bytes]:
        """Return the seeds and the inputs of the corpus."""
        folder = corpus / self.name
        files = sorted(folder.iterdir()) if folder.is_dir() else []
        return [*self.seeds, *(file.read_bytes() for file in files if file.suffix != REASON)]

    def keep(self, data: bytes, reason: str, corpus: Path = CORPUS) -> Path:
        """Add an input to the corpus, with the reason why it is there."""
        file = corpus / self.name / hashlib.sha256(data).hexdigest()[:16]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        file.with_suffix(REASON).write_text(f"{reason}\n", "utf-8", "backslashreplace")
        return file


def names() -> list[str]:
    """Return the names of all targets, without importing them."""
    return sorted(module.name for module in pkgutil.iter_modules([str(HERE / "targets")]))


def load(name: str) -> Target:
    """Import a target by its name. The modules under test are imported with it."""
    target = importlib.import_module(f"tests.fuzz.targets.{name}").TARGET
    if not isinstance(target, Target) or target.name != name:
        raise TypeError(f"tests/fuzz/targets/{name}.py has no TARGET named {name!r}")
    return target
