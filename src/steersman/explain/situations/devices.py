"""ResourceClaims: missing ones, and those without devices, with the pods that wait for them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta

from steersman.explain.model import Case, Document, Finding, Weight, message_of
from steersman.explain.owners import SCHEDULER
from steersman.explain.situations.refusals import REFUSALS
from steersman.explain.situations.registry import situation
from steersman.explain.words import brief, some

FAILED = re.compile(r"Pod(Group)?ResourceClaim (?P<name>\S+): .+", re.DOTALL)
"""The message of an event about a ResourceClaim of a pod or PodGroup that was not created."""
SOON = timedelta(seconds=10)
"""The time that making a claim may take."""
NOT_ABOUT_PODS = ("quota", "webhook-down", "rights")
"""The codes of refusals that are told of a ResourceClaim in the words in which they are told of a pod."""


def claim_users(case: Case) -> Iterator[Document]:
    """The pods that use a ResourceClaim: by its name, by a template that it was made from, or by extended resources."""
    for pod in case.snapshot.objects("Pod", case.ref.namespace):
        status = pod.get("status") or {}
        named = (pod.get("spec") or {}).get("resourceClaims") or ()
        made = status.get("resourceClaimStatuses") or ()
        extended = status.get("extendedResourceClaimStatus") or {}
        if any(each.get("resourceClaimName") == case.ref.name for each in (*named, *made, extended)):
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
    if case.snapshot.known("ResourceClaim"):
        for each in case.spec.get("resourceClaims") or ():
            name = each.get("resourceClaimName")
            if name and case.snapshot.get("ResourceClaim", case.ref.namespace, name) is None:
                return f"ResourceClaim {name}, which it uses, does not exist", f"create ResourceClaim {name}"
    return _claim_not_created(case)


def _claim_not_created(case: Case) -> tuple[str, str] | None:
    """Why a ResourceClaim was not made from its template, as the latest event tells it, and the remedy."""
    group = (case.spec.get("schedulingGroup") or {}).get("podGroupName")
    asked = [case.document]
    if group:
        # The pods of a PodGroup wait for the claims that they share.
        asked.append({"kind": "PodGroup", "metadata": {"name": group, "namespace": case.ref.namespace}})
    for document in asked:
        events = case.snapshot.events(document, "FailedResourceClaimCreation")
        failed = FAILED.search(message_of(events[0])) if events else None
        if failed is not None and not _is_made(case, failed["name"]):
            return _refused_claim(failed[0])
    created = case.time(case.meta.get("creationTimestamp"))
    if created is None or case.now - created < SOON:
        return None
    for each in case.spec.get("resourceClaims") or ():
        template = each.get("resourceClaimTemplateName")
        if template and not _is_made(case, str(each.get("name"))):
            remedy = f"see whether PodGroup {group} exists: kubectl describe podgroup {group}{case.ref.namespace_flag}"
            cause = f"the ResourceClaim that it uses has not been made from ResourceClaimTemplate {template}"
            return cause, remedy if group else ""
    return None


def _refused_claim(message: str) -> tuple[str, str]:
    """The meaning of a message that says why a ResourceClaim was not made, and the remedy."""
    for refusal in REFUSALS:
        if refusal.code in NOT_ABOUT_PODS and (match := refusal.pattern.search(message)) is not None:
            return f"a ResourceClaim that it uses cannot be created: {refusal.cause(match)}", refusal.remedy
    template = re.search(r'resource claim template "([^"]+)": .*not found', message)
    remedy = f"create ResourceClaimTemplate {template[1]}, or correct its name" if template else ""
    return f"a ResourceClaim that it uses cannot be created: {brief(message)}", remedy


def _is_made(case: Case, name: str) -> bool:
    """Whether the claim that a pod gives this name has been made since, or was found not to be needed."""
    for each in case.status.get("resourceClaimStatuses") or ():
        if each.get("name") == name:
            made = each.get("resourceClaimName")
            known = made and case.snapshot.known("ResourceClaim")
            return not known or case.snapshot.get("ResourceClaim", case.ref.namespace, made) is not None
    return False


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
