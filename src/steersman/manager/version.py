"""Which version this is, and which Kubernetes it speaks."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from importlib.metadata import version

KUBERNETES = "v1.36.4"
"""The release whose controllers these are."""

VERSION = f"steersman {version('steersman')} (Kubernetes {KUBERNETES})"


_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def user_agent(component: str) -> str:
    """How a client of this process names itself, in the form Kubernetes components use."""
    machine = platform.machine()
    system = f"{sys.platform}/{_ARCHITECTURES.get(machine, machine)}"
    return f"kube-controller-manager/{KUBERNETES} ({system}) steersman/{version('steersman')}/{component}"


def main(argv: Sequence[str]) -> int:
    """``steersman version``."""
    print(VERSION)
    return 0
