"""DNS names as Kubernetes validates them: labels and subdomains, with upstream's error messages.

A rule takes a value and returns the messages of what is wrong with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

NameRule: TypeAlias = Callable[[str], tuple[str, ...]]

VALID: tuple[str, ...] = ()

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"

_is_label = re.compile(_LABEL).fullmatch
_is_subdomain = re.compile(SUBDOMAIN).fullmatch
_is_label_1035 = re.compile(_LABEL_1035).fullmatch


def regex_message(message: str, regex: str, *examples: str) -> str:
    """A message that shows examples and the regular expression, as upstream's RegexError."""
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{message} ({f'e.g. {shown}' if shown else ''}regex used for validation is '{regex}')"


_LABEL_MESSAGE = regex_message(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start "
    "and end with an alphanumeric character",
    _LABEL,
    "my-name",
    "123-abc",
)
_SUBDOMAIN_MESSAGE = regex_message(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character",
    SUBDOMAIN,
    "example.com",
)
_LABEL_1035_MESSAGE = regex_message(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
    "character, and end with an alphanumeric character",
    _LABEL_1035,
    "my-name",
    "abc-123",
)


def max_length_message(max_length: int) -> str:
    """The message of a text that is too long."""
    return f"must be no more than {max_length} characters"


def byte_length(text: str) -> int:
    """The bytes of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def match(text: str, max_length: int, matches: Callable[[str], object], message: str) -> tuple[str, ...]:
    """The messages of a text that is too long, or does not match."""
    too_long = byte_length(text) > max_length
    if matches(text):
        return (max_length_message(max_length),) if too_long else VALID
    return (max_length_message(max_length), message) if too_long else (message,)


def dns1123_subdomain(name: str) -> tuple[str, ...]:
    """DNS labels joined by dots: the rule for most object names (IsDNS1123Subdomain)."""
    return match(name, 253, _is_subdomain, _SUBDOMAIN_MESSAGE)


def dns1123_label(name: str) -> tuple[str, ...]:
    """One DNS label (IsDNS1123Label)."""
    if _is_label(name) and len(name) <= 63:
        return VALID
    return match(name, 63, _is_label, "must not contain dots" if _is_subdomain(name) else _LABEL_MESSAGE)


def dns1035_label(name: str) -> tuple[str, ...]:
    """One DNS label that starts with a letter (IsDNS1035Label)."""
    return match(name, 63, _is_label_1035, _LABEL_1035_MESSAGE)
