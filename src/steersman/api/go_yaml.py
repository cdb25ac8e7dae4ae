"""YAML as Go's library for Kubernetes reads it (sigs.k8s.io/yaml), into plain JSON values.

That is version 1.1 (``yes`` is true) without dates and base-60 numbers, with keys of any scalar type, merge keys,
and a limit for aliases. Request bodies, kubeconfig files (of several documents the first counts) and manifests are
read here, so that no input reaches PyYAML's own constructors, which recurse and raise what they like.

PyYAML is imported by the first document: it takes as long to load as a dozen modules of ours, and most clients send JSON.
"""

from __future__ import annotations

import binascii
import json
import math
import re
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from steersman.api.nesting import MAX_DEPTH

if TYPE_CHECKING:
    import yaml

MAX_NODES = 250_000
"""The number of nodes a YAML document may have, with all aliases expanded.

differs: upstream has no limit but the size of the body; the largest definitions have some 30,000 nodes.
"""

MAX_DEPTH_EXCEEDED = "exceeded max depth"


class MalformedDocument(ValueError):
    """A document that is not valid JSON or YAML, or is nested too deeply."""


class YamlSyntaxError(MalformedDocument):
    """A document that is not valid YAML. Its ``problem`` never quotes the document; the message may."""

    def __init__(self, message: str, problem: str, line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.problem = problem
        self.line = line
        """Counted from 1; 0 if unknown."""
        self.column = column
        """Counted from 1; 0 if unknown."""


def decode(raw: bytes) -> tuple[Any, tuple[str, ...]]:
    """Decodes the first YAML document; returns it with its duplicate keys. Raises `MalformedDocument`."""
    return next(_decoded(raw), (None, ()))


def decode_all(raw: bytes) -> list[Any]:
    """Decodes all YAML documents of a file. Raises `MalformedDocument`."""
    return [document for document, _ in _decoded(raw)]


def _decoded(raw: bytes) -> Iterator[tuple[Any, tuple[str, ...]]]:
    import yaml

    # libyaml's parser where there is one.
    parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loader = None
    try:
        loader = parser(raw)
        while (node := _compose(loader)) is not None:
            constructor = _Constructor()
            yield constructor.value(node), tuple(constructor.duplicate_keys)
    except yaml.reader.ReaderError as error:
        raise YamlSyntaxError(f"yaml: {error.reason}", error.reason) from None
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error) from None
    finally:
        if loader is not None:
            loader.dispose()


class _Node:
    """A node of a document. An alias is a node that occurs again."""

    __slots__ = ("anchor", "line", "tag", "value")

    def __init__(self, value: str | _Sequence | _Mapping, tag: str, line: int, anchor: str | None) -> None:
        self.value = value
        self.tag = tag
        self.line = line
        self.anchor = anchor


class _Sequence(msgspec.Struct, frozen=True):
    items: list[_Node]


class _Mapping(msgspec.Struct, frozen=True):
    parts: list[_Node]
    """Keys and values in turn."""

    def pairs(self) -> Iterator[tuple[_Node, _Node]]:
        parts = iter(self.parts)
        return zip(parts, parts, strict=True)


def _compose(loader: Any) -> _Node | None:
    """Composes the next document from the parser's events, within the limits for depth and nodes.

    Unlike PyYAML's composer it does not recurse, so the depth need not be checked by parsing twice.
    """
    import yaml

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
        if count > MAX_NODES:
            raise _too_many_nodes()
        if node.anchor is not None:
            anchors[node.anchor] = node


def _scalar_tag(event: yaml.ScalarEvent) -> str:
    tag: str | None = event.tag
    if tag is not None and tag != "!":
        return tag
    return _PLAIN if event.implicit[0] else f"{_TAG}str"


def _too_many_nodes() -> MalformedDocument:
    return MalformedDocument(f"yaml: exceeded max nodes of {MAX_NODES}")


def _too_deep() -> MalformedDocument:
    return MalformedDocument(f"yaml: {MAX_DEPTH_EXCEEDED} of {MAX_DEPTH}")


def _syntax_error(error: yaml.MarkedYAMLError) -> YamlSyntaxError:
    problem = error.problem or "could not be read"
    if error.problem_mark is None:
        return YamlSyntaxError(_go_message(error), problem)
    return YamlSyntaxError(
        _go_message(error), problem, error.problem_mark.line + 1, error.problem_mark.column + 1
    )


def _go_message(error: yaml.MarkedYAMLError) -> str:
    import yaml

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


_RESOLVED_TAGS = frozenset(f"{_TAG}{name}" for name in ("bool", "int", "float", "null", "timestamp"))
"""The tags that a text must agree with. A scalar with any other tag is a string."""
_TAGS_OF_TYPES = {bool: "bool", int: "int", float: "float", str: "str", type(None): "null"}
_TIMESTAMP = re.compile(
    r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
    r"(?:[Tt ][0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(?:\.[0-9]+)?(?: ?(?:Z|[+-][0-9]{2}:?[0-9]{2}))?)?"
)


def _decode_binary(text: str) -> str:
    try:
        # Go ignores line breaks, and no other characters.
        raw = binascii.a2b_base64(text.replace("\r", "").replace("\n", ""), strict_mode=True)
    except ValueError:
        raise MalformedDocument("yaml: !!binary value contains invalid base64 data") from None
    return raw.decode("utf-8", "replace")


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
        if self._node_count > MAX_NODES:
            raise _too_many_nodes()

    def _scalar(self, tag: str, text: str) -> Any:
        if tag == f"{_TAG}binary":
            return _decode_binary(text)
        if tag != _PLAIN and tag not in _RESOLVED_TAGS:
            return text
        value = _resolve_scalar(text)
        if isinstance(value, float) and not math.isfinite(value):
            shown = "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
            raise MalformedDocument(f"json: unsupported value: {shown}")
        if tag == _PLAIN:
            return value
        if tag == f"{_TAG}float" and type(value) is int and value < 2**63:
            return float(value)
        if tag == f"{_TAG}timestamp" and _TIMESTAMP.fullmatch(text):
            return text
        resolved = _TAGS_OF_TYPES[type(value)]
        if tag != f"{_TAG}{resolved}":
            raise MalformedDocument(
                f"yaml: cannot decode !!{resolved} `{text}` as a !!{tag.removeprefix(_TAG)}"
            )
        return value

    def _mapping(self, node: _Mapping, mapping: dict[str, Any]) -> dict[str, Any]:
        for key, part in node.pairs():
            if key.value == "<<" and key.tag in (_PLAIN, f"{_TAG}merge"):
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
    if isinstance(key, float):
        return _float32_text(key)
    if key >= 2**63:
        raise MalformedDocument(f"unsupported map key of type: uint64, key: {key:#x}")
    return str(key)


_FLOAT32_DIGITS = 9
"""The decimal digits that identify every float of 32 bits."""


def _float32_text(number: float) -> str:
    """A number as Go's ``FormatFloat(number, 'g', -1, 32)``: the fewest digits that identify it among 32-bit floats."""
    try:
        packed = struct.pack("<f", number)
    except OverflowError:
        return ".inf" if number > 0 else "-.inf"
    text = ""
    for digits in range(_FLOAT32_DIGITS):
        text = f"{struct.unpack('<f', packed)[0]:.{digits}e}"
        if struct.pack("<f", float(text)) == packed:
            break
    mantissa, _, exponent = text.partition("e")
    if not -4 <= int(exponent) < 6:
        return text
    return f"{float(text):.{max(len(mantissa.partition('.')[2]) - int(exponent), 0)}f}"
