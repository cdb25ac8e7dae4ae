"""Evictions: a deletion that asks the pod's disruption budget first."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from steersman.api.errors import ApiError, Cause, ServerError
from steersman.api.generated.core_v1 import Pod, PodCondition
from steersman.api.generated.meta_v1 import Condition
from steersman.api.generated.policy_v1 import Eviction, PodDisruptionBudget, PodDisruptionBudgetStatus
from steersman.api.label_selectors import compile_selector
from steersman.server import status_errors
from steersman.server.codec.convert import adopt
from steersman.server.registry.graceful_deletion import Options
from steersman.server.registry.pod import conditioned
from steersman.server.registry.resources import Resource
from steersman.server.rest.delete import delete, intended
from steersman.server.server import Server
from steersman.server.storage.watch import Selection

_MOST_DISRUPTED = 2000


def evict(
    server: Server,
    pods: Resource,
    namespace: str,
    name: str,
    body: object,
    user: str,
    *,
    dry_run: bool = False,
) -> dict[str, Any]:
    """Delete a pod if its disruption budget allows it; or, in a dry run, only say whether it does."""
    eviction = adopt(Eviction, body)
    if eviction.metadata.name and eviction.metadata.name != name:
        raise status_errors.bad_request("name in URL does not match name in Eviction object")
    wish = eviction.deleteOptions
    options = Options()
    if wish is not None:
        limits = wish.preconditions
        options = Options(
            uid=(limits.uid if limits is not None else None) or "",
            version=(limits.resourceVersion if limits is not None else None) or "",
            propagation=wish.propagationPolicy,
            grace=wish.gracePeriodSeconds,
        )
        dry_run = dry_run or "All" in (wish.dryRun or ())
    pod: Pod = server.get(pods, namespace, name)
    intended(pods, pod, options)
    if pod.status.phase not in ("Succeeded", "Failed", "Pending") and pod.metadata.deletionTimestamp is None:
        spend = _spending(server, pod)
        if spend is not None and not dry_run:
            spend()
    if dry_run:
        return status_errors.success()
    doomed = PodCondition(
        type="DisruptionTarget",
        status="True",
        reason="EvictionByEvictionAPI",
        message="Eviction API: evicting",
    )
    now = server.now()
    server.rewrite(
        pods,
        namespace,
        name,
        lambda pod: replace(
            pod, status=replace(pod.status, conditions=conditioned(pod.status.conditions, doomed, now))
        ),
    )
    delete(server, pods, namespace, name, options._replace(version=""), user=user)
    return status_errors.success()


def _spending(server: Server, pod: Pod) -> Callable[[], Any] | None:
    """How to take one disruption from the pod's budget, if it must be; refuses where none is left."""
    resource = server.registry.find("policy", "v1", "poddisruptionbudgets")
    meta = pod.metadata
    budgets: list[PodDisruptionBudget] = [
        budget for budget in server.table(resource).select(Selection(meta.namespace)) if _covers(budget, pod)
    ]
    if not budgets:
        return None
    if len(budgets) > 1:
        raise ServerError(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )
    budget = budgets[0]
    status = budget.status
    if not any(c.type == "Ready" and c.status == "True" for c in pod.status.conditions):
        if budget.spec.unhealthyPodEvictionPolicy == "AlwaysAllow":
            return None
        if status.currentHealthy >= status.desiredHealthy > 0:
            return None
    _allowed(budget)
    now = server.now()
    spent = replace(
        status,
        disruptionsAllowed=status.disruptionsAllowed - 1,
        disruptedPods={**status.disruptedPods, meta.name: now},
    )
    if not spent.disruptionsAllowed:
        spent = replace(spent, conditions=_insufficient(spent, now))
    return lambda: server.rewrite(
        resource,
        meta.namespace,
        budget.metadata.name,
        lambda old: replace(old, status=spent),
        subresource="status",
    )


def _insufficient(status: PodDisruptionBudgetStatus, now: datetime) -> tuple[Condition, ...]:
    """The conditions of a budget whose last disruption was spent."""
    old = next((c for c in status.conditions if c.type == "DisruptionAllowed"), None)
    said = Condition(
        type="DisruptionAllowed",
        status="False",
        reason="InsufficientPods",
        observedGeneration=status.observedGeneration,
        lastTransitionTime=old.lastTransitionTime if old is not None and old.status == "False" else now,
    )
    return (*(c for c in status.conditions if c is not old), said)


def _covers(budget: PodDisruptionBudget, pod: Pod) -> bool:
    try:
        return compile_selector(budget.spec.selector).matches(pod.metadata.labels)
    except ValueError:
        return False


def _allowed(budget: PodDisruptionBudget) -> None:
    name, status = budget.metadata.name, budget.status
    if status.observedGeneration < budget.metadata.generation:
        raise _exhausted(f"The disruption budget {name} is still being processed by the server.", 10.0)
    if status.disruptionsAllowed < 0:
        raise status_errors.forbidden(
            "policy", "poddisruptionbudget", name, "pdb disruptions allowed is negative"
        )
    if len(status.disruptedPods) > _MOST_DISRUPTED:
        raise status_errors.forbidden(
            "policy",
            "poddisruptionbudget",
            name,
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
        )
    if status.disruptionsAllowed == 0:
        raise _exhausted(_why_exhausted(budget), 0.0)


def _why_exhausted(budget: PodDisruptionBudget) -> str:
    name, status = budget.metadata.name, budget.status
    condition = next((c for c in status.conditions if c.type == "DisruptionAllowed"), None)
    said = condition.message if condition is not None and condition.status == "False" else ""
    if condition is not None and said and condition.reason == "SyncFailed":
        return f"The disruption budget {name} does not allow evicting pods currently because it failed sync: {said}"
    if status.currentHealthy <= status.desiredHealthy:
        return (
            f"The disruption budget {name} needs {status.desiredHealthy} healthy pods "
            f"and has {status.currentHealthy} currently"
        )
    if condition is not None and said:
        return f"The disruption budget {name} does not allow evicting pods currently ({condition.reason}): {said}"
    return f"The disruption budget {name} does not allow evicting pods currently"


def _exhausted(why: str, retry: float) -> ApiError:
    return status_errors.too_many(
        "Cannot evict pod as it would violate the pod's disruption budget.",
        retry,
        (Cause("DisruptionBudget", why, ""),),
    )
