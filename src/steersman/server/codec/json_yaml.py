"""Decoding of JSON and YAML bodies by upstream's rules and with upstream's errors.

`steersman.api.go_yaml` has the rules of YAML. Reading it takes some ten times as long as reading JSON. `predecode_yaml`
has it done in another process for bodies that would hold up the event loop.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import math
import re
from functools import cache
from typing import Any

import msgspec

from steersman.api import go_yaml
from steersman.api.go_yaml import MAX_DEPTH_EXCEEDED, MalformedDocument
from steersman.api.nesting import MAX_DEPTH, depth_of
from steersman.server.codec.yaml_process import ProcessEnded, YamlProcess

MAX_WAITING_YAML = 8 * 1024 * 1024
"""Bytes of YAML that may wait for the process that decodes it."""


class NumberOutOfRange(MalformedDocument):
    """Valid JSON with a number that does not fit 64 bits, neither as an integer nor as a float."""


# -- JSON -------------------------------------------------------------------------------------


def decode_json(raw: bytes) -> Any:
    """Decodes a JSON document. Raises `MalformedDocument`."""
    return decode_valid_json(raw)[0]


def decode_valid_json(raw: bytes) -> tuple[Any, bytes]:
    """A JSON document, and its text with only valid characters, for those who decode it again.

    Raises `MalformedDocument`.
    """
    try:
        document = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        _check_json(raw)
        # Only the encoding of characters is invalid: decode it with replacement characters, as Go does.
        replaced = _replace_lone_surrogates(raw.decode("utf-8", "replace").encode())
        if replaced == raw:
            raise MalformedDocument(str(error)) from None
        return decode_valid_json(replaced)
    except RecursionError:
        raise MalformedDocument(f"invalid character '{{' {MAX_DEPTH_EXCEEDED}") from None
    # Every level has a bracket, so few documents have to be measured.
    if raw.count(b"{") + raw.count(b"[") > MAX_DEPTH and depth_of(document) > MAX_DEPTH:
        raise MalformedDocument(f"invalid character '{{' {MAX_DEPTH_EXCEEDED}")
    if _has_long_number(raw):
        _check_json(raw)
    return document, raw


_FLOAT64_DIGITS = 309
"""The digits of the largest float64. Python's integers have no limit, but those that are longer fit nothing in Go."""
_LONG_NUMBER = re.compile(rb"[0-9]{%d}" % _FLOAT64_DIGITS)


def _has_long_number(raw: bytes) -> bool:
    """Whether a document has as many digits in a row, be it in a number or in a string."""
    step = _FLOAT64_DIGITS
    # A run of that length has a digit at one of these positions, so that most bytes need not be looked at.
    return any(
        48 <= raw[i] <= 57 and _LONG_NUMBER.search(raw, i - step + 1, i + step)
        for i in range(step - 1, len(raw), step)
    )


_GO_CONTEXTS = {
    "Expecting property name enclosed in double quotes": "looking for beginning of object key string",
    "Expecting ':' delimiter": "after object key",
    "Expecting ',' delimiter": "after object key:value pair",
    "Extra data": "after top-level value",
    "Invalid control character at": "in string literal",
    "Invalid \\escape": "in string escape code",
}


def _check_json(raw: bytes) -> None:
    """Raises `MalformedDocument` with Go's error; returns where at most the UTF-8 of the document is invalid."""
    text = raw.decode("utf-8", "replace")
    out_of_range: list[str] = []

    def number(literal: str) -> float:
        # Python refuses to convert more than 4,300 digits to an integer, but not to a float.
        value = float(literal)
        if math.isinf(value):
            out_of_range.append(literal)
        return value

    def constant(literal: str) -> None:
        # NaN and Infinity, which only Python knows.
        context = "in numeric literal" if literal[0] == "-" else "looking for beginning of value"
        raise MalformedDocument(f"invalid character '{literal.lstrip('-')[0]}' {context}")

    try:
        json.loads(text, parse_int=number, parse_float=number, parse_constant=constant)
    except json.JSONDecodeError as error:
        position = error.pos
        if position >= len(text) or error.msg.startswith("Unterminated string"):
            raise MalformedDocument("unexpected end of JSON input") from None
        context = _GO_CONTEXTS.get(error.msg, "looking for beginning of value")
        raise MalformedDocument(f"invalid character {_quote_char(text[position])} {context}") from None
    except RecursionError:
        raise MalformedDocument(f"invalid character '{{' {MAX_DEPTH_EXCEEDED}") from None
    if out_of_range:
        raise NumberOutOfRange(
            f"json: cannot unmarshal number {_shortened(out_of_range[0])} into Go value of type float64"
        )


def _shortened(literal: str) -> str:
    # differs: upstream repeats all digits.
    return literal if len(literal) <= 64 else f"{literal[:64]}..."


