"""The command line ``steersman VERB``, which is also installed as ``kube-controller-manager``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import cast

import msgspec

from steersman.manager import process

HEAD = """\
steersman: the control loops of Kubernetes, to run, import, question and fast-forward.

Usage: steersman VERB [flags]
"""
TAIL = "Use `steersman VERB --help` for the flags of a verb."


class Verb(msgspec.Struct, frozen=True):
    """A verb of the command line: the ``main`` of the module of that name, imported when used."""

    name: str
    help: str

    def __call__(self, argv: Sequence[str], *, own_process: bool = False) -> int:
        """Run the verb. ``own_process``: nothing else runs in this process."""
        if own_process and self.name in ("run", "up"):
            process.import_aiohttp()
        return cast("int", import_module(f"steersman.manager.{self.name}").main(argv))


RUN = Verb("run", "run the controllers against a cluster: a drop-in for kube-controller-manager")
VERBS = (
    RUN,
    Verb("up", "run a control plane on this machine, for kubectl and every other client"),
    Verb("node", "fail, recover and reboot simulated nodes; drain and list nodes"),
    Verb("controllers", "list the controllers: defaults, feature gates, flags, rights and tests"),
    Verb("demo", "run a Deployment through ten minutes of cluster time in a second, without a cluster"),
    Verb("explore", "run scenarios under injected faults and compare their end states"),
    Verb("snapshot", "save the data directory of an embedded server to a file, or restore it"),
    Verb("version", "show the version"),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of ``steersman``."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in ("-h", "--help", "help"):
        print(HEAD, *(f"  {verb.name:<11} {verb.help}" for verb in VERBS), "", TAIL, sep="\n")
        return 0
    for verb in VERBS:
        if verb.name == words[0].removeprefix("--"):
            return verb(words[1:], own_process=argv is None)
    names = ", ".join(verb.name for verb in VERBS)
    print(f"Error: unknown verb {words[0]!r}; available: {names}", file=sys.stderr)
    return 1


def kube_controller_manager() -> int:
    """Entry point of ``kube-controller-manager``, an alias of ``steersman run``."""
    return RUN(sys.argv[1:], own_process=True)


if __name__ == "__main__":
    sys.exit(main())
