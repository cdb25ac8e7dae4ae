"""JSON and YAML as the real server reads them: what comes out, and what it says of what it cannot read.

YAML is read by the rules of the library upstream uses: version 1.1 (``yes`` is true) without dates and base-60
numbers, keys of any scalar, merge keys, aliases up to a limit. Of several documents the first counts.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, ClassVar

import msgspec
import yaml

MAX_DEPTH = 128
"""How far documents may be nested.

differs: upstream takes 10,000 levels, and no object needs more than a few dozen.
"""

_MAX_DEPTH_EXCEEDED = "exceeded max depth"


class MalformedDocument(ValueError):
    """A body that is no document."""


# -- JSON -------------------------------------------------------------------------------------


def decode_json(raw: bytes) -> Any:
    """A JSON document. Raises `MalformedDocument`."""
    try:
        document = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        problem = _go_json_error(raw)
        if not problem:
            # Letters that are none are read as such.
            return decode_json(replace_invalid_utf8(raw))
        raise MalformedDocument(problem) from None
    except RecursionError:
        raise MalformedDocument(f"invalid character '{{' {_MAX_DEPTH_EXCEEDED}") from None
    # Every level has a bracket, so most documents need not be looked at.
    if raw.count(b"{") + raw.count(b"[") > MAX_DEPTH and _depth(document) > MAX_DEPTH:
        raise MalformedDocument(f"invalid character '{{' {_MAX_DEPTH_EXCEEDED}")
    return document


_GO_CONTEXTS = {
    "Expecting property name enclosed in double quotes": "looking for beginning of object key string",
    "Expecting ':' delimiter": "after object key",
    "Expecting ',' delimiter": "after object key:value pair",
    "Extra data": "after top-level value",
    "Invalid control character at": "in string literal",
    "Invalid \\escape": "in string escape code",
}


def _go_json_error(raw: bytes) -> str:
    """What is wrong with a document, as Go says it; empty where that is only how it is encoded."""
    text = raw.decode("utf-8", "replace")
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        at = error.pos
        if at >= len(text) or error.msg.startswith("Unterminated string"):
            return "unexpected end of JSON input"
        where = _GO_CONTEXTS.get(error.msg, "looking for beginning of value")
        return f"invalid character {_quote_char(text[at])} {where}"
    except RecursionError:
        return f"invalid character '{{' {_MAX_DEPTH_EXCEEDED}"
    return ""


def replace_invalid_utf8(raw: bytes) -> bytes:
    """A text in UTF-8, with a sign in place of each letter that is none, as Go has it."""
    return raw.decode("utf-8", "replace").encode()


def _quote_char(letter: str) -> str:
    return {"'": "'\\''", '"': "'\"'", "\n": "'\\n'", "\t": "'\\t'"}.get(letter, f"'{letter}'")


_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*"')


def count_written_keys(raw: bytes) -> int:
    """How many keys a JSON document was written with; more than it has, where some come twice."""
    # A colon outside of texts is a key.
    return _STRINGS.sub(b"", raw).count(b":")


def _count_keys(document: Any) -> int:
    if isinstance(document, dict):
        return len(document) + sum(map(_count_keys, document.values()))
    return sum(map(_count_keys, document)) if isinstance(document, list) else 0


def _depth(document: Any) -> int:
    """How far a document is nested. Not by recursion: that is what deep ones are kept from."""
    deepest, level = 0, [document]
    while level:
        level = [
            inner
            for value in level
            for inner in (value.values() if isinstance(value, dict) else value)
            if isinstance(inner, (dict, list))
        ]
        deepest += 1
    return deepest if isinstance(document, (dict, list)) else 0


# -- YAML -------------------------------------------------------------------------------------


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Leaves plain scalars as they are, to be resolved by Go's rules."""

    yaml_implicit_resolvers: ClassVar[dict[Any, Any]] = {None: [("plain", re.compile(""))]}


def decode_yaml(raw: bytes) -> tuple[Any, tuple[str, ...]]:
    """A YAML document, and which keys it has twice. Raises `MalformedDocument`."""
    if raw[:1] == b"{":
        # Most of what is sent as YAML is JSON, which is read many times faster.
        try:
            document = decode_json(raw)
        except MalformedDocument:
            document = None
        if document is not None and _count_keys(document) == count_written_keys(raw):
            return document, ()
    loader = None
    try:
        loader = _Loader(raw)
        # Composing recurses, so too deep a document is told by its events first.
        _check_depth(raw)
        node = loader.get_node() if loader.check_node() else None
        if node is None:
            return None, ()
        reading = _Constructor(raw)
        return reading.value(node), tuple(reading.doubled)
    except yaml.reader.ReaderError as error:
        raise MalformedDocument(f"yaml: {error.reason}") from None
    except yaml.MarkedYAMLError as error:
        raise MalformedDocument(_go_yaml_error(error, raw)) from None
    finally:
        if loader is not None:
            loader.dispose()


def _check_depth(raw: bytes) -> None:
    depth = 0
    for event in yaml.parse(raw, _Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise MalformedDocument(f"yaml: {_MAX_DEPTH_EXCEEDED} of {MAX_DEPTH}")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.DocumentEndEvent):
            break