_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
"""An escape in a JSON string; with a group where it is half of a surrogate pair without the other half."""


def _replace_lone_surrogates(raw: bytes) -> bytes:
    """JSON with a replacement character for each escape that stands for no character, as Go decodes it."""
    return _ESCAPE.sub(lambda found: rb"\ufffd" if found[1] else found[0], raw)


def _quote_char(char: str) -> str:
    """A character in quotes, as Go shows it."""
    if char < " " or char == "\x7f":
        return "'" + (_ESCAPES.get(char) or f"\\x{ord(char):02x}") + "'"
    return {"'": "'\\''", '"': "'\"'"}.get(char, f"'{char}'")


_ESCAPES = {"\a": "\\a", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\v": "\\v", "\f": "\\f", "\r": "\\r"}


_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*"')


def count_written_keys(raw: bytes) -> int:
    """The number of keys in the text of a JSON document, duplicates included."""
    # Every colon outside of strings follows a key.
    return _STRINGS.sub(b"", raw).count(b":")


def _count_keys(document: Any) -> int:
    if isinstance(document, dict):
        return len(document) + sum(map(_count_keys, document.values()))
    return sum(map(_count_keys, document)) if isinstance(document, list) else 0


# -- YAML -------------------------------------------------------------------------------------


class PredecodedYaml(bytes):
    """A YAML body that was decoded ahead of its use: `decode_yaml` returns that document, or raises that error."""

    outcome: tuple[Any, tuple[str, ...]] | MalformedDocument


_SLOW_YAML_BYTES = 16 * 1024
"""The size from which YAML takes more than a few milliseconds to decode."""
_SLOW_FLOW_BYTES = 32 * 1024
"""The same for bodies that begin with a brace, most of which are JSON."""


def is_slow_yaml(raw: bytes) -> bool:
    """Whether decoding may take long: a large body, or a small one that aliases may multiply."""
    limit = _SLOW_FLOW_BYTES if raw[:1] == b"{" else _SLOW_YAML_BYTES
    return len(raw) > limit or (b"&" in raw and b"*" in raw)


class TooMuchYaml(Exception):
    """More YAML waits to be decoded than is kept in memory, or it could not be decoded just now."""


class _SlowYaml:
    """Bodies that wait for the process that decodes them, and the thread that talks to it."""

    def __init__(self) -> None:
        from concurrent.futures import ThreadPoolExecutor

        self._thread = ThreadPoolExecutor(1, thread_name_prefix="yaml")
        self._process = YamlProcess()
        atexit.register(self._process.end)
        self._waiting = 0
        self._idle: asyncio.TimerHandle | None = None

    async def decode(self, raw: bytes) -> tuple[Any, tuple[str, ...]] | MalformedDocument:
        if self._waiting and self._waiting + len(raw) > MAX_WAITING_YAML:
            raise TooMuchYaml
        loop = asyncio.get_running_loop()
        if self._idle is not None:
            self._idle.cancel()
        self._waiting += len(raw)
        try:
            return await loop.run_in_executor(self._thread, self._outcome, raw)
        except ProcessEnded:
            raise TooMuchYaml from None
        finally:
            self._waiting -= len(raw)
            if not self._waiting:
                self._idle = loop.call_later(_IDLE_SECONDS, self._thread.submit, self._process.end)

    def _outcome(self, raw: bytes) -> tuple[Any, tuple[str, ...]] | MalformedDocument:
        try:
            return _decode_flow(raw) or self._process.decode(raw)
        except MalformedDocument as error:
            return error


_IDLE_SECONDS = 10.0
"""How long the process that decodes YAML is kept without work."""

_slow_yaml = cache(_SlowYaml)


async def predecode_yaml(raw: bytes) -> bytes:
    """Decodes a YAML body in another process if that takes long, for `decode_yaml`. Needs a loop in real time.

    Raises `TooMuchYaml` where too much waits for that process.
    """
    if not is_slow_yaml(raw):
        return raw
    body = PredecodedYaml(raw)
    body.outcome = await _slow_yaml().decode(raw)
    return body


def decode_yaml(raw: bytes) -> tuple[Any, tuple[str, ...]]:
    """Decodes a YAML document; returns it with its duplicate keys. Raises `MalformedDocument`."""
    if isinstance(raw, PredecodedYaml):
        if isinstance(raw.outcome, MalformedDocument):
            raise raw.outcome
        return raw.outcome
    return _decode_flow(raw) or go_yaml.decode(raw)


def _decode_flow(raw: bytes) -> tuple[Any, tuple[str, ...]] | None:
    """The document in a YAML body that is JSON, as most are, which decodes many times faster."""
    if raw[:1] != b"{":
        return None
    try:
        document = decode_json(raw)
    except MalformedDocument:
        return None
    return (document, ()) if _count_keys(document) == count_written_keys(raw) else None
