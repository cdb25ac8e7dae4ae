"""Reading whole collections past the cache."""

from __future__ import annotations

from typing import Any, TypeVar

from steersman.api.errors import Expired
from steersman.client.api import Api, Unreadable
from steersman.intent.live import Survey

T = TypeVar("T")

PAGE = 500


async def survey(api: Api, action: Survey[T]) -> list[T]:
    """Everything there is, page by page; what cannot be read is there all the same, by its metadata."""
    kind, token = action.kind, ""
    found: list[T] = []
    limit = action.limit or PAGE
    while True:
        try:
            page = await api.list(
                kind, action.namespace, label_selector=action.selector, limit=limit, continue_=token
            )
        except Expired:
            # The pages went out of date while being read; a list in one piece cannot.
            if not token:
                raise
            found, token, limit = [], "", 0
            continue
        for item in page.items:
            found.append(_barely(kind.type, item) if isinstance(item, Unreadable) else item)
        token = page.continue_
        if not token or len(found) >= action.limit > 0:
            return found


def _barely(type_: type[Any], item: Unreadable) -> Any:
    return type_(metadata=item.metadata)
