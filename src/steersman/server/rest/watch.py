"""Watch: subscribes to the changes of the objects that a request selects."""

from __future__ import annotations

from steersman.api.errors import BadRequest, ServerError
from steersman.server import status_errors
from steersman.server.rest.listing import parse_version
from steersman.server.rest.request import Request
from steersman.server.rest.selection import select_requested
from steersman.server.server import Server
from steersman.server.storage.watch import Subscription


def watch(server: Server, request: Request) -> Subscription:
    """Begins a watch. Raises `Expired` where its resourceVersion is no longer kept."""
    resource, options = request.resource, request.list_options
    table = server.table(resource)
    selection = select_requested(request)
    try:
        version = parse_version(options.resource_version)
    except BadRequest as error:
        # As upstream, which refuses it properly in lists only.
        raise ServerError(error.message.removeprefix("invalid resource version: ")) from None
    initial, revision = options.send_initial_events, server.store.revision
    if initial and version > revision:
        raise status_errors.resource_version_too_large(version, revision)
    from_now = initial is False and not version
    since = revision if from_now else None if initial else version or None
    return table.watch(
        selection, since=since, initial_end=bool(initial), level_triggered=options.level_triggered
    )
