"""Decoding of JSON and YAML bodies by upstream's rules and with upstream's errors.

YAML follows the library upstream uses: version 1.1 (``yes`` is true) without dates and base-60 numbers, keys of
any scalar type, merge keys, and a limit for aliases. Of several documents the first is decoded.

Reading YAML takes some ten times as long as reading JSON. `predecode_yaml` does it in a thread for bodies that would
hold up the event loop.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, NamedTuple

import msgspec
import yaml

MAX_DEPTH = 128
"""The number of levels a document may be nested.

differs: upstream's limit is 10,000 levels; no object needs more than a few dozen.
"""

MAX_YAML_NODES = 250_000
"""The number of nodes a YAML document may have, with all aliases expanded.

differs: upstream has no limit but the size of the body; the largest definitions have some 30,000 nodes.
"""

_MAX_DEPTH_EXCEEDED = "exceeded max depth"


class MalformedDocument(ValueError):
    """A body that is not valid JSON or YAML, or is nested too deeply."""


class NumberOutOfRange(MalformedDocument):
    """Valid JSON with a number that does not fit 64 bits, neither as an integer nor as a float."""


# -- JSON -------------------------------------------------------------------------------------


def decode_json(raw: bytes) -> Any:
    """Decodes a JSON document. Raises `MalformedDocument`."""
    try:
        document = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        _check_json(raw)
        # Only the encoding is invalid: decode it with replacement characters, as Go does.
        replaced = replace_invalid_utf8(raw)
        if replaced == raw:
            raise MalformedDocument(str(error)) from None
        return decode_json(replaced)
    except RecursionError:
        raise MalformedDocument(f"invalid character '{{' {_MAX_DEPTH_EXCEEDED}") from None
    # Every level has a bracket, so few documents have to be measured.
    if raw.count(b"{") + raw.count(b"[") > MAX_DEPTH and _depth(document) > MAX_DEPTH:
        raise MalformedDocument(f"invalid character '{{' {_MAX_DEPTH_EXCEEDED}")
    if _has_long_number(raw):
        _check_json(raw)
    return document


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
        raise MalformedDocument(f"invalid character '{{' {_MAX_DEPTH_EXCEEDED}") from None
    if out_of_range:
        raise NumberOutOfRange(
            f"json: cannot unmarshal number {_shortened(out_of_range[0])} into Go value of type float64"
        )


def _shortened(literal: str) -> str:
    # differs: upstream repeats all digits.
    return literal if len(literal) <= 64 else f"{literal[:64]}..."


def replace_invalid_utf8(raw: bytes) -> bytes:
    """UTF-8 with a replacement character for each invalid sequence, as Go decodes it."""
    return raw.decode("utf-8", "replace").encode()


def _quote_char(char: str) -> str:
    return {"'": "'\\''", '"': "'\"'", "\n": "'\\n'", "\t": "'\\t'"}.get(char, f"'{char}'")


_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*"')


def count_written_keys(raw: bytes) -> int:
    """The number of keys in the text of a JSON document, duplicates included."""
    # Every colon outside of strings follows a key.
    return _STRINGS.sub(b"", raw).count(b":")


def _count_keys(document: Any) -> int:
    if isinstance(document, dict):
        return len(document) + sum(map(_count_keys, document.values()))
    return sum(map(_count_keys, document)) if isinstance(document, list) else 0


def _depth(document: Any) -> int:
    """The number of levels of a document, measured without recursion, which the limit protects."""
    depth, level = 0, [document]
    while level:
        level = [
            inner
            for value in level
            for inner in (value.values() if isinstance(value, dict) else value)
            if isinstance(inner, (dict, list))
        ]
        depth += 1
    return depth if isinstance(document, (dict, list)) else 0


# -- YAML -------------------------------------------------------------------------------------


_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The loader whose parser is used; libyaml's where there is one."""


class PredecodedYaml(bytes):
    """A YAML body that was decoded ahead of its use: `decode_yaml` returns that document, or raises that error."""

    outcome: tuple[Any, tuple[str, ...]] | MalformedDocument


_SLOW_YAML_BYTES = 4 * 1024
"""The size from which YAML takes more than a few milliseconds to decode."""
_SLOW_FLOW_BYTES = 32 * 1024
"""The same for bodies that begin with a brace, most of which are JSON."""


def is_slow_yaml(raw: bytes) -> bool:
    """Whether decoding may take long: a large body, or a small one that aliases may multiply."""
    limit = _SLOW_FLOW_BYTES if raw[:1] == b"{" else _SLOW_YAML_BYTES
    return len(raw) > limit or (b"&" in raw and b"*" in raw)


async def predecode_yaml(raw: bytes) -> bytes:
    """Decodes a YAML body in a thread if that takes long, for `decode_yaml`. Needs a loop in real time."""
    if not is_slow_yaml(raw):
        return raw
    body = PredecodedYaml(raw)
    loop = asyncio.get_running_loop()
    body.outcome = await loop.run_in_executor(_yaml_executor(), _yaml_outcome, raw)
    return body


