"""The roles and bindings a fresh API server has, read from ``policy.json``.

The file has what upstream's bootstrap policy grants, one object a line, without what all of them share.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import msgspec

from steersman.api.generated import load
from steersman.api.generated.rbac_v1 import ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding
from steersman.api.label_selectors import compile_selector
from steersman.server.auth.rbac import GROUP, Policy

AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate"
"""The annotation that keeps an object out of reconciliation when it says ``false``."""

_LABELS = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_ANNOTATIONS = {AUTOUPDATE: "true"}


class _File(msgspec.Struct):
    """In the order in which upstream creates them."""

    ClusterRole: tuple[ClusterRole, ...]
    ClusterRoleBinding: tuple[ClusterRoleBinding, ...]
    Role: tuple[Role, ...]
    RoleBinding: tuple[RoleBinding, ...]


@cache
def bootstrap() -> tuple[Policy, ...]:
    """All of them, in the order to create them; aggregated roles have their rules."""
    for kind in _File.__struct_fields__:
        # From here on others meet these objects: they must be able to tell what they are.
        load(GROUP, "v1", kind)
    read = msgspec.json.decode(files(__package__).joinpath("policy.json").read_bytes(), type=_File)
    # differs: upstream leaves aggregated roles empty until a controller fills them; here they hold from
    # the start, with or without one.
    rows: tuple[Policy, ...] = (
        *aggregated(read.ClusterRole),
        *read.ClusterRoleBinding,
        *read.Role,
        *read.RoleBinding,
    )
    return tuple(map(_marked, rows))


def aggregated(roles: tuple[ClusterRole, ...]) -> tuple[ClusterRole, ...]:
    """The roles, each aggregated one with the rules it gathers from the others."""
    while True:
        filled = tuple(_filled(role, roles) for role in roles)
        # A role may gather from one that itself gathers: go on until nothing comes in.
        if filled == roles:
            return filled
        roles = filled


def _filled(role: ClusterRole, roles: tuple[ClusterRole, ...]) -> ClusterRole:
    if role.aggregationRule is None:
        return role
    rules: dict[PolicyRule, None] = {}
    for selector in map(compile_selector, role.aggregationRule.clusterRoleSelectors):
        for other in sorted(roles, key=lambda other: other.metadata.name):
            if other.metadata.name != role.metadata.name and selector.matches(other.metadata.labels):
                rules.update(dict.fromkeys(other.rules or ()))
    return msgspec.structs.replace(role, rules=tuple(rules))


def _marked(obj: Policy) -> Policy:
    metadata = msgspec.structs.replace(
        obj.metadata, labels={**_LABELS, **obj.metadata.labels}, annotations=_ANNOTATIONS
    )
    return msgspec.structs.replace(obj, metadata=metadata)
