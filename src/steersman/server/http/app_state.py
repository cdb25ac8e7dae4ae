"""What all requests share: the server, who decides, and what is remembered between requests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import cache

import msgspec
from msgspec import field

from steersman.api.generated import resources
from steersman.server.auth.authentication import Authenticator
from steersman.server.auth.lookup import Objects
from steersman.server.auth.openid import Document
from steersman.server.auth.rbac import Authorizer
from steersman.server.auth.tokens import Mint
from steersman.server.http.discovery_cache import Catalogue
from steersman.server.http.encoding import Encoded
from steersman.server.http.metrics import Metrics
from steersman.server.http.watch_registry import Watches
from steersman.server.rest.dry_run import Rehearsal
from steersman.server.server import Server


class Plant(msgspec.Struct, eq=False):
    """One server as it is served."""

    server: Server
    authenticator: Authenticator
    authorizer: Authorizer | None
    """None where everybody may do anything."""
    catalogue: Catalogue
    watches: Watches
    objects: Objects
    mint: Mint | None = None
    """None where nobody is given tokens."""
    openid: Mapping[str, Document] = field(default_factory=dict)
    address: str = ""
    """Where clients reach this server: ``127.0.0.1:6443``."""
    durable: Callable[[], Awaitable[None]] | None = None
    """Waited for before a write is acknowledged: it is safe on the disk then."""
    encoded: Encoded = field(default_factory=Encoded)
    metrics: Metrics = field(default_factory=Metrics)

    def rehearsal(self) -> Server:
        """The same server for a dry run."""
        return Rehearsal(self.server)


@cache
def served_verbs() -> Mapping[tuple[str, str, str, str], tuple[str, ...]]:
    """By group, version, plural and subresource: what can be asked of the built-in resources."""
    found: dict[tuple[str, str, str, str], tuple[str, ...]] = {}
    for row in resources():
        found[row.group, row.version, row.plural, ""] = row.verbs
        for below in row.subresources:
            found[row.group, row.version, row.plural, below.name] = below.verbs
    return found
