"""Server-side apply, and keeping track of who owns which field.

`apply` merges what somebody applies into the live document; `track` follows every other write. Both are
pure functions on plain documents, in `Terms` of a resource's schema. `lazy` lets the server put tracking
off until somebody looks.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from steersman.api.errors import ServerError
from steersman.server import status_errors
from steersman.server.apply import conflicts, last_applied, managed_fields
from steersman.server.apply.managed_fields import APPLY, UPDATE, Managed, manager_name
from steersman.server.apply.ownership import Conflicts, Document, Terms, applied, updated
from steersman.server.apply.schema import Shape, ShapeError
from steersman.server.apply.validate import validate

__all__ = ["Applied", "Document", "Managed", "Shape", "Terms", "apply", "manager_name", "track"]

BEFORE = "before-first-apply"
"""Who owns what was there before anybody kept track."""


class Applied(NamedTuple):
    """What an apply makes of an object."""

    document: Document
    """Without ``managedFields``; the live document itself where nothing changed."""
    managed: Managed


def apply(
    live: Document,
    patch: Document,
    manager: str,
    managed: Managed,
    *,
    terms: Terms,
    now: datetime,
    force: bool = False,
    empty: Document | None = None,
) -> Applied:
    """Merge a patch into the live document, on behalf of a manager.

    ``live`` has no ``managedFields``, those are in ``managed``; to create an object it is ``empty``, what a
    new object of the kind looks like. Raises `Conflict` where others own what would change and that is
    not forced, and what the server refuses a bad patch with.
    """
    blank = {"apiVersion": terms.api_version, "kind": terms.kind} if empty is None else empty
    _check(patch, terms)
    try:
        if not managed:
            before = managed_fields.manager(BEFORE, UPDATE, terms.api_version, terms.subresource)
            managed = updated({}, blank, live, before, terms, now)
        document, managed = _applied(live, patch, manager, managed, terms, now, force)
    except Conflicts as found:
        raise conflicts.refusal(found) from None
    except ShapeError as error:
        raise ServerError(f"failed to create typed live object ({_named(live, terms)}): {error}") from None
    except RecursionError:
        raise status_errors.bad_request("error decoding YAML: exceeded max depth") from None
    if manager == last_applied.KUBECTL:
        document = last_applied.refreshed(document, patch)
    return Applied(document, managed)


def _applied(
    live: Document,
    patch: Document,
    manager: str,
    managed: Managed,
    terms: Terms,
    now: datetime,
    force: bool,
) -> tuple[Document, Managed]:
    who = managed_fields.manager(manager, APPLY, terms.api_version, terms.subresource)
    try:
        document, managed = applied(managed, live, patch, who, terms, force=force)
    except Conflicts as found:
        left = last_applied.tolerated(found, live, terms) if manager == last_applied.KUBECTL else found
        if left is not None:
            raise left from None
        document, managed = applied(managed, live, patch, who, terms, force=True)
    if document is not live and who in managed:
        managed[who] = managed[who]._replace(time=terms.since(now))
    return document, managed


def _check(patch: Document, terms: Terms) -> None:
    version, kind = patch.get("apiVersion") or "", patch.get("kind") or ""
    if (version, kind) != (terms.api_version, terms.kind):
        raise status_errors.bad_request(f"invalid object type: {_kind(version, kind)}")
    metadata = patch.get("metadata")
    if isinstance(metadata, dict) and isinstance(metadata.get("managedFields"), list):
        raise status_errors.bad_request("metadata.managedFields must be nil")
    try:
        validate(patch, terms.shape)
    except ShapeError as error:
        # A mistake of the client's, but upstream answers with an error of its own.
        raise ServerError(f"failed to create typed patch object ({_named(patch, terms)}): {error}") from None
    except RecursionError:
        raise status_errors.bad_request("error decoding YAML: exceeded max depth") from None


def _kind(version: object, kind: object) -> str:
    """A group, version and kind as upstream prints them."""
    group, _, name = str(version).rpartition("/")
    return f"{group}/{name}, Kind={kind}"


def _named(document: Document, terms: Terms) -> str:
    metadata = document.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    where = f"{metadata.get('namespace') or ''}/{metadata.get('name') or ''}"
    return f"{where}; {_kind(terms.api_version, terms.kind)}"


def track(
    old: Document | None,
    new: Document,
    manager: str,
    managed: Managed,
    *,
    terms: Terms,
    now: datetime,
    empty: Document | None = None,
) -> Managed:
    """The owners after a write that is no apply: whoever changed a field owns it.

    ``old`` is None for a creation, and then ``empty`` what a new object of the kind looks like. An object
    of which nobody kept track stays so. One that cannot be read as what it should be, or is nested too far
    to be followed, has no owners.
    """
    if old is None:
        old = {"apiVersion": terms.api_version, "kind": terms.kind} if empty is None else empty
    elif not managed:
        return managed
    who = managed_fields.manager(manager, UPDATE, terms.api_version, terms.subresource)
    try:
        return updated(managed, old, new, who, terms, now)
    except (ShapeError, RecursionError):
        return {}
