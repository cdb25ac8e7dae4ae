"""A process of its own that decodes large YAML documents.

Reading YAML takes some ten times as long as reading JSON, and holds the interpreter's lock all that time: a thread
would keep the event loop waiting. The process starts with the first large document, decodes one after the other, and is
ended when it has had nothing to do for a while.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from typing import Any, BinaryIO

import msgspec

from steersman.api import go_yaml
from steersman.api.go_yaml import MalformedDocument

Decoded = tuple[Any, tuple[str, ...]]
"""A document, and its duplicate keys."""


class ProcessEnded(Exception):
    """The process ended before it answered, twice in a row."""


class YamlProcess:
    """The process, seen by the program that needs it. Its methods block: call them in one thread."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child is not None else None

    def decode(self, raw: bytes) -> Decoded:
        """Decodes a document as `go_yaml.decode` does. Raises `MalformedDocument` or `ProcessEnded`."""
        # One that was ended from outside, for want of memory for example, is replaced once.
        for _ in range(2):
            child = self._running()
            assert child.stdin is not None
            assert child.stdout is not None
            try:
                _send(child.stdin, raw)
                answer = _receive(child.stdout)
            except OSError:
                answer = None
            if answer is not None:
                return _outcome(answer)
            self.end()
        raise ProcessEnded("the process that decodes YAML ended before it answered")

    def end(self) -> None:
        """Ends the process if there is one; the next document starts another."""
        child, self._child = self._child, None
        if child is None:
            return
        # It ends by itself once its input does, but may be in the middle of a document.
        child.kill()
        child.communicate()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._child is None:
            # The same modules as in this process, wherever they come from: a zip file, an editable installation.
            start = f"import sys; sys.path[:] = sys.argv[1:]; from {__name__} import serve; serve()"
            self._child = subprocess.Popen(
                [sys.executable, "-c", start, *sys.path],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is for this process, which ends the other one
            )
        return self._child


def serve() -> None:
    """The main loop of the process: answers each document on its standard input, until that ends."""
    # Those who wait for small requests go first.
    os.nice(5)
    while (raw := _receive(sys.stdin.buffer)) is not None:
        _send(sys.stdout.buffer, _answer(raw))


# -- messages: eight bytes of length, then as many bytes ---------------------------------------

_LENGTH = struct.Struct(">Q")


def _send(pipe: Any, message: bytes) -> None:
    pipe.write(_LENGTH.pack(len(message)))
    pipe.write(message)
    pipe.flush()


def _receive(pipe: BinaryIO | Any) -> bytes | None:
    """The next message; ``None`` where the other side has ended."""
    head = pipe.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    message: bytes = pipe.read(length)
    return message if len(message) == length else None


class _Answer(msgspec.Struct, array_like=True):
    document: Any = None
    duplicate_keys: tuple[str, ...] = ()
    error: str = ""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Answer).decode


def _answer(raw: bytes) -> bytes:
    try:
        return _encode(_Answer(*go_yaml.decode(raw)))
    except MalformedDocument as error:
        return _encode(_Answer(error=str(error)))


def _outcome(answer: bytes) -> Decoded:
    found = _decode(answer)
    if found.error:
        raise MalformedDocument(found.error)
    return found.document, found.duplicate_keys
