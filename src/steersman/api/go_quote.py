"""Quotes strings as Go's ``%q`` does, for messages, flags and log lines that equal upstream's.

Control characters are escaped, so that no text can break a log line or control a terminal.
"""

from __future__ import annotations

_ESCAPES = str.maketrans(
    {
        "\\": "\\\\",
        '"': '\\"',
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
    }
)


def quote(text: str) -> str:
    """Return a text in double quotes, escaped."""
    escaped = text.translate(_ESCAPES)
    return f'"{escaped if escaped.isprintable() else printable(escaped)}"'


def printable(text: str) -> str:
    """Return a text with unprintable characters escaped by their code."""
    return "".join(map(_escape, text))


def _escape(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    if 0xDC80 <= code <= 0xDCFF:
        # A byte that is not UTF-8, decoded with ``surrogateescape``.
        return f"\\x{code - 0xDC00:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
