"""Refused creates: a controller asks for pods, and the API server says no. The message names the rule that refuses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import timedelta

import msgspec

from steersman.api.quantity import Quantity
from steersman.explain.model import Case, Finding, Weight, message_of
from steersman.explain.owners import controller_of_kind
from steersman.explain.situations.registry import situation
from steersman.explain.situations.running import CREATORS, next_try, replicaset_refused
from steersman.explain.words import brief

RECENT = timedelta(hours=1)
"""An event that is older explains nothing any more."""


class Refusal(msgspec.Struct, frozen=True):
    """A message of the API server, and its meaning."""

    code: str
    pattern: re.Pattern[str]
    cause: Callable[[re.Match[str]], str]
    remedy: str


def _refusal(code: str, pattern: str, cause: Callable[[re.Match[str]], str], remedy: str) -> Refusal:
    return Refusal(code, re.compile(pattern), cause, remedy)


REFUSALS = (
    _refusal(
        "quota",
        r"exceeded quota: (?P<name>[^,\s]+), requested: (?P<wanted>.+?), used: (?P<used>.+?), limited: (?P<limit>[^\s]+)",
        lambda m: (
            f"ResourceQuota {m['name']} is used up ({m['used']} used of {m['limit']}), "
            f"so no more {_resource(m.string)} may be created"
        ),
        "raise the quota, or free what is used of it",
    ),
    _refusal(
        "quota-requests",
        r"failed quota: (?P<name>[^:\s]+): must specify (?P<what>[^;]+?)(?: for: (?P<who>[^;]+))?(?:;|$)",
        lambda m: (
            f"ResourceQuota {m['name']} demands that every pod sets {m['what'].strip()}, and these do not"
        ),
        "set the requests or limits in the pod template, or give the namespace a LimitRange with defaults",
    ),
    _refusal(
        "pod-security",
        r'violates PodSecurity "(?P<level>[^"]+)": (?P<what>.+)',
        lambda m: f"Pod Security {m['level']} forbids these pods: {brief(m['what'])}",
        "correct the security context of the pod template, or the pod-security labels of the namespace",
    ),
    _refusal(
        "webhook",
        r'admission webhook "(?P<name>[^"]+)" denied the request:? ?(?P<what>.*)',
        lambda m: (
            f"admission webhook {m['name']} denies these pods: {brief(m['what'] or 'without a reason')}"
        ),
        "change the pod template to what the webhook allows, or ask its owner",
    ),
    _refusal(
        "webhook-down",
        r'failed calling webhook "(?P<name>[^"]+)": (?P<what>.+)',
        lambda m: (
            f"admission webhook {m['name']} does not answer, and nothing is admitted without it: {brief(m['what'])}"
        ),
        "repair the webhook's service, or set failurePolicy: Ignore",
    ),
    _refusal(
        "policy",
        r"ValidatingAdmissionPolicy '(?P<name>[^']+)' with binding '(?P<by>[^']+)' denied request: (?P<what>.+)",
        lambda m: (
            f"ValidatingAdmissionPolicy {m['name']} (binding {m['by']}) denies these pods: {brief(m['what'])}"
        ),
        "change the pod template to what the policy allows",
    ),
    _refusal(
        "service-account",
        r'serviceaccount "(?P<name>[^"]+)" not found',
        lambda m: f"ServiceAccount {m['name']} does not exist, and the pods name it",
        "create the ServiceAccount, or correct serviceAccountName in the pod template",
    ),
    _refusal(
        "limit-range",
        r"((maximum|minimum) \S+ usage per|\S+ max limit to request ratio per) \w+ is .+",
        lambda m: f"a LimitRange of the namespace forbids these pods: {brief(m[0])}",
        "change the requests or limits in the pod template, or the LimitRange",
    ),
    _refusal(
        "priority-class",
        r"no PriorityClass with name (?P<name>\S+) was found",
        lambda m: f"PriorityClass {m['name']} does not exist, and the pods name it",
        "create the PriorityClass, or correct priorityClassName in the pod template",
    ),
    _refusal(
        "runtime-class",
        r'RuntimeClass "(?P<name>[^"]+)" not found',
        lambda m: f"RuntimeClass {m['name']} does not exist, and the pods name it",
        "create the RuntimeClass, or correct runtimeClassName in the pod template",
    ),
    _refusal(
        "rights",
        r'User "(?P<user>[^"]+)" cannot (?P<verb>\w+) resource "(?P<what>[^"]+)"',
        lambda m: f"{m['user']} has no right to {m['verb']} {m['what']}",
        "restore the ClusterRole and its binding of the controller",
    ),
    _refusal(
        "invalid",
        r"is invalid: (?P<what>.+)",
        lambda m: f"the pod template makes invalid pods: {brief(m['what'])}",
        "correct the pod template",
    ),
)


def _resource(message: str) -> str:
    """The resource whose object is refused, as the API server names it: ``jobs`` of ``jobs.batch "x" is forbidden``."""
    named = re.search(r'([a-z]+)[a-z.0-9]* "[^"]*" is forbidden', message)
    return named[1] if named else "pods"


@situation("Deployment", "CronJob", *CREATORS)
def refused_create(case: Case) -> Iterator[Finding]:
    """The creation of pods, claims, ReplicaSets or Jobs is refused: quota, policy, webhook, missing ServiceAccount …"""
    message = _message(case)
    if not message:
        return
    controller = controller_of_kind(case.ref.kind)
    for refusal in REFUSALS:
        if (match := refusal.pattern.search(message)) is not None:
            yield Finding(
                code=refusal.code,
                subject=case.ref,
                cause=refusal.cause(match),
                controller=controller,
                next=f"{controller} tries again{next_try(case) or ', with a growing delay'}",
                remedy=refusal.remedy,
            )
            return
    yield Finding(
        code="refused",
        subject=case.ref,
        cause=f"the API server refuses its {_resource(message)}: {brief(message)}",
        controller=controller,
        next=f"{controller} tries again{next_try(case) or ', with a growing delay'}",
    )


def _message(case: Case) -> str:
    """The latest refusal: the condition where there is one, else an event, unless a pod was created since."""
    failure = case.condition("ReplicaFailure")
    if failure.get("status") == "True" and failure.get("reason") == "FailedCreate":
        # A Deployment repeats the condition of its ReplicaSet, which has the finding.
        return str(failure.get("message", "")) if case.ref.kind != "Deployment" else ""
    if refused := replicaset_refused(case):
        return refused
    for event in case.snapshot.events(case.document, "FailedCreate", "SuccessfulCreate"):
        if event.get("reason") == "SuccessfulCreate":
            # Of a burst, some may be created and the others refused in the same second.
            if _lacks_pods(case):
                continue
            return ""
        seen = case.time(event.get("lastTimestamp") or event.get("eventTime"))
        if seen is None or case.now - seen < RECENT:
            return message_of(event)
        return ""
    return ""


def _lacks_pods(case: Case) -> bool:
    wanted = case.spec.get("replicas", case.status.get("desiredNumberScheduled", 0))
    pods = len(case.snapshot.owned(case.document, "Pod"))
    return isinstance(wanted, int) and pods < wanted


@situation("ResourceQuota")
def used_up(case: Case) -> Iterator[Finding]:
    """A resource of the quota is used up: whatever needs more of it is refused."""
    used = case.status.get("used") or {}
    for name, limit in (case.status.get("hard") or {}).items():
        amount = str(used.get(name, "0"))
        if Quantity.parse(amount) >= Quantity.parse(str(limit)):
            yield Finding(
                code="used-up",
                subject=case.ref,
                cause=f"{name} is used up ({amount} of {limit})",
                controller=controller_of_kind(case.ref.kind),
                remedy="raise the quota, or free what is used of it",
                weight=Weight.NOTE,
            )
