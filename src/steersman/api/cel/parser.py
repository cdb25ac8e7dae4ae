"""Parses expressions, and expands their macros.

The grammar is that of CEL with the optional syntax (``a.?b``, ``a[?0]``, ``[?x]``, ``{?k: v}``). Parsing stops at the
first syntax error, with a message close to cel-go's. Other errors before it (invalid macro arguments or numbers) are
reported as well, with cel-go's messages.
"""

from __future__ import annotations

from steersman.api.cel.errors import NOWHERE, CelError, Problem
from steersman.api.cel.lexer import Lexeme, Token, lexemes, unquoted, unquoted_bytes
from steersman.api.cel.macros import MACROS, MacroError
from steersman.api.cel.syntax import (
    Call,
    Entry,
    Expr,
    Field,
    Ident,
    ListOf,
    Literal,
    MapOf,
    Select,
    StructOf,
)
from steersman.api.cel.types import BOOL, BYTES, DOUBLE, DYN, INT, NULL, STRING, UINT

MAX_DEPTH = 250
"""Nesting depth of expressions."""
MAX_LENGTH = 100_000
"""Characters of an expression."""

RESERVED = frozenset(
    [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "false",
        "for",
        "function",
        "if",
        "import",
        "in",
        "let",
        "loop",
        "package",
        "namespace",
        "null",
        "return",
        "true",
        "var",
        "void",
        "while",
    ]
)

_BINDING = {
    "<": 1, "<=": 1, ">": 1, ">=": 1, "==": 1, "!=": 1, "in": 1,
    "+": 2, "-": 2,
    "*": 3, "/": 3, "%": 3,
}  # fmt: skip
_FUNCTION = {"in": "@in", "!": "!_"}


def parse(source: str) -> Expr:
    """Parse an expression. Raises `CelError`."""
    if len(source) > MAX_LENGTH:
        message = f"expression code point size exceeds limit: size: {len(source)}, limit {MAX_LENGTH}"
        raise CelError(source, [Problem(NOWHERE, message)])
    return _Parser(source).start()


