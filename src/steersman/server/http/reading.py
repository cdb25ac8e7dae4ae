"""Get and list."""

from __future__ import annotations

from typing import cast

from steersman.server.http import query_options
from steersman.server.http.context import Context
from steersman.server.http.request_info import first
from steersman.server.http.responses import Answer, many, one
from steersman.server.registry.resources import Resource
from steersman.server.rest import list as listing
from steersman.server.storage.selection import select


def get(ctx: Context, resource: Resource) -> Answer:
    """One object."""
    namespace = ctx.asked.namespace if resource.namespaced else ""
    if "resourceVersion" in ctx.query:
        listing.reached(ctx.server.store, first(ctx.query, "resourceVersion"))
    return one(ctx, resource, ctx.server.get(resource, namespace, ctx.asked.name))


def list_(ctx: Context, resource: Resource) -> Answer:
    """The objects of a selection, or a page of them."""
    asked = query_options.listing(ctx.query)
    server = ctx.server
    server.reap(resource)
    found = listing.page(
        server.store,
        server.table(resource),
        select(resource, ctx.asked.namespace, asked.labels, asked.fields),
        limit=max(asked.limit, 0),
        continue_=asked.continue_,
        version=asked.version,
        match=cast("listing.Match", asked.match),
    )
    return many(ctx, resource, found)
