"""The command line: ``steersman VERB``, and the same program under kube-controller-manager's name."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

HEAD = """\
steersman: the control loops of Kubernetes, to run, import, question and fast-forward.

Usage: steersman VERB [flags]

"""


@dataclass(frozen=True, slots=True)
class Verb:
    """One thing the program does. Its code is loaded when it is asked for."""

    name: str
    about: str
    main: Callable[[Sequence[str]], int]


def _run(argv: Sequence[str]) -> int:
    from steersman.manager import run

    return run.main(argv)


def _demo(argv: Sequence[str]) -> int:
    from steersman.manager import demo

    return demo.main(argv)


def _version(argv: Sequence[str]) -> int:
    from steersman.manager.version import VERSION

    print(VERSION)
    return 0


VERBS = (
    Verb("run", "manage a cluster: a drop-in for kube-controller-manager", _run),
    Verb("demo", "see a Deployment created, scaled and rolled, in virtual time, with no cluster", _demo),
    Verb("version", "show the version", _version),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of ``steersman``."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in ("-h", "--help", "help"):
        print(HEAD + "\n".join(f"  {verb.name:<10} {verb.about}" for verb in VERBS))
        print("\nSteersman VERB --help says more about one.")
        return 0
    for verb in VERBS:
        if verb.name == words[0].removeprefix("--"):
            return verb.main(words[1:])
    names = ", ".join(verb.name for verb in VERBS)
    print(f"steersman: {words[0]!r} is not something it does; there are: {names}", file=sys.stderr)
    return 1


def kube_controller_manager() -> int:
    """Entry point of ``kube-controller-manager``: the same as ``steersman run``."""
    return _run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
