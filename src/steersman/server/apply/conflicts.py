"""The refusal of an apply that would change what others own."""

from __future__ import annotations

from steersman.api.errors import Cause, Conflict
from steersman.server.apply import field_set
from steersman.server.apply.managed_fields import Manager
from steersman.server.apply.ownership import Conflicts
from steersman.server.status_errors import quote


def refusal(conflicts: Conflicts) -> Conflict:
    """The 409 with a cause for every field, in upstream's words."""
    found = [
        (who, path)
        for who in sorted(conflicts.fields, key=str)
        for path in field_set.paths(conflicts.fields[who])
    ]
    causes = tuple(Cause("FieldManagerConflict", f"conflict with {shown(who)}", path) for who, path in found)
    return Conflict(_message(found), reason="Conflict", causes=causes)


def _message(found: list[tuple[Manager, str]]) -> str:
    if len(found) == 1:
        who, path = found[0]
        return f"Apply failed with 1 conflict: conflict with {shown(who)}: {path}"
    lines: list[str] = []
    last = None
    for who, path in found:
        if who != last:
            lines.append(f"conflicts with {shown(who)}:")
            last = who
        lines.append(f"- {path}")
    return f"Apply failed with {len(found)} conflicts: " + "\n".join(lines)


def shown(who: Manager) -> str:
    """A manager as messages name it."""
    name = quote(who.name)
    if who.subresource:
        name = f"{name} with subresource {quote(who.subresource)}"
    return name if who.applies else f"{name} using {who.version}"