@cache
def _yaml_executor() -> ThreadPoolExecutor:
    """One thread for all large bodies: more would only take the interpreter's lock away from the event loop."""
    return ThreadPoolExecutor(1, thread_name_prefix="yaml")


def _yaml_outcome(raw: bytes) -> tuple[Any, tuple[str, ...]] | MalformedDocument:
    try:
        return decode_yaml(raw)
    except MalformedDocument as error:
        return error


def decode_yaml(raw: bytes) -> tuple[Any, tuple[str, ...]]:
    """Decodes a YAML document; returns it with its duplicate keys. Raises `MalformedDocument`."""
    if isinstance(raw, PredecodedYaml):
        if isinstance(raw.outcome, MalformedDocument):
            raise raw.outcome
        return raw.outcome
    if raw[:1] == b"{":
        # Most YAML bodies are JSON, which decodes many times faster.
        try:
            document = decode_json(raw)
        except MalformedDocument:
            document = None
        if document is not None and _count_keys(document) == count_written_keys(raw):
            return document, ()
    loader = None
    try:
        loader = _Loader(raw)
        node = _compose(loader)
    except yaml.reader.ReaderError as error:
        raise MalformedDocument(f"yaml: {error.reason}") from None
    except yaml.MarkedYAMLError as error:
        raise MalformedDocument(_go_yaml_error(error)) from None
    finally:
        if loader is not None:
            loader.dispose()
    if node is None:
        return None, ()
    constructor = _Constructor()
    return constructor.value(node), tuple(constructor.duplicate_keys)


class _Node:
    """A node of a document. An alias is a node that occurs again."""

    __slots__ = ("anchor", "line", "tag", "value")

    def __init__(self, value: str | _Sequence | _Mapping, tag: str, line: int, anchor: str | None) -> None:
        self.value = value
        self.tag = tag
        self.line = line
        self.anchor = anchor


class _Sequence(NamedTuple):
    items: list[_Node]


class _Mapping(NamedTuple):
    parts: list[_Node]
    """Keys and values in turn."""

    def pairs(self) -> Iterator[tuple[_Node, _Node]]:
        parts = iter(self.parts)
        return zip(parts, parts, strict=True)


def _compose(loader: Any) -> _Node | None:
    """Composes the first document from the parser's events, within the limits for depth and nodes.

    Unlike PyYAML's composer it does not recurse, so the depth need not be checked by parsing twice.
    """
    anchors: dict[str, _Node] = {}
    root: list[_Node] = []
    open_: list[list[_Node]] = [root]
    count = 0
    while True:
        event = loader.get_event()
        kind = type(event)
        if kind is yaml.ScalarEvent:
            node = _Node(event.value, _scalar_tag(event), event.start_mark.line, event.anchor)
            open_[-1].append(node)
        elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
            children: list[_Node] = []
            is_mapping = kind is yaml.MappingStartEvent
            value: _Mapping | _Sequence = _Mapping(children) if is_mapping else _Sequence(children)
            node = _Node(value, "", event.start_mark.line, event.anchor)
            open_[-1].append(node)
            open_.append(children)
            if len(open_) - 1 > MAX_DEPTH:
                raise _too_deep()
        elif kind is yaml.AliasEvent:
            if event.anchor not in anchors:
                raise MalformedDocument(f"yaml: unknown anchor '{event.anchor}' referenced")
            node = anchors[event.anchor]
            open_[-1].append(node)
        elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
            open_.pop()
            continue
        elif kind is yaml.DocumentEndEvent or kind is yaml.StreamEndEvent:
            return root[0] if root else None
        else:
            continue
        count += 1
        if count > MAX_YAML_NODES:
            raise _too_many_nodes()
        if node.anchor is not None:
            anchors[node.anchor] = node


def _scalar_tag(event: yaml.ScalarEvent) -> str:
    tag: str | None = event.tag
    if tag is not None and tag != "!":
        return tag
    return _PLAIN if event.implicit[0] else f"{_TAG}str"


def _too_many_nodes() -> MalformedDocument:
    return MalformedDocument(f"yaml: exceeded max nodes of {MAX_YAML_NODES}")


def _too_deep() -> MalformedDocument:
    return MalformedDocument(f"yaml: {_MAX_DEPTH_EXCEEDED} of {MAX_DEPTH}")


def _go_yaml_error(error: yaml.MarkedYAMLError) -> str:
    line = 0
    if error.problem_mark is not None and error.problem_mark.line:
        line = error.problem_mark.line + isinstance(error, yaml.scanner.ScannerError)
    elif error.context_mark is not None:
        line = error.context_mark.line
    message = error.problem or "could not be read"
    return f"yaml: line {line}: {message}" if line else f"yaml: {message}"


_CONSTANTS: dict[str, Any] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_INTEGER = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[oO]?[0-7]+|0[bB][01]+|[1-9][0-9]*|0)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_UINT64_DIGITS = 20
_TAG = "tag:yaml.org,2002:"
_PLAIN = "plain"
"""The tag of scalars without quotes and without a tag: their text decides about their type."""


