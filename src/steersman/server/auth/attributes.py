"""Authorization attributes, decisions, and the Forbidden error with upstream's text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from steersman.api.errors import Forbidden
from steersman.server.auth.users import User
from steersman.server.status_errors import qualified, quote


class Attributes(NamedTuple):
    """The attributes of a request that an authorizer decides on: a user, a verb, and a resource or path."""

    user: User
    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str | None = None
    """The path of a non-resource request; None for resource requests."""
    field_selector: str = ""
    """The field selector of a list, watch or deletecollection. Requests have it for nodes only: RBAC does not look at it."""


class Decision(NamedTuple):
    """Allowed or not. "Not allowed" is upstream's NoOpinion: there are no explicit denials."""

    allowed: bool
    reason: str = ""


class Authorizer(Protocol):
    """Decides whether a request is allowed."""

    def authorize(self, attributes: Attributes) -> Decision: ...


class AlwaysAllow:
    """Allows every request: the authorizer of a server that has none."""

    def authorize(self, attributes: Attributes) -> Decision:
        return Decision(True)


def authorize(authorizer: Authorizer | None, attributes: Attributes) -> None:
    """Refuses a request that its user may not make. Without an authorizer every request is allowed."""
    if authorizer is not None:
        decision = authorizer.authorize(attributes)
        if not decision.allowed:
            raise forbidden(attributes, decision.reason)


def forbidden(attributes: Attributes, reason: str = "") -> Forbidden:
    """The 403 for a request that is not allowed."""
    detail = escape_html(_request_text(attributes))
    if reason:
        detail = f"{detail}: {reason}"
    if attributes.path is not None:
        return Forbidden(f"forbidden: {detail}", reason="Forbidden")
    subject = qualified(attributes.group, attributes.resource) + (
        f" {quote(attributes.name)}" if attributes.name else ""
    )
    details = {"name": attributes.name, "group": attributes.group, "kind": attributes.resource}
    return Forbidden(
        f"{subject} is forbidden: {detail}"
        if attributes.group or attributes.resource
        else f"forbidden: {detail}",
        reason="Forbidden",
        details={key: value for key, value in details.items() if value},
    )


def escape_html(text: str) -> str:
    """A text with the marks of HTML escaped, as upstream escapes them: a browser might show the message."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _request_text(attributes: Attributes) -> str:
    subject = f"User {quote(attributes.user.name)} cannot {attributes.verb}"
    if attributes.path is not None:
        return f"{subject} path {quote(attributes.path)}"
    resource = (
        f"{attributes.resource}/{attributes.subresource}" if attributes.subresource else attributes.resource
    )
    where = (
        f"in the namespace {quote(attributes.namespace)}" if attributes.namespace else "at the cluster scope"
    )
    return f"{subject} resource {quote(resource)} in API group {quote(attributes.group)} {where}"


def quoted(texts: Iterable[str]) -> str:
    """A list of strings as upstream prints it: ``["a" "b"]``."""
    return f"[{' '.join(map(quote, texts))}]"


def aggregate(errors: Iterable[str]) -> str:
    """Several errors as one line, as upstream prints them: each once, in brackets unless alone."""
    unique = list(dict.fromkeys(errors))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]" if unique else ""
