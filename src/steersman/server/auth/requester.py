"""Who sent the request that is being served, for whoever must know more of them than their name."""

from __future__ import annotations

from contextvars import ContextVar

from steersman.server.auth.users import User

REQUESTER: ContextVar[User | None] = ContextVar("REQUESTER", default=None)
"""None for what the control plane does itself."""