def _go_yaml_error(error: yaml.MarkedYAMLError, raw: bytes) -> str:
    line = 0
    if error.problem_mark is not None and error.problem_mark.line:
        line = error.problem_mark.line + isinstance(error, yaml.scanner.ScannerError)
    elif error.context_mark is not None:
        line = error.context_mark.line
    problem = error.problem or "could not be read"
    if problem.startswith("found undefined alias") and error.problem_mark is not None:
        return f"yaml: unknown anchor '{_anchor_name(raw, error.problem_mark.index)}' referenced"
    return f"yaml: line {line}: {problem}" if line else f"yaml: {problem}"


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
_TAG = "tag:yaml.org,2002:"


def _resolve_scalar(text: str) -> Any:
    """What a plain scalar means."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] not in "+-.0123456789":
        return text
    digits = text.replace("_", "")
    if _INTEGER.fullmatch(digits):
        sign, body = (-1 if digits[0] == "-" else 1), digits.lstrip("+-").lower()
        octal = len(body) > 1 and body[0] == "0" and body[1].isdigit()
        number = sign * int(body, 8 if octal else 0)
        if -(2**63) <= number < 2**64:
            return number
    if _FLOAT.fullmatch(digits):
        return float(digits)
    return text


class _Constructor:
    """Makes a document of a tree of nodes, in which aliases are nodes that come again."""

    def __init__(self, raw: bytes) -> None:
        self.doubled: list[str] = []
        self._raw = raw
        self._met: set[int] = set()
        self._open: set[int] = set()
        self._read = self._again = 0
        self._within = 0
        """How many aliases lead to where we are."""

    def value(self, node: yaml.Node) -> Any:
        alias = id(node) in self._met
        if id(node) in self._open:
            raise MalformedDocument(f"yaml: anchor '{self._anchor(node)}' value contains itself")
        self._met.add(id(node))
        self._within += alias
        self._count()
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.ScalarNode):
                return self._scalar(node)
            if isinstance(node, yaml.SequenceNode):
                return [self.value(item) for item in node.value]
            assert isinstance(node, yaml.MappingNode)
            return self._mapping(node, {})
        finally:
            self._open.discard(id(node))
            self._within -= alias

    def _count(self) -> None:
        """A few lines of aliases can stand for more than any memory holds."""
        self._read += 1
        self._again += self._within > 0
        if (
            self._again > 100
            and self._read > 1000
            and self._again / self._read > _max_alias_ratio(self._read)
        ):
            raise MalformedDocument("yaml: document contains excessive aliasing")

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        text, tag = node.value, node.tag
        if tag in (f"{_TAG}str", f"{_TAG}binary"):
            return text
        if tag != "plain" and not tag.startswith(_TAG):
            return text
        found = _resolve_scalar(text)
        if isinstance(found, float) and not math.isfinite(found):
            shown = "NaN" if math.isnan(found) else "+Inf" if found > 0 else "-Inf"
            raise MalformedDocument(f"json: unsupported value: {shown}")
        return float(found) if tag == f"{_TAG}float" and type(found) is int else found

    def _mapping(self, node: yaml.MappingNode, made: dict[str, Any]) -> dict[str, Any]:
        for key, part in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag == "plain" and key.value == "<<":
                self._merge(part, made)
                continue
            found = self.value(key)
            if isinstance(found, (dict, list)):
                raise MalformedDocument("yaml: invalid map key")
            value = self.value(part)
            name = _key_text(found)
            if name in made:
                shown = json.dumps(found, ensure_ascii=False)
                self.doubled.append(f"line {part.start_mark.line + 1}: key {shown} already set in map")
            made[name] = value
        return made

    def _merge(self, node: yaml.Node, made: dict[str, Any]) -> None:
        # Those that come last are merged first, so that the first win.
        parts = reversed(node.value) if isinstance(node, yaml.SequenceNode) else (node,)
        for part in parts:
            if not isinstance(part, yaml.MappingNode):
                raise MalformedDocument("yaml: map merge requires map or sequence of maps as the value")
            if id(part) in self._open:
                raise MalformedDocument(f"yaml: anchor '{self._anchor(part)}' value contains itself")
            self._within += 1
            self._count()
            self._mapping(part, made)
            self._within -= 1

    def _anchor(self, node: yaml.Node) -> str:
        return _anchor_name(self._raw, node.start_mark.index)


def _anchor_name(raw: bytes, at: int) -> str:
    """The name of the anchor or alias at a place."""
    found = re.match(r"\s*[&*]([^\s,\[\]{}]+)", raw.decode("utf-8", "replace")[at:])
    return found[1] if found else ""


def _max_alias_ratio(read: int) -> float:
    """Which share of a document may come from aliases: nearly all of a small one, little of a large one."""
    few, many = 400_000, 4_000_000
    return 0.99 - 0.89 * (min(max(read, few), many) - few) / (many - few)


def _key_text(key: Any) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, bool):
        return "true" if key else "false"
    if key is None:
        raise MalformedDocument("unsupported map key of type: %!s(<nil>), key: <nil>")
    return f"{key:g}" if isinstance(key, float) else str(key)
