"""Suggestions for misspelled names: of flags, gates, controllers, verbs, kinds, fields, faults and scenarios."""

from __future__ import annotations

from collections.abc import Iterable


def closest(word: str, names: Iterable[str]) -> str:
    """The name most similar to a misspelled one, whatever its case; empty where none is similar."""
    from difflib import get_close_matches  # only needed for errors

    known: dict[str, str] = {}
    for name in names:
        known.setdefault(name.lower(), name)
    return next((known[each] for each in get_close_matches(word.lower(), known, n=1)), "")


def hint(word: str, names: Iterable[str], otherwise: str = "") -> str:
    """The end of an error message about an unknown name: the name that was meant, else all names or another way out."""
    names = tuple(names)
    close = closest(word, names)
    return f"did you mean {close!r}?" if close else otherwise or f"available: {', '.join(names)}"
