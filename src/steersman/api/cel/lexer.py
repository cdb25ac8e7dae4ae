"""Splits expressions into tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from steersman.api.cel.errors import CelError, Problem


class Token(Enum):
    IDENT = "IDENTIFIER"
    ESCAPED = "ESC_IDENTIFIER"
    INT = "NUM_INT"
    UINT = "NUM_UINT"
    FLOAT = "NUM_FLOAT"
    STRING = "STRING"
    BYTES = "BYTES"
    MARK = "mark"
    """Operators, brackets and the keywords ``in``, ``true``, ``false`` and ``null``."""
    END = "<EOF>"


@dataclass(frozen=True, slots=True)
class Lexeme:
    token: Token
    text: str
    at: int


KEYWORDS = frozenset(("in", "true", "false", "null"))

_ESCAPE = r"""\\(?:[abfnrtv"'\\?`]|[0-3][0-7]{2}|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"""
_STRING = "|".join(
    (
        r'[rR]"""(?s:.*?)"""',
        r"[rR]'''(?s:.*?)'''",
        rf'"""(?:{_ESCAPE}|[^\\])*?"""',
        rf"'''(?:{_ESCAPE}|[^\\])*?'''",
        r'[rR]"[^"\n\r]*"',
        r"[rR]'[^'\n\r]*'",
        rf'"(?:{_ESCAPE}|[^\\"\n\r])*"',
        rf"'(?:{_ESCAPE}|[^\\'\n\r])*'",
    )
)
_TOKENS = re.compile(
    "|".join(
        (
            r"(?P<SPACE>[\t \r\n\f]+|//[^\n]*)",
            rf"(?P<BYTES>[bB](?:{_STRING}))",
            rf"(?P<STRING>{_STRING})",
            r"(?P<FLOAT>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)",
            r"(?P<UINT>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])",
            r"(?P<INT>0x[0-9a-fA-F]+|[0-9]+)",
            r"(?P<IDENT>[A-Za-z_][A-Za-z0-9_]*)",
            r"(?P<ESCAPED>`[A-Za-z0-9_./\- ]+`)",
            r"(?P<MARK>==|!=|<=|>=|&&|\|\||[<>\[\]{}().,\-!?:+*/%])",
        )
    )
)


def lexemes(source: str) -> list[Lexeme]:
    """Return the tokens of an expression; the last is END. Raises `CelError` for invalid characters."""
    found: list[Lexeme] = []
    at = 0
    while at < len(source):
        match = _TOKENS.match(source, at)
        if match is None:
            text = source[at]
            raise CelError(source, [Problem(at, f"Syntax error: token recognition error at: '{text}'")])
        kind, text = str(match.lastgroup), match.group()
        if kind != "SPACE":
            token = Token.MARK if kind == "IDENT" and text in KEYWORDS else Token[kind]
            found.append(Lexeme(token, text, at))
        at = match.end()
    found.append(Lexeme(Token.END, "<EOF>", len(source)))
    return found


_PLAIN = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ESCAPED = re.compile(r"\\(?:[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))")


def unquoted_bytes(text: str) -> bytes:
    """The value of a literal of bytes. Raises `ValueError`."""
    # Each byte is the character of its number, so that those of an escape stand beside those of a character in UTF-8.
    return unquoted(text.encode("utf-8", "surrogatepass").decode("latin-1"), raw_bytes=True).encode("latin-1")


def unquoted(text: str, raw_bytes: bool = False) -> str:
    """The value of a string literal. Raises `ValueError` for an escape of no character."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    raw = text[0] in "rR"
    text = text[1:] if raw else text
    quotes = 3 if len(text) >= 6 and text[:3] in ('"""', "'''") else 1
    text = text[quotes:-quotes]
    if raw:
        return text

    def character(match: re.Match[str]) -> str:
        byte, short, long, octal, plain = match.groups()
        if plain is not None:
            return _PLAIN.get(plain, plain)
        if raw_bytes and (short or long):
            raise ValueError("unable to unescape string")
        number = int(octal, 8) if octal else int(byte or short or long, 16)
        if number > 0x10FFFF or 0xD800 <= number < 0xE000:
            raise ValueError("invalid unicode code point")
        return chr(number)

    return _ESCAPED.sub(character, text)
