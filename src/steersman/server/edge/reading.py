"""Get and list."""

from __future__ import annotations

from typing import cast

from steersman.server import listing
from steersman.server.edge import options
from steersman.server.edge.answers import Answer, many, one
from steersman.server.edge.context import Context
from steersman.server.edge.requests import first
from steersman.server.resources import Resource
from steersman.server.selection import select


def get(ctx: Context, resource: Resource) -> Answer:
    """One object."""
    namespace = ctx.asked.namespace if resource.namespaced else ""
    if "resourceVersion" in ctx.query:
        listing.reached(ctx.server.store, first(ctx.query, "resourceVersion"))
    return one(ctx, resource, ctx.server.get(resource, namespace, ctx.asked.name))


def list_(ctx: Context, resource: Resource) -> Answer:
    """The objects of a selection, or a page of them."""
    asked = options.listing(ctx.query)
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
