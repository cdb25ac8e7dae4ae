"""Names nobody chose: random where they need only differ, hashed where they must come out the same."""

from __future__ import annotations

from random import Random

from steersman.api.label_syntax import MAX_NAME, MAX_SUBDOMAIN

ALPHANUMS = "bcdfghjklmnpqrstvwxz2456789"
"""No vowels, and nothing that looks like one: no name spells a word."""

SUFFIX_LENGTH = 5


def suffix(random: Random, length: int = SUFFIX_LENGTH) -> str:
    """Random characters for the end of a name."""
    return "".join(random.choices(ALPHANUMS, k=length))


def generate(base: str, random: Random) -> str:
    """A name from a ``generateName``, shortened where it would leave no room for the suffix."""
    return base[: MAX_NAME - SUFFIX_LENGTH] + suffix(random)


def child(parent: str, suffix: str, longest: int = MAX_SUBDOMAIN) -> str:
    """The name of the one object of this kind a parent has for a suffix, such as a template's hash."""
    return f"{parent[: max(longest - 1 - len(suffix), 0)] or parent}-{suffix}"


def safe_encode(text: str) -> str:
    """The text in characters that names are made of. One way: several texts may come out alike."""
    return "".join(ALPHANUMS[ord(char) % len(ALPHANUMS)] for char in text)


def fnv32a(data: bytes, state: int = 2166136261) -> int:
    """The FNV-1a hash of some bytes, or of more bytes after those that led to ``state``."""
    for byte in data:
        state = (state ^ byte) * 16777619 & 0xFFFFFFFF
    return state


def fnv32(data: bytes, state: int = 2166136261) -> int:
    """The FNV-1 hash: like `fnv32a`, the two steps the other way round."""
    for byte in data:
        state = state * 16777619 & 0xFFFFFFFF ^ byte
    return state
