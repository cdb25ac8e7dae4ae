"""Same seed, same world, byte for byte: in one process, in another, whatever its hash seed and its Python."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

import steersman

SCRIPT = Path(__file__).with_name("trace.py")
SOURCE = str(Path(steersman.__file__).parent.parent)
RENEW = "; if that is meant: python tests/sim/trace.py --renew"


def _trace() -> ModuleType:
    spec = importlib.util.spec_from_file_location("sim_trace", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


trace = _trace()


@cache
def here() -> str:
    return "\n".join(line for lines in trace.told() for line in lines)


def elsewhere(python: str, hash_seed: str = "random") -> str:
    """The same, told by another process."""
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": SOURCE}
    told = subprocess.run([python, str(SCRIPT)], capture_output=True, env=environment, check=True)
    return told.stdout.decode()


@pytest.mark.parametrize("shuffle", [False, True])
def test_the_same_seed_gives_the_same_world(shuffle: bool) -> None:
    journal, rounds = trace.told(11, shuffle=shuffle)
    assert len(journal) > 100
    assert len(rounds) > 50
    assert trace.told(11, shuffle=shuffle) == (journal, rounds)


def test_another_seed_gives_another_world() -> None:
    assert trace.told(11) != trace.told(12)


def test_a_shuffled_world_takes_another_course() -> None:
    assert trace.told(11, shuffle=True) != trace.told(11, shuffle=False)


@pytest.mark.parametrize("hash_seed", ["0", "4242"])
def test_another_process_with_another_hash_seed_gives_the_same_world(hash_seed: str) -> None:
    assert elsewhere(sys.executable, hash_seed) == here()


# -- other versions of Python -----------------------------------------------------------------


def _others() -> list[str]:
    """Interpreters of other versions on this machine: on the path, of pyenv, and those that are named."""
    found = [str(path) for path in Path.home().glob(".pyenv/versions/*/bin/python")]
    found += [path for minor in range(11, 20) if (path := shutil.which(f"python3.{minor}"))]
    return [*os.environ.get("STEERSMAN_PYTHONS", "").split(), *sorted(found)]


def _version(python: str) -> str:
    """Its version where it could run a world: it is new enough, and has what is needed; else nothing."""
    probe = "import sys, msgspec; print(*sys.version_info[:2], sep='.')"
    try:
        asked = subprocess.run([python, "-c", probe], capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    version = asked.stdout.decode().strip()
    return version if version and tuple(map(int, version.split("."))) >= (3, 11) else ""


def test_other_versions_of_python_give_the_same_world() -> None:
    """Those at hand. Where none is, the committed digest stands in for them."""
    own = "{}.{}".format(*sys.version_info)
    versions = {version: python for python in _others() if (version := _version(python))}
    versions.pop(own, None)
    if not versions:
        pytest.skip("no other Python with what is needed; name some in STEERSMAN_PYTHONS")
    assert {version: elsewhere(python) == here() for version, python in versions.items()} == dict.fromkeys(
        versions, True
    )


def test_what_happens_is_what_happened_when_it_was_last_written_down() -> None:
    journal, rounds = trace.told()
    _, _, kept = trace.GOLDEN.read_text().partition("\n")
    assert trace.outline(journal, rounds).splitlines() == kept.splitlines(), (
        "a world goes another way" + RENEW
    )


def test_it_happens_to_the_byte_whichever_the_python() -> None:
    kept = trace.GOLDEN.read_text().partition("\n")[0]
    assert f"# sha256 {trace.digest(*trace.told())}" == kept, "what is written is not the same" + RENEW
