"""Eviction: deletes a pod if its PodDisruptionBudget allows it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from steersman.api.errors import ApiError, Cause, NotFound, ServerError
from steersman.api.generated.core_v1 import Pod, PodCondition
from steersman.api.generated.meta_v1 import Condition
from steersman.api.generated.policy_v1 import Eviction, PodDisruptionBudget, PodDisruptionBudgetStatus
from steersman.api.label_selectors import compile_selector
from steersman.server import status_errors
from steersman.server.registry.graceful_deletion import (
    DeletionOptions,
    deletion_options,
    validate_deletion_options,
)
from steersman.server.registry.pod import set_condition
from steersman.server.rest.create import admit_body
from steersman.server.rest.delete import check_preconditions, delete_admitted
from steersman.server.rest.request import Request, check_identity
from steersman.server.server import Server
from steersman.server.storage.watch import Selection

_MOST_DISRUPTED = 2000


def evict(server: Server, request: Request, eviction: Eviction) -> Mapping[str, Any]:
    """Deletes a pod if its disruption budget allows it; returns a Status."""
    namespace, name = request.namespace, request.name
    if eviction.metadata.name != name:
        raise status_errors.bad_request("name in URL does not match name in Eviction object")
    check_identity(request, eviction.metadata.namespace, name)
    given, pods = eviction.deleteOptions, request.resource
    options = DeletionOptions() if given is None else deletion_options(given)
    try:
        pod: Pod = server.get(pods, namespace, name)
    except NotFound:
        # Admitted before the pod is looked for, as upstream does: a node is refused in words of its own.
        admit_body(server, request, pods, name, eviction)
        raise
    check_preconditions(pods, pod, options)
    admit_body(server, request, pods, name, eviction)
    if pod.status.phase not in ("Succeeded", "Failed", "Pending") and pod.metadata.deletionTimestamp is None:
        _spend_disruption(server, pod)
    if given is not None:
        validate_deletion_options(given)
    target = PodCondition(
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
            pod, status=replace(pod.status, conditions=set_condition(pod.status.conditions, target, now))
        ),
    )
    # The condition has changed the version that a precondition may name.
    evicted = replace(request, subresource="", deletion=options._replace(resource_version=None))
    delete_admitted(server, evicted, server.get(pods, namespace, name))
    return status_errors.success_status()


def is_dry_run(eviction: Eviction) -> bool:
    """Whether the options within an Eviction make it a dry run."""
    return eviction.deleteOptions is not None and bool(eviction.deleteOptions.dryRun)


def _spend_disruption(server: Server, pod: Pod) -> None:
    """Takes one disruption from the budget of a pod that has one; refuses where none is left."""
    resource = server.registry.find("policy", "v1", "poddisruptionbudgets")
    meta = pod.metadata
    budgets: list[PodDisruptionBudget] = [
        budget for budget in server.table(resource).select(Selection(meta.namespace)) if _covers(budget, pod)
    ]
    if not budgets:
        return
    if len(budgets) > 1:
        raise ServerError(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )
    budget = budgets[0]
    status = budget.status
    if not any(c.type == "Ready" and c.status == "True" for c in pod.status.conditions):
        if budget.spec.unhealthyPodEvictionPolicy == "AlwaysAllow":
            return
        if status.currentHealthy >= status.desiredHealthy > 0:
            return
    _check_allowed(budget)
    now = server.now()
    spent = replace(
        status,
        disruptionsAllowed=status.disruptionsAllowed - 1,
        disruptedPods={**status.disruptedPods, meta.name: now},
    )
    if not spent.disruptionsAllowed:
        spent = replace(spent, conditions=_insufficient(spent, now))
    server.rewrite(
        resource,
        meta.namespace,
        budget.metadata.name,
        lambda old: replace(old, status=spent),
        subresource="status",
    )


def _insufficient(status: PodDisruptionBudgetStatus, now: datetime) -> tuple[Condition, ...]:
    """The conditions of a budget whose last disruption has been spent."""
    old = next((c for c in status.conditions if c.type == "DisruptionAllowed"), None)
    insufficient = Condition(
        type="DisruptionAllowed",
        status="False",
        reason="InsufficientPods",
        observedGeneration=status.observedGeneration,
        lastTransitionTime=old.lastTransitionTime if old is not None and old.status == "False" else now,
    )
    return (*(c for c in status.conditions if c is not old), insufficient)


def _covers(budget: PodDisruptionBudget, pod: Pod) -> bool:
    try:
        return compile_selector(budget.spec.selector).matches(pod.metadata.labels)
    except ValueError:
        return False


def _check_allowed(budget: PodDisruptionBudget) -> None:
    """Refuses an eviction that a budget does not allow."""
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
    message = condition.message if condition is not None and condition.status == "False" else ""
    if condition is not None and message and condition.reason == "SyncFailed":
        return f"The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
    if status.currentHealthy <= status.desiredHealthy:
        return (
            f"The disruption budget {name} needs {status.desiredHealthy} healthy pods "
            f"and has {status.currentHealthy} currently"
        )
    if condition is not None and message:
        return f"The disruption budget {name} does not allow evicting pods currently ({condition.reason}): {message}"
    return f"The disruption budget {name} does not allow evicting pods currently"


def _exhausted(why: str, retry: float) -> ApiError:
    return status_errors.too_many_requests(
        "Cannot evict pod as it would violate the pod's disruption budget.",
        retry,
        (Cause("DisruptionBudget", why, ""),),
    )
