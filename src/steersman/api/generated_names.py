"""Generates object names: random suffixes for generateName, and hashes for names that must be reproducible."""

from __future__ import annotations

from random import Random

from steersman.api.label_syntax import MAX_NAME, MAX_SUBDOMAIN

ALPHANUMS = "bcdfghjklmnpqrstvwxz2456789"
"""The characters of random suffixes. Without vowels (and 0, 1, 3), so that no name spells a word."""

SUFFIX_LENGTH = 5


def suffix(random: Random, length: int = SUFFIX_LENGTH) -> str:
    """Return a random suffix."""
    return "".join(random.choices(ALPHANUMS, k=length))


def generate(base: str, random: Random) -> str:
    """Return a name for a ``generateName``, which is truncated to leave room for the suffix."""
    return base[: MAX_NAME - SUFFIX_LENGTH] + suffix(random)


def child(parent: str, suffix: str, longest: int = MAX_SUBDOMAIN) -> str:
    """Return the name of a child object: the parent's name, truncated if necessary, and a suffix."""
    return f"{parent[: max(longest - 1 - len(suffix), 0)] or parent}-{suffix}"


def safe_encode(text: str) -> str:
    """Map a text to the characters of `ALPHANUMS`, as upstream's rand.SafeEncodeString. Not reversible."""
    return "".join(ALPHANUMS[ord(char) % len(ALPHANUMS)] for char in text)


def fnv32a(data: bytes, state: int = 2166136261) -> int:
    """Return the 32-bit FNV-1a hash; ``state`` continues a previous hash."""
    for byte in data:
        state = (state ^ byte) * 16777619 & 0xFFFFFFFF
    return state


def fnv32(data: bytes, state: int = 2166136261) -> int:
    """Return the 32-bit FNV-1 hash, which has the two steps of `fnv32a` in the opposite order."""
    for byte in data:
        state = state * 16777619 & 0xFFFFFFFF ^ byte
    return state


def fnv128a(data: bytes) -> int:
    """Return the 128-bit FNV-1a hash. As a number, it compares as its bytes do."""
    state = 0x6C62272E07BB014262B821756295C58D
    for byte in data:
        state = (state ^ byte) * 0x1000000000000000000013B & 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF
    return state
