"""A whole list in pages, from any `Api`.

A list read in pages is one snapshot, which the server keeps for some minutes. When it has forgotten
it halfway, what came so far is worth nothing, and everything is read again at once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Generic, Literal, TypeVar

import msgspec

from steersman.api.errors import Expired
from steersman.api.scheme import Kind
from steersman.client.api import Api, Page, Unreadable

T = TypeVar("T")

PAGE = 500
"""Objects in a page; upstream's number."""


class Part(msgspec.Struct, Generic[T], frozen=True):
    """One page of a whole list."""

    items: list[T]
    resource_version: str
    afresh: bool = False
    """The snapshot was lost: forget the parts before this one, which has everything."""


async def list_all(
    api: Api,
    kind: Kind[T],
    namespace: str = "",
    *,
    label_selector: str = "",
    field_selector: str = "",
    resource_version: str = "",
    resource_version_match: Literal["", "Exact", "NotOlderThan"] = "",
    page_size: int = PAGE,
) -> AsyncIterator[Part[T | Unreadable]]:
    """Page after page, one in memory at a time. ``page_size=0`` asks for all at once."""

    async def page(limit: int, continue_: str) -> Page[T | Unreadable]:
        return await api.list(
            kind,
            namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            limit=limit,
            continue_=continue_,
            # The token says which snapshot it goes on with; the server refuses both.
            resource_version="" if continue_ else resource_version,
            resource_version_match="" if continue_ else resource_version_match,
        )

    token = ""
    while True:
        try:
            got = await page(page_size, token)
        except Expired:
            if not token:
                raise
            everything = await page(0, "")
            yield Part(everything.items, everything.resource_version, afresh=True)
            return
        yield Part(got.items, got.resource_version)
        token = got.continue_
        if not token:
            return
