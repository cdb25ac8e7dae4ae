"""The command line: ``steersman VERB``, and the same program under kube-controller-manager's name."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import cast

from steersman.manager import event_loop

HEAD = """\
steersman: the control loops of Kubernetes, to run, import, question and fast-forward.

Usage: steersman VERB [flags]
"""
TAIL = "`steersman VERB --help` says more about each."


@dataclass(frozen=True, slots=True)
class Verb:
    """One thing the program does: the ``main`` of a module, loaded when it is asked for."""

    name: str
    about: str

    def __call__(self, argv: Sequence[str], *, alone: bool = False) -> int:
        """Do it; ``alone`` in a process of its own."""
        if alone and self.name in ("run", "up"):
            event_loop.load()
        return cast("int", import_module(f"steersman.manager.{self.name}").main(argv))


RUN = Verb("run", "manage a cluster: a drop-in for kube-controller-manager")
VERBS = (
    RUN,
    Verb("up", "a control plane on this machine, for kubectl and every client"),
    Verb("node", "let simulated nodes fail, recover and reboot; drain and list nodes"),
    Verb("demo", "watch a Deployment live through ten minutes, in a blink, with no cluster"),
    Verb("explore", "live through scenarios with everything that may go wrong"),
    Verb("snapshot", "save the data directory of an embedded server to a file, and restore it"),
    Verb("version", "show the version"),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of ``steersman``."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in ("-h", "--help", "help"):
        print(HEAD, *(f"  {verb.name:<10} {verb.about}" for verb in VERBS), "", TAIL, sep="\n")
        return 0
    for verb in VERBS:
        if verb.name == words[0].removeprefix("--"):
            return verb(words[1:], alone=argv is None)
    names = ", ".join(verb.name for verb in VERBS)
    print(f"Error: {words[0]!r} is not something steersman does; there are: {names}", file=sys.stderr)
    return 1


def kube_controller_manager() -> int:
    """Entry point of ``kube-controller-manager``: the same as ``steersman run``."""
    return RUN(sys.argv[1:], alone=True)


if __name__ == "__main__":
    sys.exit(main())
