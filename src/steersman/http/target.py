"""The target of an HTTP request: its path and query, read as kube-apiserver reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias
from urllib.parse import unquote

from steersman.api.go_query import parse_query

Query: TypeAlias = Mapping[str, list[str]]


def parse_target(target: str) -> tuple[str, Query]:
    """The path and the query of a request's target."""
    path, _, query = target.partition("?")
    if "%" in path:
        path = unquote(path)
    return path, parse_query(query) if query else {}


def flag(query: Query, name: str) -> bool:
    """A boolean of the query: absent, ``false`` and ``0`` are false, everything else is true."""
    values = query.get(name)
    return bool(values) and values[0] != "0" and values[0].lower() != "false"  # type: ignore[index]


def first(query: Query, name: str) -> str:
    """A string of the query; empty if absent."""
    values = query.get(name)
    return values[0] if values else ""


_TRUE = ("1", "t", "T", "true", "TRUE", "True")
"""The spellings that Go's ``strconv.ParseBool`` takes for true. Other flags of a query take all but two words for it: see `flag`."""

_INTERACTIVE_AGENTS = ("curl", "Wget", "Mozilla/5.0")
"""User agents that are given indented JSON unless they say otherwise."""


def wants_pretty(agent: str, query: Query) -> bool:
    """Whether to indent JSON, by the ``pretty`` option or the User-Agent."""
    if text := first(query, "pretty"):
        return text in _TRUE
    return agent.startswith(_INTERACTIVE_AGENTS)
