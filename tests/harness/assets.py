"""Where Kubernetes' binaries are, and where what they write goes.

``KUBEBUILDER_ASSETS`` names the directory, as for envtest.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeAlias

ASSETS = "KUBEBUILDER_ASSETS"

Binary: TypeAlias = Literal["steersman", "kube-controller-manager"]
"""A manager that can be started."""

_PREFIX = "steersman-plane-"
_ROOMY = 2 << 30


class MissingAssets(RuntimeError):
    """The binaries of a control plane are not where the environment says, or it does not say."""


def assets(*needed: str) -> Path:
    """The directory of Kubernetes' binaries. Raises `MissingAssets` when one is not there."""
    said = os.environ.get(ASSETS, "")
    if not said:
        raise MissingAssets(f"set {ASSETS} to a directory with etcd and kube-apiserver")
    missing = [name for name in needed if not os.access(Path(said, name), os.X_OK)]
    if missing:
        raise MissingAssets(f"{ASSETS}={said} has no {', '.join(missing)}")
    return Path(said).absolute()


def manager_command(binary: Binary, kubeconfig: Path, argv: Sequence[str]) -> list[str]:
    """How a manager is started: it serves nothing where no port is given."""
    flags = [f"--kubeconfig={kubeconfig}", *argv]
    if not any(flag.startswith("--secure-port") for flag in argv):
        flags.append("--secure-port=0")
    if binary == "steersman":
        return [sys.executable, "-m", "steersman.manager.cli", "run", *flags]
    return [str(assets(binary) / binary), *flags]


def home() -> Path:
    """A fresh directory, in memory where there is room: etcd's data need not outlive us."""
    memory = Path("/dev/shm")
    root = memory if os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > _ROOMY else None
    root = root or Path(tempfile.gettempdir())
    # A plane whose process was killed outright could not clear up; the next one does.
    for left in sorted(root.glob(f"{_PREFIX}*")):
        pid = left.name.removeprefix(_PREFIX).partition("-")[0]
        if pid.isdecimal() and left.stat().st_uid == os.getuid() and not Path("/proc", pid).exists():
            shutil.rmtree(left, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=root))
