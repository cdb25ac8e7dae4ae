"""The ``fieldManager`` and ``force`` options of writes: their validation, and the manager of a request."""

from __future__ import annotations

from steersman.server import status_errors
from steersman.server.status_errors import FieldError

APPLY_YAML = "application/apply-patch+yaml"
"""The content type of a server-side apply; JSON is YAML too."""

MAX_MANAGER_NAME_BYTES = 128


def validate_patch_options(content_type: str, field_manager: str, force: bool | None) -> None:
    """Raises `Invalid` for options a patch of this type cannot have. ``force`` is None if it is not set."""
    problems: list[FieldError] = []
    if content_type == APPLY_YAML:
        if not field_manager:
            problems.append(status_errors.field_required("fieldManager", "is required for apply patch"))
    elif force is not None:
        problems.append(status_errors.field_forbidden("force", "may not be specified for non-apply patch"))
    problems += validate_field_manager(field_manager)
    if problems:
        raise status_errors.invalid("meta.k8s.io", "PatchOptions", "", problems)


def validate_field_manager(name: str) -> list[FieldError]:
    """Validation errors of the ``fieldManager`` option of any write."""
    problems: list[FieldError] = []
    if len(name.encode()) > MAX_MANAGER_NAME_BYTES:
        too_long = f"Too long: may not be more than {MAX_MANAGER_NAME_BYTES} bytes"
        # differs: upstream names every invalid character as well, each time with the whole name: for a request of 8 KiB,
        # that makes a response of 28 MB.
        return [FieldError("FieldValueTooLong", "fieldManager", too_long)]
    offset = 0
    for character in name:
        if not character.isprintable():
            detail = f"invalid character U+{ord(character):04X} (at position {offset})"
            problems.append(status_errors.field_invalid("fieldManager", name, detail))
        offset += len(character.encode())
    return problems


def manager_name(field_manager: str, user_agent: str) -> str:
    """The manager of a request: its ``fieldManager``, or the first part of its user agent."""
    if field_manager:
        return field_manager
    size, kept = 0, []
    for character in user_agent.partition("/")[0]:
        if not character.isprintable():
            continue
        size += len(character.encode())
        if size > MAX_MANAGER_NAME_BYTES:
            break
        kept.append(character)
    return "".join(kept)