def _resolve_scalar(text: str) -> Any:
    """The value of a plain scalar, by the rules of Go's YAML library."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] not in "+-.0123456789":
        return text
    digits = text.replace("_", "")
    if _INTEGER.fullmatch(digits):
        sign, body = (-1 if digits[0] == "-" else 1), digits.lstrip("+-").lower()
        octal = len(body) > 1 and body[0] == "0" and body[1].isdigit()
        # Python refuses to convert more than 4,300 decimal digits. Other bases have no such limit.
        if body[0] == "0" or len(body) <= _UINT64_DIGITS:
            number = sign * int(body, 8 if octal else 0)
            if -(2**63) <= number < 2**64:
                return number
    if _FLOAT.fullmatch(digits):
        value = float(digits)
        # A number that is out of range stays a text, as Go's library has it.
        return text if math.isinf(value) else value
    return text


class _Constructor:
    """Constructs a document from a tree of nodes, in which an alias is a node that occurs again."""

    def __init__(self) -> None:
        self.duplicate_keys: list[str] = []
        self._visited: set[int] = set()
        self._ancestors: set[int] = set()
        self._node_count = self._aliased_count = 0
        self._alias_depth = 0
        """The number of aliases on the way to the current node."""

    def value(self, node: _Node) -> Any:
        value = node.value
        identity = id(node)
        alias = identity in self._visited
        self._visited.add(identity)
        self._alias_depth += alias
        self._count()
        if isinstance(value, str):
            self._alias_depth -= alias
            return self._scalar(node.tag, value)
        self._enter(node)
        try:
            if isinstance(value, _Sequence):
                return [self.value(item) for item in value.items]
            return self._mapping(value, {})
        finally:
            self._ancestors.discard(identity)
            self._alias_depth -= alias

    def _enter(self, node: _Node) -> None:
        """Refuses a collection that contains itself, or is nested too deeply through aliases."""
        if id(node) in self._ancestors:
            raise MalformedDocument(f"yaml: anchor '{node.anchor or ''}' value contains itself")
        self._ancestors.add(id(node))
        if len(self._ancestors) > MAX_DEPTH:
            raise _too_deep()

    def _count(self) -> None:
        """Counts a node; refuses documents whose aliases expand to excessive size."""
        self._node_count += 1
        self._aliased_count += self._alias_depth > 0
        if (
            self._aliased_count > 100
            and self._node_count > 1000
            and self._aliased_count / self._node_count > _max_alias_ratio(self._node_count)
        ):
            raise MalformedDocument("yaml: document contains excessive aliasing")
        if self._node_count > MAX_YAML_NODES:
            raise _too_many_nodes()

    def _scalar(self, tag: str, text: str) -> Any:
        if tag in (f"{_TAG}str", f"{_TAG}binary"):
            return text
        if tag != _PLAIN and not tag.startswith(_TAG):
            return text
        value = _resolve_scalar(text)
        if isinstance(value, float) and not math.isfinite(value):
            shown = "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
            raise MalformedDocument(f"json: unsupported value: {shown}")
        return float(value) if tag == f"{_TAG}float" and type(value) is int else value

    def _mapping(self, node: _Mapping, mapping: dict[str, Any]) -> dict[str, Any]:
        for key, part in node.pairs():
            if key.tag == _PLAIN and key.value == "<<":
                self._merge(part, mapping)
                continue
            key_value = self.value(key)
            if isinstance(key_value, (dict, list)):
                raise MalformedDocument("yaml: invalid map key")
            value = self.value(part)
            name = _key_text(key_value)
            if name in mapping:
                shown = json.dumps(key_value, ensure_ascii=False)
                self.duplicate_keys.append(f"line {part.line + 1}: key {shown} already set in map")
            mapping[name] = value
        return mapping

    def _merge(self, node: _Node, mapping: dict[str, Any]) -> None:
        # The last ones are merged first, so that the first ones win.
        parts = reversed(node.value.items) if isinstance(node.value, _Sequence) else (node,)
        for part in parts:
            if not isinstance(part.value, _Mapping):
                raise MalformedDocument("yaml: map merge requires map or sequence of maps as the value")
            self._alias_depth += 1
            self._count()
            self._enter(part)
            self._mapping(part.value, mapping)
            self._ancestors.discard(id(part))
            self._alias_depth -= 1


def _max_alias_ratio(nodes: int) -> float:
    """The share of nodes that may come from aliases: 0.99 of a small document, 0.1 of a large one."""
    small, large = 400_000, 4_000_000
    return 0.99 - 0.89 * (min(max(nodes, small), large) - small) / (large - small)


def _key_text(key: Any) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, bool):
        return "true" if key else "false"
    if key is None:
        raise MalformedDocument("unsupported map key of type: %!s(<nil>), key: <nil>")
    return f"{key:g}" if isinstance(key, float) else str(key)
