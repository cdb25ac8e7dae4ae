"""Queries of URLs as Go's net/url parses them: the pairs that its ParseQuery drops are dropped.

A pair that one server takes and the next does not see could be authorised as one request and carried out as another. So
all that read a query go through `query_pairs`.
"""

from __future__ import annotations

import re
from urllib.parse import unquote_plus

MAX_PAIRS = 10_000
"""Pairs of a query; Go parses none of one that has more."""
_INVALID_ESCAPE = re.compile("%(?![0-9a-fA-F]{2})").search


def query_pairs(query: str) -> list[tuple[str, str]]:
    """The names and values of a query, escaped as they are, without the pairs that have a ``;`` or an invalid escape."""
    if query.count("&") >= MAX_PAIRS:
        return []
    odd = ";" in query or "%" in query
    return [
        (name, value)
        for name, _, value in (
            part.partition("=")
            for part in query.split("&")
            if part and not (odd and (";" in part or _INVALID_ESCAPE(part)))
        )
    ]


def parse_query(query: str) -> dict[str, list[str]]:
    """The values of a query by name, unescaped."""
    found: dict[str, list[str]] = {}
    for name, value in query_pairs(query):
        found.setdefault(unquote_plus(name), []).append(unquote_plus(value))
    return found
