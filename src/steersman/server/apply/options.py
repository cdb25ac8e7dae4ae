"""The options of a patch, and what is refused of them."""

from __future__ import annotations

from steersman.server import status_errors
from steersman.server.apply.managed_fields import LONGEST_NAME
from steersman.server.status_errors import FieldError

APPLY_YAML = "application/apply-patch+yaml"
"""The content type of an apply; JSON is YAML too."""


def check_patch(content_type: str, field_manager: str, force: bool | None) -> None:
    """Raises `Invalid` for options a patch of this type cannot have. ``force`` is None if nobody said so."""
    wrong: list[FieldError] = []
    if content_type == APPLY_YAML:
        if not field_manager:
            wrong.append(status_errors.required("fieldManager", "is required for apply patch"))
    elif force is not None:
        wrong.append(status_errors.banned("force", "may not be specified for non-apply patch"))
    wrong += manager_problems(field_manager)
    if wrong:
        raise status_errors.invalid("meta.k8s.io", "PatchOptions", "", wrong)


def manager_problems(name: str) -> list[FieldError]:
    """What is wrong with the name of a field manager, in the options of any write."""
    wrong: list[FieldError] = []
    if len(name.encode()) > LONGEST_NAME:
        too_long = f"Too long: may not be more than {LONGEST_NAME} bytes"
        wrong.append(FieldError("FieldValueTooLong", "fieldManager", too_long))
    at = 0
    for letter in name:
        if not letter.isprintable():
            says = f"invalid character U+{ord(letter):04X} (at position {at})"
            wrong.append(status_errors.wrong("fieldManager", name, says))
        at += len(letter.encode())
    return wrong
