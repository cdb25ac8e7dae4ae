"""One request on its way: what was asked, by whom, and what to say along with the answer."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec
from msgspec import field

from steersman.http.request import HttpRequest
from steersman.server.apply.options import manager_name
from steersman.server.auth.users import User
from steersman.server.codec.field_validation import directive
from steersman.server.codec.negotiation import JSON, Choice, as_is, as_meta, negotiate
from steersman.server.http.request_body import Reading
from steersman.server.http.request_info import Asked, Query, for_people
from steersman.server.server import Server

if TYPE_CHECKING:
    from steersman.server.http.app_state import Plant

USER_AGENT = "User-Agent"


class Context(msgspec.Struct):
    """What handlers are given."""

    plant: Plant
    server: Server
    """What to work on: the server itself, or its rehearsal."""
    request: HttpRequest
    asked: Asked
    query: Query
    user: User
    warnings: list[str] = field(default_factory=list)

    def choice(self, *, meta: bool = True, stream: bool = False) -> Choice:
        """What the answer shall look like. Raises `NotAcceptable`."""
        return choose(self.request.headers.get("Accept", ""), meta, stream)

    @property
    def pretty(self) -> bool:
        """Whether a person is to read the answer."""
        return for_people(self.request.headers.get(USER_AGENT, ""), self.query)

    def reading(self, validation: str) -> Reading:
        """How closely to look at the body."""
        return Reading(directive(validation), self.warnings)

    @property
    def content_type(self) -> str:
        return self.request.headers.get("Content-Type", "")

    def manager(self, said: str) -> str:
        """Who owns what is written: whom the request names, or the first word of the client's name for itself."""
        return manager_name(said, self.request.headers.get(USER_AGENT, ""))


@lru_cache(maxsize=256)
def choose(accept: str, meta: bool, stream: bool) -> Choice:
    """The same for the same header, again and again: clients send few."""
    allows = as_meta if meta else as_is
    return negotiate(accept, allows, (JSON,)) if stream else negotiate(accept, allows)
