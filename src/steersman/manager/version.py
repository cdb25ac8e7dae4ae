"""Which version this is, and which Kubernetes it speaks."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from importlib.metadata import version

KUBERNETES = "v1.36.4"
"""The release whose controllers these are."""

VERSION = f"steersman {version('steersman')} (Kubernetes {KUBERNETES})"

AS_KUBERNETES = f"Kubernetes {KUBERNETES} (steersman {version('steersman')})"
"""The same for whoever asks kube-controller-manager: it begins as that one's answer."""

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
PLATFORM = f"{sys.platform}/{_ARCHITECTURES.get(platform.machine(), platform.machine())}"
"""As Go names it."""


def user_agent(component: str = "") -> str:
    """How a client of this process names itself, in the form Kubernetes components use."""
    program = f"kube-controller-manager/{KUBERNETES} ({PLATFORM}) steersman/{version('steersman')}"
    return f"{program}/{component}" if component else program


def raw() -> str:
    """What ``--version=raw`` prints, in the form it has for Go's programs."""
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
    """``steersman version``."""
    print(VERSION)
    return 0