class _Parser:
    def __init__(self, source: str) -> None:
        self._source = source
        self._tokens = lexemes(source)
        self._next = 0
        self._depth = 0
        self._errors: list[Problem] = []

    # -- tokens -------------------------------------------------------------------------------

    @property
    def _token(self) -> Lexeme:
        return self._tokens[self._next]

    def _is(self, *texts: str) -> bool:
        token = self._token
        return token.token is Token.MARK and token.text in texts

    def _take(self) -> Lexeme:
        token = self._token
        if token.token is not Token.END:
            self._next += 1
        return token

    def _accept(self, text: str) -> Lexeme | None:
        return self._take() if self._is(text) else None

    def _expect(self, text: str) -> Lexeme:
        if not self._is(text):
            raise self._mismatch(f"'{text}'")
        return self._take()

    def _expect_ident(self) -> Lexeme:
        if self._token.token is not Token.IDENT:
            raise self._mismatch("IDENTIFIER")
        return self._take()

    def _mismatch(self, wanted: str) -> CelError:
        token = self._token
        return self._wrong(token.at, f"Syntax error: mismatched input '{token.text}' expecting {wanted}")

    def _wrong(self, at: int, message: str) -> CelError:
        return CelError(self._source, [*self._errors, Problem(at, message)])

    def _note(self, at: int, message: str) -> Expr:
        """Record an error after which parsing can continue, and return a placeholder."""
        self._errors.append(Problem(at, message))
        return Literal(at, DYN, None)

    # -- the grammar --------------------------------------------------------------------------

    def start(self) -> Expr:
        try:
            expr = self._expr()
        except RecursionError:
            raise self._too_deep() from None
        if (token := self._token).token is not Token.END:
            if self._tokens[self._next + 1].token is Token.END:
                # One token too much: ANTLR would go on without it.
                raise self._wrong(token.at, f"Syntax error: extraneous input '{token.text}' expecting <EOF>")
            raise self._mismatch("<EOF>")
        if self._errors:
            raise CelError(self._source, self._errors)
        return expr

    def _too_deep(self) -> CelError:
        return self._wrong(NOWHERE, f"Internal error: expression recursion limit exceeded: {MAX_DEPTH}")

    def _expr(self) -> Expr:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._too_deep()
        expr = self._logical("||", "&&")
        question = self._accept("?")
        if question is not None:
            yes = self._logical("||", "&&")
            self._expect(":")
            expr = Call(question.at, "_?_:_", (expr, yes, self._expr()))
        self._depth -= 1
        return expr

    def _logical(self, mark: str, inner: str) -> Expr:
        """Parse a chain of one logical operator into one call with many arguments."""

        def term() -> Expr:
            return self._logical(inner, "") if inner else self._binary(1)

        terms = [term()]
        first: Lexeme | None = None
        while (found := self._accept(mark)) is not None:
            first = first or found
            terms.append(term())
        return terms[0] if first is None else Call(first.at, f"_{mark}_", tuple(terms))

    def _binary(self, weakest: int) -> Expr:
        left = self._unary()
        depth = 0
        while True:
            token = self._token
            binding = _BINDING.get(token.text, 0) if token.token is Token.MARK else 0
            if binding < weakest:
                return left
            depth += 1
            if depth > MAX_DEPTH:
                raise self._too_deep()
            self._take()
            right = self._binary(binding + 1)
            left = Call(token.at, _FUNCTION.get(token.text, f"_{token.text}_"), (left, right))

    def _unary(self) -> Expr:
        for mark, function in (("!", "!_"), ("-", "-_")):
            if not self._is(mark) or (mark == "-" and self._signs_a_number()):
                continue
            marks = [self._take()]
            while self._is(mark):
                marks.append(self._take())
            operand = self._member()
            return Call(marks[0].at, function, (operand,)) if len(marks) % 2 else operand
        return self._member()

    def _signs_a_number(self) -> bool:
        return self._tokens[self._next + 1].token in (Token.INT, Token.FLOAT)

    def _member(self) -> Expr:
        expr = self._primary()
        depth = 0
        while self._is(".", "["):
            depth += 1
            if depth > MAX_DEPTH:
                raise self._too_deep()
            expr = self._selected(expr) if self._is(".") else self._indexed(expr)
        return expr

    def _selected(self, operand: Expr) -> Expr:
        dot = self._take()
        optional = self._accept("?") is not None
        if self._token.token is Token.ESCAPED:
            raise self._wrong(self._token.at, "unsupported syntax: '`'")
        name = self._expect_ident()
        if optional:
            return Call(dot.at, "_?._", (operand, Literal(name.at, STRING, name.text)))
        bracket = self._accept("(")
        if bracket is None:
            return Select(dot.at, operand, name.text)
        return self._called(bracket.at, name.text, operand)

    def _indexed(self, operand: Expr) -> Expr:
        bracket = self._take()
        function = "_[?_]" if self._accept("?") else "_[_]"
        index = self._expr()
        self._expect("]")
        return Call(bracket.at, function, (operand, index))

    def _called(self, at: int, function: str, target: Expr | None) -> Expr:
        args: list[Expr] = []
        while not self._is(")"):
            args.append(self._expr())
            if self._accept(",") is None:
                break
            if self._is(")"):
                raise self._mismatch("an argument")
        self._expect(")")
        macro = MACROS.get((function, len(args), target is not None))
        if macro is not None:
            try:
                return macro(at, target, tuple(args))
            except MacroError as error:
                return self._note(error.at, error.message)
        return Call(at, function, tuple(args), target)

    def _primary(self) -> Expr:
        token = self._token
        if token.token is Token.MARK:
            match token.text:
                case "(":
                    self._take()
                    expr = self._expr()
                    self._expect(")")
                    return expr
                case "[":
                    return self._list()
                case "{":
                    self._take()
                    return MapOf(token.at, self._entries())
                case "." if self._tokens[self._next + 1].token is Token.IDENT:
                    self._take()
                    return self._named(".")
        if token.token is Token.IDENT:
            return self._named("")
        return self._literal()

    def _named(self, dot: str) -> Expr:
        message = self._message_name()
        if message:
            brace = self._take()
            return StructOf(brace.at, dot + message, self._fields())
        name = self._take()
        if name.text in RESERVED:
            self._note(name.at, f"reserved identifier: {name.text}")
        bracket = self._accept("(")
        if bracket is None:
            return Ident(name.at, dot + name.text)
        return self._called(bracket.at, dot + name.text, None)

    def _message_name(self) -> str:
        """Consume and return ``a.b`` of ``a.b{``; return "" and consume nothing if no struct follows."""
        names = [self._token.text]
        at = self._next + 1
        while self._tokens[at].text == "." and self._tokens[at + 1].token is Token.IDENT:
            names.append(self._tokens[at + 1].text)
            at += 2
        if self._tokens[at].text != "{" or self._tokens[at].token is not Token.MARK:
            return ""
        self._next = at
        return ".".join(names)

    def _list(self) -> Expr:
        bracket = self._take()
        elements: list[Expr] = []
        optional: list[bool] = []
        while not self._is("]"):
            optional.append(self._accept("?") is not None)
            elements.append(self._expr())
            if self._accept(",") is None:
                break
        self._expect("]")
        return ListOf(bracket.at, tuple(elements), tuple(optional))

    def _entries(self) -> tuple[Entry, ...]:
        entries: list[Entry] = []
        while not self._is("}"):
            optional = self._accept("?") is not None
            key = self._expr()
            colon = self._expect(":")
            entries.append(Entry(colon.at, key, self._expr(), optional))
            if self._accept(",") is None:
                break
        self._expect("}")
        return tuple(entries)

    def _fields(self) -> tuple[Field, ...]:
        fields: list[Field] = []
        while not self._is("}"):
            optional = self._accept("?") is not None
            if not fields and self._token.token is not Token.IDENT:
                raise self._mismatch("{'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}")
            name = self._expect_ident()
            colon = self._expect(":")
            fields.append(Field(colon.at, name.text, self._expr(), optional))
            if self._accept(",") is None:
                break
        self._expect("}")
        return tuple(fields)

    def _literal(self) -> Expr:
        sign = self._accept("-")
        token = self._take()
        at = token.at if sign is None else sign.at
        text = token.text if sign is None else f"-{token.text}"
        match token.token:
            case Token.INT:
                value = _integer(text)
                if value is None or not -(2**63) <= value < 2**63:
                    return self._note(at, "invalid int literal")
                return Literal(at, INT, value)
            case Token.FLOAT:
                number = float(text)
                if number in (float("inf"), float("-inf")):
                    return self._note(at, "invalid double literal")
                return Literal(at, DOUBLE, number)
            case Token.UINT:
                value = _integer(text[:-1])
                if value is None or value >= 2**64:
                    return self._note(at, "invalid uint literal")
                return Literal(at, UINT, value)
            case Token.STRING:
                return Literal(at, STRING, self._unquoted(token))
            case Token.BYTES:
                return Literal(at, BYTES, self._unquoted_bytes(token))
            case Token.MARK if token.text in ("true", "false"):
                return Literal(at, BOOL, token.text == "true")
            case Token.MARK if token.text == "null":
                return Literal(at, NULL, None)
        words = f"Syntax error: mismatched input '{token.text}' expecting {_EXPRESSION_STARTS}"
        raise self._wrong(token.at, words)

    def _unquoted(self, token: Lexeme) -> str:
        try:
            return unquoted(token.text)
        except ValueError as error:
            self._note(token.at, str(error))
            return ""

    def _unquoted_bytes(self, token: Lexeme) -> bytes:
        try:
            return unquoted_bytes(token.text[1:])
        except ValueError as error:
            self._note(token.at, str(error))
            return b""


_EXPRESSION_STARTS = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
"""The tokens that an expression may begin with, as cel-go's parser lists them."""
_UINT64_DIGITS = 20
"""The decimal digits of the largest integer of 64 bits; Python refuses to convert more than 4,300."""


def _integer(text: str) -> int | None:
    """The value of an integer literal; None if it has too many digits for 64 bits, even with zeros in front."""
    sign, digits = (-1, text[1:]) if text[:1] == "-" else (1, text)
    base = 10
    if digits.startswith("0x"):
        base, digits = 16, digits[2:]
    digits = digits.lstrip("0") or "0"
    return None if len(digits) > _UINT64_DIGITS else sign * int(digits, base)
