"""Quoting as Go's ``%q`` does it: messages, flags and log lines are upstream's to the letter, and nothing in a
text can end the line it is in, or speak to a terminal."""

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
    """A text in quotes."""
    escaped = text.translate(_ESCAPES)
    return f'"{escaped if escaped.isprintable() else printable(escaped)}"'


def printable(text: str) -> str:
    """A text in which what cannot be printed is written as its number."""
    return "".join(map(_shown, text))


def _shown(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
