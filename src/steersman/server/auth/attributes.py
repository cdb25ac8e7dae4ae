"""What is asked for, as authorisation sees it; the answer; and the refusal in upstream's words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from steersman.api.errors import Forbidden
from steersman.server.auth.users import User
from steersman.server.status_errors import qualified, quote


class Attributes(NamedTuple):
    """One request: somebody wants to do something to a resource, or to a path that is none."""

    user: User
    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str | None = None
    """The path of a request that is for no resource; None for all others."""


class Decision(NamedTuple):
    """Yes or no. Nothing here ever says more than "not that I know of": there are no denials."""

    allowed: bool
    reason: str = ""


class Authorizes(Protocol):
    """Whoever can say what somebody may do."""

    def authorize(self, attributes: Attributes) -> Decision: ...


class AlwaysAllow:
    """Allows every request: the authorizer of a server that has none."""

    def authorize(self, attributes: Attributes) -> Decision:
        return Decision(True)


def authorize(authorizer: Authorizes | None, attributes: Attributes) -> None:
    """Refuses a request that its user may not make. Without an authorizer every request is allowed."""
    if authorizer is not None:
        decision = authorizer.authorize(attributes)
        if not decision.allowed:
            raise forbidden(attributes, decision.reason)


def forbidden(asked: Attributes, reason: str = "") -> Forbidden:
    """The 403 for a request that was not allowed."""
    why = _told(asked)
    # Upstream keeps markup out of what a browser might show.
    for mark, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        why = why.replace(mark, entity)
    if reason:
        why = f"{why}: {reason}"
    if asked.path is not None:
        return Forbidden(f"forbidden: {why}", reason="Forbidden")
    subject = qualified(asked.group, asked.resource) + (f" {quote(asked.name)}" if asked.name else "")
    details = {"name": asked.name, "group": asked.group, "kind": asked.resource}
    return Forbidden(
        f"{subject} is forbidden: {why}" if asked.group or asked.resource else f"forbidden: {why}",
        reason="Forbidden",
        details={key: value for key, value in details.items() if value},
    )


def _told(asked: Attributes) -> str:
    who = f"User {quote(asked.user.name)} cannot {asked.verb}"
    if asked.path is not None:
        return f"{who} path {quote(asked.path)}"
    resource = f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource
    where = f"in the namespace {quote(asked.namespace)}" if asked.namespace else "at the cluster scope"
    return f"{who} resource {quote(resource)} in API group {quote(asked.group)} {where}"


def quoted(texts: Iterable[str]) -> str:
    """A list of strings as upstream prints it: ``["a" "b"]``."""
    return f"[{' '.join(map(quote, texts))}]"


def aggregate(errors: Iterable[str]) -> str:
    """Several errors as one line, as upstream prints them: each once, in brackets unless alone."""
    told = list(dict.fromkeys(errors))
    return told[0] if len(told) == 1 else f"[{', '.join(told)}]" if told else ""
