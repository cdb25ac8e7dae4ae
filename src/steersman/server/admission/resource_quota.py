"""ResourceQuota: nothing is created that a quota of its namespace has no room for.

Checked when a request is validated, charged right before it is carried out; in between nobody else is
served, so a quota is never overdrawn.
differs: upstream charges first and may then fail to create; its controller puts that right. Here nothing
is charged for what is not created.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

from msgspec.structs import replace

from steersman.api.generated.core_v1 import ResourceQuota as Quota
from steersman.api.quantity import ZERO, Quantity
from steersman.api.quota.compute import Amounts, parse_amounts
from steersman.api.quota.scopes import scopes_of
from steersman.api.quota.usage import Evaluator, difference, evaluator
from steersman.server.admission.plugin import Lookups, Plugin, Refused
from steersman.server.server import Attributes, Settle

QUOTAS = "resourcequotas"
IGNORED = (
    "bindings",
    "events",
    "events.events.k8s.io",
    "localsubjectaccessreviews.authorization.k8s.io",
)


class ResourceQuota(Plugin):
    """Checks and charges the quotas of a namespace."""

    name: ClassVar[str] = "ResourceQuota"
    validates: ClassVar[tuple[str, ...]] = ("*",)
    subresources: ClassVar[tuple[str, ...]] = ("", "status", "resize")
    reads: ClassVar[tuple[str, ...]] = (QUOTAS,)

    def validate(self, request: Attributes, look: Lookups) -> Settle | None:
        quotas = look.all(QUOTAS, request.namespace)
        if not quotas or request.resource.id in IGNORED:
            return None
        counted = evaluator(request.resource.id)
        if request.operation == "CREATE":
            if request.subresource:
                return None
        elif not counted.updates(request.obj, request.old, request.subresource):
            return None
        charged = charge(quotas, request, counted)
        return partial(_write, look, charged) if charged else None


def _write(look: Lookups, charged: tuple[Quota, ...]) -> None:
    for quota in charged:
        look.write(QUOTAS, quota)


def charge(quotas: tuple[Quota, ...], request: Attributes, counted: Evaluator) -> tuple[Quota, ...]:
    """The quotas that change, as they will be. Raises `Refused` where one has no room."""
    new, old = request.obj, request.old
    concerned = [quota for quota in quotas if _covers(quota, new, counted)]
    for quota in concerned:
        names = [name for name in quota.status.hard if counted.matching(name)]
        unsaid = counted.missing(new, names)
        if unsaid:
            raise Refused(f"failed quota: {quota.metadata.name}: {unsaid}")
        if any(name not in quota.status.used for name in names):
            raise Refused(
                f"status unknown for quota: {quota.metadata.name}, resources: {','.join(sorted(names))}"
            )
    if not concerned:
        return ()
    usage = counted.usage(new)
    negative = sorted(name for name, amount in usage.items() if amount.sign < 0)
    if negative:
        raise Refused(f"quota usage is negative for resource(s): {','.join(negative)}")
    more = difference(usage, counted.usage(old)) if old is not None else usage
    charged = []
    for quota in concerned:
        delta = more if old is not None and _covers(quota, old, counted) else usage
        changed = _charged(quota, delta, check=request.subresource != "status")
        if changed is not None:
            charged.append(changed)
    return tuple(charged)


def _covers(quota: Quota, obj: Any, counted: Evaluator) -> bool:
    if not any(counted.matching(name) for name in quota.status.hard):
        return False
    return all(counted.scoped(obj, scope) for scope in scopes_of(quota))


def _charged(quota: Quota, delta: Amounts, *, check: bool) -> Quota | None:
    status = quota.status
    asked = {name: delta[name] for name in status.hard if name in delta and delta[name].sign}
    if not asked:
        return None
    used = {name: Quantity.parse(status.used.get(name, 0)) for name in asked}
    then = {name: used[name] + amount for name, amount in asked.items()}
    hard = parse_amounts(status.hard)
    over = [name for name in sorted(asked) if then[name] > hard[name]]
    if over and check:
        parts = ("requested", asked), ("used", used), ("limited", hard)
        told = (f"{word}: {_shown(amounts, over)}" for word, amounts in parts)
        raise Refused(f"exceeded quota: {quota.metadata.name}, {', '.join(told)}")
    new = {**status.used, **{name: str(amount) for name, amount in then.items()}}
    return replace(quota, status=replace(status, used=new))


def _shown(amounts: Amounts, names: list[str]) -> str:
    return ",".join(f"{name}={amounts.get(name, ZERO)}" for name in names)
