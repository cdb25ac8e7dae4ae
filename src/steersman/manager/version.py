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
PLATFORM = f"{sys.platform}/{_ARCHITECTURES.get(platform.machine(), platform.machine())}"
"""As Go names it."""


def user_agent(component: str = "") -> str:
    """How a client of this process names itself, in the form Kubernetes components use."""
    program = f"kube-controller-manager/{KUBERNETES} ({PLATFORM}) steersman/{version('steersman')}"
    return f"{program}/{component}" if component else program


def main(argv: Sequence[str]) -> int:
    """``steersman version``."""
    print(VERSION)
    return 0
