"""The command line ``steersman VERB``, which is also installed as ``kube-controller-manager``."""

from __future__ import annotations

import errno
import os
import select
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TextIO

from steersman.manager.flags import UsageError
from steersman.manager.verb import Verb, columns, find, help_text
from steersman.manager.verbs import RUN, VERBS, WHY

HEAD = """\
steersman: the control loops of Kubernetes, to run, import, question and fast-forward.

Usage: steersman VERB [flags]

Verbs:
"""
TAIL = "Use `steersman VERB --help` for the arguments, flags and examples of a verb."
BROKEN_PIPE = 141
"""The exit code of a program whose output is not read to its end: that of SIGPIPE in a shell."""
INTERRUPTED = 130
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Errors of a write to a file that takes no more, or to a terminal that is gone."""


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of ``steersman``."""
    if argv is None:
        open_standard_streams()
    words = list(sys.argv[1:] if argv is None else argv)
    return _guarded(lambda: _call(words))


def kube_controller_manager() -> int:
    """Entry point of ``kube-controller-manager``, an alias of ``steersman run``."""
    open_standard_streams()
    return _guarded(lambda: RUN.call(sys.argv[1:]))


def kubectl_why() -> int:
    """Entry point of ``kubectl-why``, which kubectl runs for ``kubectl why``."""
    open_standard_streams()
    return _guarded(lambda: WHY.call(sys.argv[1:]))


def open_standard_streams() -> None:
    """Open standard input, output and error on the null device where they are closed, as Go programs do.

    Otherwise the first sockets get their numbers: libuv ends the process when it closes one of them, and what is printed
    goes to a client.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number is given, which is this one.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
            stream = open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115 (open until the end)
            setattr(sys, name, stream)


def _call(words: list[str]) -> int:
    words = _verb_first(words)
    name = (
        {"-h": "help", "--help": "help", "--version": "version"}.get(words[0], words[0]) if words else "help"
    )
    if name == "help":
        if words[1:]:
            return _help(words[1:])
        print(HEAD, *columns([(verb.name, verb.summary) for verb in VERBS]), "", TAIL, sep="\n")
        return 0
    return find(VERBS, name).call(words[1:])


def _verb_first(words: list[str]) -> list[str]:
    """The words with the verb before its flags: ``-o json controllers`` is ``controllers -o json``."""
    if not words or not words[0].startswith("-"):
        return words
    names = {verb.name for verb in VERBS}
    for position, word in enumerate(words):
        if word == "--":
            break
        if word in names and not _is_value(words[position - 1], find(VERBS, word)):
            return [word, *words[:position], *words[position + 1 :]]
    return words


def _is_value(before: str, verb: Verb) -> bool:
    """Whether the word after a flag is the flag's value."""
    flags = [option for one in (verb, *verb.verbs) for option in one.options if option.type.bare is None]
    return before in {word for option in flags for word in (f"--{option.name}", f"-{option.short}")}


def _help(words: list[str]) -> int:
    """The help of a verb, or of a verb of a verb: ``steersman help node drain``."""
    verb = find(VERBS, words[0])
    print(help_text(find(verb.verbs, words[1], verb.path) if verb.verbs and words[1:] else verb))
    return 0


def _guarded(work: Callable[[], int]) -> int:
    """Do the work of a verb; usage errors, an unread pipe, a full disk and Ctrl-C become exit codes."""
    try:
        code = work()
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except UsageError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        if not _is_unread(sys.stdout):
            raise
        # Python flushes the output once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except OSError as error:
        if error.errno not in FULL or not _takes_no_more(sys.stdout):
            raise
        with suppress(OSError):
            print(f"Error: cannot write the output: {error.strerror}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED


def _takes_no_more(output: TextIO) -> bool:
    """Whether an output refuses one line more."""
    try:
        output.flush()
        # Where Python does not buffer the output, there is nothing to flush.
        os.write(output.fileno(), b"\n")
    except OSError:
        return True
    return False


def _is_unread(output: TextIO) -> bool:
    """Whether an output is a pipe whose reader is gone."""
    poll = select.poll()
    try:
        poll.register(output.fileno(), 0)
    except (OSError, ValueError):
        return False
    return bool(poll.poll(0))


if __name__ == "__main__":
    sys.exit(main())
