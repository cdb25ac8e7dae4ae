"""ResourceClaims: missing ones, and those without devices, with the pods that wait for them."""

from __future__ import annotations

from collections.abc import Iterator

from steersman.explain.model import Case, Document, Finding, Weight, message_of
from steersman.explain.owners import SCHEDULER
from steersman.explain.situations.registry import situation
from steersman.explain.words import brief, some


def claim_users(case: Case) -> Iterator[Document]:
    """The pods that use a ResourceClaim, by its name or by a template that it was made from."""
    for pod in case.snapshot.objects("Pod", case.ref.namespace):
        named = (pod.get("spec") or {}).get("resourceClaims") or ()
        made = (pod.get("status") or {}).get("resourceClaimStatuses") or ()
        if any(each.get("resourceClaimName") == case.ref.name for each in (*named, *made)):
            yield pod


@situation("ResourceClaim")
def not_allocated(case: Case) -> Iterator[Finding]:
    """Pods wait for the devices of the claim; the scheduler allocates them together with the node of a pod."""
    users = sorted(pod["metadata"]["name"] for pod in claim_users(case))
    if users and not case.status.get("allocation"):
        yield Finding(
            code="not-allocated",
            subject=case.ref,
            cause=f"no devices are allocated to it, and Pod {some(users)} waits for them",
            controller=SCHEDULER,
            next="the scheduler allocates devices when it finds a node for a pod that uses the claim",
            weight=Weight.CONSEQUENCE,
        )


def missing_claim(case: Case) -> tuple[str, str] | None:
    """Why a ResourceClaim that a pod needs does not exist, and the remedy; None if there is no such claim.

    The scheduler does not even try a pod before all its claims exist, and says nothing about it.
    """
    failed = case.snapshot.events(case.document, "FailedResourceClaimCreation")
    for each in case.spec.get("resourceClaims") or ():
        name = each.get("resourceClaimName")
        if name and case.snapshot.known("ResourceClaim"):
            if case.snapshot.get("ResourceClaim", case.ref.namespace, name) is None:
                return f"ResourceClaim {name}, which it uses, does not exist", f"create ResourceClaim {name}"
        elif not name and failed:
            cause = f"a ResourceClaim that it uses cannot be created: {brief(message_of(failed[0]))}"
            return (
                cause,
                f"create ResourceClaimTemplate {each.get('resourceClaimTemplateName')}, or correct its name",
            )
    return None


@situation("Pod")
def claim_missing(case: Case) -> Iterator[Finding]:
    """A ResourceClaim that the pod needs does not exist."""
    missing = missing_claim(case)
    if missing is None or case.spec.get("nodeName") or case.meta.get("deletionTimestamp"):
        return
    cause, remedy = missing
    yield Finding(
        code="missing-resource-claim",
        subject=case.ref,
        cause=cause,
        controller="resourceclaim-controller",
        next="the scheduler looks at the pod when all its ResourceClaims exist",
        remedy=remedy,
    )
