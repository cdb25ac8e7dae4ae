"""Versions: of this program, and of the Kubernetes release it implements. Also the verb ``version``."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from importlib.metadata import version

KUBERNETES = "v1.36.4"
"""The Kubernetes release whose controllers these are."""

VERSION = f"steersman {version('steersman')} (Kubernetes {KUBERNETES})"

AS_KUBERNETES = f"Kubernetes {KUBERNETES} (steersman {version('steersman')})"
"""The output of ``kube-controller-manager --version``: begins like upstream's."""

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
PLATFORM = f"{sys.platform}/{_ARCHITECTURES.get(platform.machine(), platform.machine())}"
"""Platform in Go's notation, such as ``linux/amd64``."""


def user_agent(component: str = "") -> str:
    """The User-Agent header of a client, in the form Kubernetes components use."""
    program = f"kube-controller-manager/{KUBERNETES} ({PLATFORM}) steersman/{version('steersman')}"
    return f"{program}/{component}" if component else program


def raw() -> str:
    """The output of ``--version=raw``, in the form of Go programs."""
    major, minor, _ = KUBERNETES.removeprefix("v").split(".")
    fields = {
        "Major": major,
        "Minor": minor,
        "GitVersion": KUBERNETES,
        "Compiler": f"{platform.python_implementation()} {platform.python_version()}",
        "Platform": PLATFORM,
    }
    return "version.Info{" + ", ".join(f'{name}:"{value}"' for name, value in fields.items()) + "}"


def main(argv: Sequence[str]) -> int:
    """Entry point of ``steersman version``."""
    print(VERSION)
    return 0
