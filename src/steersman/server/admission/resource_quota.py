"""ResourceQuota: denies requests that exceed a quota of their namespace.

Usage is checked when a request is validated and charged right before it is written; no other request is
served in between, so a quota is never exceeded.
differs: upstream charges first and may then fail to create, which its controller corrects. Here only written
objects are charged.
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
from steersman.server.admission.plugin import AdmissionDenied, Listers, Plugin
from steersman.server.server import AdmissionAttributes, BeforeWrite

QUOTAS = "resourcequotas"
IGNORED = (
    "bindings",
    "events",
    "events.events.k8s.io",
    "localsubjectaccessreviews.authorization.k8s.io",
)


class ResourceQuota(Plugin, frozen=True):
    """Checks and charges the quotas of a namespace."""

    name: ClassVar[str] = "ResourceQuota"
    late: ClassVar[bool] = True
    validates: ClassVar[tuple[str, ...]] = ("*",)
    subresources: ClassVar[tuple[str, ...]] = ("", "status", "resize")
    reads: ClassVar[tuple[str, ...]] = (QUOTAS,)

    def validate(self, request: AdmissionAttributes, listers: Listers) -> BeforeWrite | None:
        quotas = listers.list(QUOTAS, request.namespace)
        if not quotas or request.resource.id in IGNORED:
            return None
        usage_evaluator = evaluator(request.resource.id)
        if request.operation == "CREATE":
            if request.subresource:
                return None
        elif not usage_evaluator.updates(request.obj, request.old, request.subresource):
            return None
        charged = charge(quotas, request, usage_evaluator)
        return partial(_write, listers, charged) if charged else None


def _write(listers: Listers, charged: tuple[Quota, ...]) -> None:
    for quota in charged:
        listers.write_status(QUOTAS, quota)


def charge(
    quotas: tuple[Quota, ...], request: AdmissionAttributes, usage_evaluator: Evaluator
) -> tuple[Quota, ...]:
    """The quotas whose usage changes, updated. Raises `AdmissionDenied` if one is exceeded."""
    new, old = request.obj, request.old
    matching = [quota for quota in quotas if _covers(quota, new, usage_evaluator)]
    for quota in matching:
        names = [name for name in quota.status.hard if usage_evaluator.matching(name)]
        missing = usage_evaluator.missing(new, names)
        if missing:
            raise AdmissionDenied(f"failed quota: {quota.metadata.name}: {missing}")
        if any(name not in quota.status.used for name in names):
            raise AdmissionDenied(
                f"status unknown for quota: {quota.metadata.name}, resources: {','.join(sorted(names))}"
            )
    if not matching:
        return ()
    usage = usage_evaluator.usage(new)
    negative = sorted(name for name, amount in usage.items() if amount.sign < 0)
    if negative:
        raise AdmissionDenied(f"quota usage is negative for resource(s): {','.join(negative)}")
    delta_usage = difference(usage, usage_evaluator.usage(old)) if old is not None else usage
    charged = []
    for quota in matching:
        delta = delta_usage if old is not None and _covers(quota, old, usage_evaluator) else usage
        changed = _charge(quota, delta, check=request.subresource != "status")
        if changed is not None:
            charged.append(changed)
    return tuple(charged)


def _covers(quota: Quota, obj: Any, usage_evaluator: Evaluator) -> bool:
    if not any(usage_evaluator.matching(name) for name in quota.status.hard):
        return False
    return all(usage_evaluator.scoped(obj, scope) for scope in scopes_of(quota))


def _charge(quota: Quota, delta: Amounts, *, check: bool) -> Quota | None:
    status = quota.status
    requested = {name: delta[name] for name in status.hard if name in delta and delta[name].sign}
    if not requested:
        return None
    used = {name: Quantity.parse(status.used.get(name, 0)) for name in requested}
    new_usage = {name: used[name] + amount for name, amount in requested.items()}
    hard = parse_amounts(status.hard)
    exceeded = [name for name in sorted(requested) if new_usage[name] > hard[name]]
    if exceeded and check:
        parts = ("requested", requested), ("used", used), ("limited", hard)
        parts_text = (f"{word}: {_amounts_text(amounts, exceeded)}" for word, amounts in parts)
        raise AdmissionDenied(f"exceeded quota: {quota.metadata.name}, {', '.join(parts_text)}")
    new = {**status.used, **{name: str(amount) for name, amount in new_usage.items()}}
    return replace(quota, status=replace(status, used=new))


def _amounts_text(amounts: Amounts, names: list[str]) -> str:
    return ",".join(f"{name}={amounts.get(name, ZERO)}" for name in names)
