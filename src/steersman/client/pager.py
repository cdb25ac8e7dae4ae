"""Lists a collection in pages, as client-go's pager does.

All pages of one list show the same snapshot, which the API server keeps for some minutes. When the continue token
expires half-way (410 Expired), the pages already read are stale and must not be joined with newer ones. The pager
then drops them and requests the full list at once, without a limit.

The Expired response carries a token to continue from a newer snapshot ("inconsistent continuation"). The pager
does not use it: the result could miss objects, or hold one twice.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, TypeVar

import msgspec

from steersman.api.errors import ApiError, resource_version_unavailable
from steersman.api.scheme import Kind
from steersman.client.api import Api, Page, UndecodableObject

T = TypeVar("T")
Match: TypeAlias = Literal["", "Exact", "NotOlderThan"]

PAGE_SIZE = 500
"""Objects per page, as upstream's pager requests them."""


class PageRequest(msgspec.Struct, frozen=True):
    """The page of a list to request next."""

    token: str = ""
    """The continue token; empty for the first page."""
    limit: int = PAGE_SIZE
    """Objects per page; 0 requests the full list at once."""

    def following(self, token: str) -> PageRequest:
        """Return the request for the page after this one."""
        return PageRequest(token, self.limit)

    def restarted(self, error: Exception) -> PageRequest | None:
        """Return the request that starts over with the full list, if ``error`` says that the token has expired.

        None for any other error, and when a first page or a full list failed: starting over cannot help then.
        """
        if self.token and self.limit and resource_version_unavailable(error):
            return PageRequest(limit=0)
        return None


async def list_page(
    api: Api,
    kind: Kind[T],
    request: PageRequest,
    namespace: str = "",
    *,
    label_selector: str = "",
    field_selector: str = "",
    resource_version: str = "",
    resource_version_match: Match = "",
) -> Page[T | UndecodableObject]:
    """Return one page."""
    return await api.list(
        kind,
        namespace,
        label_selector=label_selector,
        field_selector=field_selector,
        limit=request.limit,
        continue_=request.token,
        # The token names the snapshot; the server refuses a request that names another one besides.
        resource_version="" if request.token else resource_version,
        resource_version_match="" if request.token else resource_version_match,
    )


async def list_all(
    api: Api,
    kind: Kind[T],
    namespace: str = "",
    *,
    label_selector: str = "",
    field_selector: str = "",
    resource_version: str = "",
    resource_version_match: Match = "",
    page_size: int = PAGE_SIZE,
    at_least: int = 0,
) -> Page[T | UndecodableObject]:
    """Return all objects of one snapshot as a single page.

    With ``at_least`` no more pages are requested once that many objects have been read. Raises `Expired` if
    ``resource_version`` is too old for the first page.
    """
    request: PageRequest | None = PageRequest(limit=page_size)
    items: list[T | UndecodableObject] = []
    listed_at = ""
    while request is not None:
        if not request.token:
            items.clear()
        try:
            page = await list_page(
                api,
                kind,
                request,
                namespace,
                label_selector=label_selector,
                field_selector=field_selector,
                resource_version=resource_version,
                resource_version_match=resource_version_match,
            )
        except ApiError as error:
            request = request.restarted(error)
            if request is None:
                raise
            continue
        if not request.token:
            listed_at = page.resource_version
        items += page.items
        enough = len(items) >= at_least > 0
        request = request.following(page.continue_) if page.continue_ and not enough else None
    return Page(items, listed_at)
