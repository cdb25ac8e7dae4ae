"""Server-side apply and field management, as upstream's structured-merge-diff and fieldmanager do it.

`apply` merges an applied patch into the live document; `track` computes the managed fields after any other
write. Both are pure functions on plain documents and the `ResourceSchema` of a resource. `field_manager` is
what the server uses; `deferred_owners` puts the computation off until managed fields are read.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from steersman.api.errors import Cause, Conflict, ServerError
from steersman.server import status_errors
from steersman.server.apply import field_set, last_applied, managed_fields
from steersman.server.apply.managed_fields import APPLY, UPDATE, ManagedFields, Manager
from steersman.server.apply.ownership import Conflicts, Document, ResourceSchema, after_apply, after_update
from steersman.server.apply.schema import SchemaError, TypedSchema
from steersman.server.apply.validate import validate

__all__ = ["Applied", "Document", "ManagedFields", "ResourceSchema", "TypedSchema", "apply", "track"]

BEFORE_FIRST_APPLY = "before-first-apply"
"""The manager of fields that were set before managed fields were tracked."""


class Applied(msgspec.Struct, frozen=True):
    """The result of an apply."""

    document: Document
    """Without ``managedFields``; the live document itself if nothing changed."""
    managed: ManagedFields


def apply(
    live: Document,
    patch: Document,
    manager: str,
    managed: ManagedFields,
    *,
    resource_schema: ResourceSchema,
    now: datetime,
    force: bool = False,
    empty: Document | None = None,
) -> Applied:
    """Merges a patch into the live document on behalf of a manager.

    ``live`` has no ``managedFields``: those are ``managed``. To create an object, ``live`` is ``empty``, the
    document of a new object of the kind. Raises `Conflict` if other managers own fields that would change
    and ``force`` is off, and the API error for a malformed patch.
    """
    schema = resource_schema
    blank = {"apiVersion": schema.api_version, "kind": schema.kind} if empty is None else empty
    _validate_patch(patch, schema)
    try:
        if not managed:
            before = managed_fields.manager_identifier(
                BEFORE_FIRST_APPLY, UPDATE, schema.api_version, schema.subresource
            )
            managed = after_update({}, blank, live, before, schema, now)
        document, managed = _applied(live, patch, manager, managed, schema, now, force)
    except Conflicts as conflicts:
        raise conflict_error(conflicts) from None
    except SchemaError as error:
        raise ServerError(f"failed to create typed live object ({_named(live, schema)}): {error}") from None
    except RecursionError:
        raise status_errors.bad_request("error decoding YAML: exceeded max depth") from None
    if manager == last_applied.KUBECTL:
        document = last_applied.update_annotation(document, patch)
    return Applied(document, managed)


def _applied(
    live: Document,
    patch: Document,
    manager: str,
    managed: ManagedFields,
    schema: ResourceSchema,
    now: datetime,
    force: bool,
) -> tuple[Document, ManagedFields]:
    identifier = managed_fields.manager_identifier(manager, APPLY, schema.api_version, schema.subresource)
    try:
        document, managed = after_apply(managed, live, patch, identifier, schema, force=force)
    except Conflicts as conflicts:
        kubectl = manager == last_applied.KUBECTL
        left = last_applied.without_last_applied(conflicts, live, schema) if kubectl else conflicts
        if left is not None:
            raise left from None
        document, managed = after_apply(managed, live, patch, identifier, schema, force=True)
    if document is not live and identifier in managed:
        managed[identifier] = managed[identifier]._replace(time=schema.entry_time(now))
    return document, managed


def _validate_patch(patch: Document, schema: ResourceSchema) -> None:
    version, kind = patch.get("apiVersion") or "", patch.get("kind") or ""
    if (version, kind) != (schema.api_version, schema.kind):
        raise status_errors.bad_request(f"invalid object type: {_gvk(version, kind)}")
    metadata = patch.get("metadata")
    if isinstance(metadata, dict) and isinstance(metadata.get("managedFields"), list):
        raise status_errors.bad_request("metadata.managedFields must be nil")
    try:
        validate(patch, schema.schema)
    except SchemaError as error:
        # The client's mistake, but upstream answers with an internal error.
        raise ServerError(f"failed to create typed patch object ({_named(patch, schema)}): {error}") from None
    except RecursionError:
        raise status_errors.bad_request("error decoding YAML: exceeded max depth") from None


def _gvk(version: object, kind: object) -> str:
    """A group, version and kind as upstream prints them."""
    group, _, name = str(version).rpartition("/")
    return f"{group}/{name}, Kind={kind}"


def _named(document: Document, schema: ResourceSchema) -> str:
    metadata = document.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    where = f"{metadata.get('namespace') or ''}/{metadata.get('name') or ''}"
    return f"{where}; {_gvk(schema.api_version, schema.kind)}"


def track(
    old: Document | None,
    new: Document,
    manager: str,
    managed: ManagedFields,
    *,
    resource_schema: ResourceSchema,
    now: datetime,
    empty: Document | None = None,
) -> ManagedFields:
    """The managed fields after a write that is not an apply: the manager owns every field it changed.

    ``old`` is None for a creation; ``empty`` is then the document of a new object of the kind. An object
    without managed fields stays without. A document that does not match its schema, or is nested too deeply
    to compare, has no managed fields.
    """
    schema = resource_schema
    if old is None:
        old = {"apiVersion": schema.api_version, "kind": schema.kind} if empty is None else empty
    elif not managed:
        return managed
    identifier = managed_fields.manager_identifier(manager, UPDATE, schema.api_version, schema.subresource)
    try:
        return after_update(managed, old, new, identifier, schema, now)
    except (SchemaError, RecursionError):
        return {}


# -- conflicts --------------------------------------------------------------------------------


def conflict_error(conflicts: Conflicts) -> Conflict:
    """The 409 with a cause for every conflicting field, in upstream's words."""
    found = [
        (manager, path)
        for manager in sorted(conflicts.fields, key=str)
        for path in field_set.paths(conflicts.fields[manager])
    ]
    causes = tuple(
        Cause("FieldManagerConflict", f"conflict with {_printed(manager)}", path) for manager, path in found
    )
    return Conflict(_conflict_message(found), reason="Conflict", causes=causes)


def _conflict_message(found: list[tuple[Manager, str]]) -> str:
    if len(found) == 1:
        manager, path = found[0]
        return f"Apply failed with 1 conflict: conflict with {_printed(manager)}: {path}"
    lines: list[str] = []
    last = None
    for manager, path in found:
        if manager != last:
            lines.append(f"conflicts with {_printed(manager)}:")
            last = manager
        lines.append(f"- {path}")
    return f"Apply failed with {len(found)} conflicts: " + "\n".join(lines)


def _printed(manager: Manager) -> str:
    """A manager as conflict messages print it."""
    name = status_errors.quote(manager.name)
    if manager.subresource:
        name = f"{name} with subresource {status_errors.quote(manager.subresource)}"
    return name if manager.applies else f"{name} using {manager.version}"
