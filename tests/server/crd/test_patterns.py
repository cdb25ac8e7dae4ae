from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.server.crd.patterns import InvalidPattern, UnsupportedPattern, compile_pattern


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("^[a-z]+$", "abc", "abc\n"),
        ("^a(?i)b|c$", "aB", "Ab"),
        ("(?m)^b$", "a\nb\nc", "a\nbc"),
        (r"^\d$", "7", "\u0667"),
        (r"^\s$", "\n", "\v"),
        (r"^\S$", "\v", " "),
        (r"^\z", "", "x"),
        (r"^\Qa.*\E$", "a.*", "ab"),
        (r"^x{,3}$", "x{,3}", "xx"),
        (r"^x{2}$", "xx", "xxx"),
        (r"^\x41\x{42}\103$", "ABC", "abc"),
        ("^[[:alpha:]_]$", "_", "1"),
        ("^[[:^alpha:]]$", "1", "a"),
        (r"^[\]\[^-]$", "[", "a"),
        ("^[]a]$", "]", "b"),
        (r"^\pL$", "λ", "1"),
        (r"^\PL$", "1", "λ"),
        (r"^\p{^Lu}$", "a", "A"),
        (r"^[\PL]$", "1", "λ"),
        (r"^\p{Any}$", "\U0010ffff", ""),
        ("^(?P<n>a)(?<m>b)$", "ab", "a"),
        ("^(?:a|(?i:b))$", "B", "A"),
        ("^*a", "a", "b"),
        ("^(?s:.)$", "\n", ""),
        ("^.$", "x", "\n"),
    ],
)
def test_a_pattern_means_what_it_means_in_go(pattern: str, matching: str, other: str) -> None:
    search = compile_pattern(pattern).search
    assert search(matching)
    assert not search(other)


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?!a)", "invalid or unsupported Perl syntax: `(?!`"),
        ("a++", "invalid nested repetition operator: `++`"),
        ("a*?*", "invalid nested repetition operator: `*?*`"),
        (r"(a)\1", "invalid escape sequence: `\\1`"),
        ("(a", "missing closing ): `(a`"),
        ("a)", "unexpected ): `a)`"),
        ("[a", "missing closing ]: `[a`"),
        ("[b-a]", "invalid character class range: `b-a`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("+", "missing argument to repetition operator: `+`"),
        ("|?", "missing argument to repetition operator: `?`"),
        ("\\", "trailing backslash at end of expression: ``"),
    ],
)
def test_what_go_refuses_is_refused_in_its_words(pattern: str, why: str) -> None:
    with pytest.raises(InvalidPattern) as refused:
        compile_pattern(pattern)
    assert str(refused.value) == f"error parsing regexp: {why}"


@pytest.mark.parametrize("pattern", [r"\p{Greek}", "(?U)a+", "(?U:a+)"])
def test_a_sound_pattern_python_cannot_say_is_told_apart_from_a_bad_one(pattern: str) -> None:
    with pytest.raises(UnsupportedPattern):
        compile_pattern(pattern)


@given(st.text().filter(lambda text: "\\E" not in text and not text.endswith("\\")))
def test_a_quoted_text_matches_itself_and_nothing_longer(text: str) -> None:
    pattern = compile_pattern(f"^\\Q{text}\\E$")
    assert pattern.search(text)
    assert not pattern.search(f"{text}x")


@given(
    st.text(alphabet="ab|()[]{}*+?^$.\\-,0123iPpQE<:=!", max_size=12), st.text(alphabet="ab01", max_size=4)
)
def test_no_pattern_gets_out_of_hand(pattern: str, text: str) -> None:
    with suppress(InvalidPattern, UnsupportedPattern):
        found = compile_pattern(pattern).search(text)
        assert found is None or found.string == text
