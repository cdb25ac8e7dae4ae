from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.go_regexp import InvalidPattern, compile_pattern


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
        (r"^[{123456789}]+\{123456789}$", "1{123456789}", "x"),
        (r"^x{0123456789}$", "x{0123456789}", "x"),
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
        (r"^\p{Greek}$", "λ", "l"),
        ("^(?U)a+", "aa", "b"),
        (r"^\QC\C\E\\C$", "C\\C\\C", "C"),
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
        ("(?<=a)b", "invalid named capture: `(?<=a)b`"),
        ("(?<!a)>b", "invalid named capture: `(?<!a)>`"),
        ("a++", "invalid nested repetition operator: `++`"),
        ("a*?*", "invalid nested repetition operator: `*?*`"),
        (r"(a)\1", "invalid escape sequence: `\\1`"),
        ("(a", "missing closing ): `(a`"),
        ("a)", "unexpected ): `a)`"),
        ("[a", "missing closing ]: `[a`"),
        ("[b-a]", "invalid character class range: `b-a`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("a{4294967296}", "invalid repeat count: `{4294967296}`"),
        ("a{1,123456789}", "invalid repeat count: `{1,123456789}`"),
        ("+", "missing argument to repetition operator: `+`"),
        ("|?", "missing argument to repetition operator: `?`"),
        (r"a\C", "invalid escape sequence: `\\C`"),
        ("\\", "trailing backslash at end of expression: ``"),
    ],
)
def test_what_go_refuses_is_refused_in_its_words(pattern: str, why: str) -> None:
    with pytest.raises(InvalidPattern) as refused:
        compile_pattern(pattern)
    assert str(refused.value) == f"error parsing regexp: {why}"


def test_patterns_are_matched_in_linear_time() -> None:
    """By RE2. Python's ``re`` would take longer than the universe is old for this text."""
    pattern = compile_pattern("^(a+)+$")
    assert type(pattern).__module__.startswith("re2")
    assert not pattern.search("a" * 50_000 + "!")


def test_a_pattern_has_a_limited_size() -> None:
    with pytest.raises(InvalidPattern, match=r"^error parsing regexp: expression too large: "):
        compile_pattern(r"\pL{1000}")


@given(st.text().filter(lambda text: "\\E" not in text and not text.endswith("\\")))
def test_a_quoted_text_matches_itself_and_nothing_longer(text: str) -> None:
    pattern = compile_pattern(f"^\\Q{text}\\E$")
    assert pattern.search(text)
    assert not pattern.search(f"{text}x")


@given(
    st.text(alphabet="ab|()[]{}*+?^$.\\-,0123iPpQE<:=!", max_size=12), st.text(alphabet="ab01", max_size=4)
)
def test_no_pattern_gets_out_of_hand(pattern: str, text: str) -> None:
    with suppress(InvalidPattern):
        compile_pattern(pattern).search(text)
