"""Versions: of this program, and of the Kubernetes release it implements. Also the verb ``version``."""

from __future__ import annotations

import platform
import sys
from typing import TYPE_CHECKING

from steersman import __version__

if TYPE_CHECKING:
    from steersman.manager.verb import Given

KUBERNETES = "v1.36.4"
"""The Kubernetes release whose controllers these are."""

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
PLATFORM = f"{sys.platform}/{_ARCHITECTURES.get(platform.machine(), platform.machine())}"
"""Platform in Go's notation, such as ``linux/amd64``."""


def full() -> str:
    """The output of ``steersman version``."""
    return f"steersman {__version__} (Kubernetes {KUBERNETES})"


def as_kubernetes() -> str:
    """The output of ``kube-controller-manager --version``: begins like upstream's."""
    return f"Kubernetes {KUBERNETES} (steersman {__version__})"


def user_agent(component: str = "") -> str:
    """The User-Agent header of a client, in the form Kubernetes components use."""
    program = f"kube-controller-manager/{KUBERNETES} ({PLATFORM}) steersman/{__version__}"
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


def main(given: Given) -> int:
    """Entry point of ``steersman version``."""
    print(full())
    return 0
