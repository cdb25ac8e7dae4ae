"""``/debug/controllers/NAME``: the queue, the caches and the last rounds of a controller."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from steersman.manager.serving.responses import JSON, NOSNIFF, Response, error_response
from steersman.runtime.controller_group import ControllerGroup
from steersman.runtime.controller_runner import ControllerRunner
from steersman.runtime.trace import encode

DEFAULT_ROUNDS, MAX_ROUNDS = 20, 512
"""Number of rounds shown by default, and at most."""


def view(fleet: ControllerGroup, host: ControllerRunner[Any], query: Mapping[str, Sequence[str]]) -> Response:
    """A controller as a JSON document; ``?rounds=`` sets the number of rounds shown."""
    requested = query.get("rounds", [str(DEFAULT_ROUNDS)])[0]
    if not requested.isdecimal() or int(requested) > MAX_ROUNDS:
        return error_response(400, f"rounds must be a whole number up to {MAX_ROUNDS}")
    name, queue = host.controller.name, host.queue
    rounds = fleet.trace.rounds(name)
    document = {
        "controller": name,
        "queue": {
            "ready": len(queue),
            "waiting": queue.waiting,
            "working": queue.working,
            "unfinishedSeconds": round(queue.unfinished(), 3),
            "longestSeconds": round(queue.longest(), 3),
        },
        "crashes": host.crashes,
        "caches": dict(_caches(fleet, host)),
        "rounds": [msgspec.Raw(encode(one)) for one in rounds[len(rounds) - int(requested) :]],
    }
    return Response(msgspec.json.format(msgspec.json.encode(document), indent=2), 200, JSON, (NOSNIFF,))


def _caches(fleet: ControllerGroup, host: ControllerRunner[Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for watch in host.controller.watches:
        kind, store = watch.kind, fleet.informers.informer(watch.kind).store
        yield (
            f"{kind.resource}/{kind.version}",
            {
                "objects": len(store),
                "resourceVersion": str(store.revision),
                "unreadable": len(store.unreadable),
            },
        )
    if host.controller.follows_all is not None:
        everything = fleet.dynamic_informers.all_objects
        yield "*", {"objects": len(everything), "unfilled": everything.unfilled}
