"""Decoding of JSON and YAML bodies by upstream's rules and with upstream's errors.

YAML follows the library upstream uses: version 1.1 (``yes`` is true) without dates and base-60 numbers, keys of
any scalar type, merge keys, and a limit for aliases. Of several documents the first is decoded.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, ClassVar

import msgspec
import yaml

MAX_DEPTH = 128
"""The number of levels a document may be nested.

differs: upstream's limit is 10,000 levels; no object needs more than a few dozen.
"""

_MAX_DEPTH_EXCEEDED = "exceeded max depth"


class MalformedDocument(ValueError):
    """A body that is not valid JSON or YAML, or is nested too deeply."""


# -- JSON -------------------------------------------------------------------------------------


def decode_json(raw: bytes) -> Any:
    """Decodes a JSON document. Raises `MalformedDocument`."""
    try:
        document = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        message = _go_json_error(raw)
        if not message:
            # Only the encoding is invalid: decode it with replacement characters, as Go does.
            return decode_json(replace_invalid_utf8(raw))
        raise MalformedDocument(message) from None
    except RecursionError:
        raise MalformedDocument(f"invalid character '{{' {_MAX_DEPTH_EXCEEDED}") from None
    # Every level has a bracket, so few documents have to be measured.
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
    """Go's error for a document; empty where only its UTF-8 is invalid."""
    text = raw.decode("utf-8", "replace")
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        position = error.pos
        if position >= len(text) or error.msg.startswith("Unterminated string"):
            return "unexpected end of JSON input"
        context = _GO_CONTEXTS.get(error.msg, "looking for beginning of value")
        return f"invalid character {_quote_char(text[position])} {context}"
    except RecursionError:
        return f"invalid character '{{' {_MAX_DEPTH_EXCEEDED}"
    return ""


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


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """A loader that leaves plain scalars unresolved, for `_resolve_scalar`."""

    yaml_implicit_resolvers: ClassVar[dict[Any, Any]] = {None: [("plain", re.compile(""))]}


def decode_yaml(raw: bytes) -> tuple[Any, tuple[str, ...]]:
    """Decodes a YAML document; returns it with its duplicate keys. Raises `MalformedDocument`."""
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
        # Composing recurses, so the depth is checked on events first.
        _check_depth(raw)
        node = loader.get_node() if loader.check_node() else None
        if node is None:
            return None, ()
        constructor = _Constructor(raw)
        return constructor.value(node), tuple(constructor.duplicate_keys)
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
    message = error.problem or "could not be read"
    if message.startswith("found undefined alias") and error.problem_mark is not None:
        return f"yaml: unknown anchor '{_anchor_name(raw, error.problem_mark.index)}' referenced"
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
_TAG = "tag:yaml.org,2002:"


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
        number = sign * int(body, 8 if octal else 0)
        if -(2**63) <= number < 2**64:
            return number
    if _FLOAT.fullmatch(digits):
        return float(digits)
    return text


class _Constructor:
    """Constructs a document from a tree of nodes, in which an alias is a node that occurs again."""

    def __init__(self, raw: bytes) -> None:
        self.duplicate_keys: list[str] = []
        self._raw = raw
        self._visited: set[int] = set()
        self._ancestors: set[int] = set()
        self._node_count = self._aliased_count = 0
        self._alias_depth = 0
        """The number of aliases on the way to the current node."""

    def value(self, node: yaml.Node) -> Any:
        alias = id(node) in self._visited
        if id(node) in self._ancestors:
            raise MalformedDocument(f"yaml: anchor '{self._anchor(node)}' value contains itself")
        self._visited.add(id(node))
        self._alias_depth += alias
        self._count()
        self._ancestors.add(id(node))
        try:
            if isinstance(node, yaml.ScalarNode):
                return self._scalar(node)
            if isinstance(node, yaml.SequenceNode):
                return [self.value(item) for item in node.value]
            assert isinstance(node, yaml.MappingNode)
            return self._mapping(node, {})
        finally:
            self._ancestors.discard(id(node))
            self._alias_depth -= alias

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

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        text, tag = node.value, node.tag
        if tag in (f"{_TAG}str", f"{_TAG}binary"):
            return text
        if tag != "plain" and not tag.startswith(_TAG):
            return text
        value = _resolve_scalar(text)
        if isinstance(value, float) and not math.isfinite(value):
            shown = "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
            raise MalformedDocument(f"json: unsupported value: {shown}")
        return float(value) if tag == f"{_TAG}float" and type(value) is int else value

    def _mapping(self, node: yaml.MappingNode, mapping: dict[str, Any]) -> dict[str, Any]:
        for key, part in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag == "plain" and key.value == "<<":
                self._merge(part, mapping)
                continue
            key_value = self.value(key)
            if isinstance(key_value, (dict, list)):
                raise MalformedDocument("yaml: invalid map key")
            value = self.value(part)
            name = _key_text(key_value)
            if name in mapping:
                shown = json.dumps(key_value, ensure_ascii=False)
                self.duplicate_keys.append(f"line {part.start_mark.line + 1}: key {shown} already set in map")
            mapping[name] = value
        return mapping

    def _merge(self, node: yaml.Node, mapping: dict[str, Any]) -> None:
        # The last ones are merged first, so that the first ones win.
        parts = reversed(node.value) if isinstance(node, yaml.SequenceNode) else (node,)
        for part in parts:
            if not isinstance(part, yaml.MappingNode):
                raise MalformedDocument("yaml: map merge requires map or sequence of maps as the value")
            if id(part) in self._ancestors:
                raise MalformedDocument(f"yaml: anchor '{self._anchor(part)}' value contains itself")
            self._alias_depth += 1
            self._count()
            self._mapping(part, mapping)
            self._alias_depth -= 1

    def _anchor(self, node: yaml.Node) -> str:
        return _anchor_name(self._raw, node.start_mark.index)


def _anchor_name(raw: bytes, position: int) -> str:
    """The name of the anchor or alias at a position."""
    match = re.match(r"\s*[&*]([^\s,\[\]{}]+)", raw.decode("utf-8", "replace")[position:])
    return match[1] if match else ""


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
