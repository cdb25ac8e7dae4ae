"""The scheduler's reasons against nodes, each with its meaning in words and a remedy."""

from __future__ import annotations

import re

import msgspec

from steersman.explain.words import brief

AVAILABLE = re.compile(r"^(\d+)/(\d+) nodes are available: (.*)$", re.DOTALL)
PREDICATE = re.compile(r"(?:^|, )(\d+) ([^,]+(?:\{[^}]*\}[^,]*)?)")


class Predicate(msgspec.Struct, frozen=True):
    """A reason of the scheduler, and its meaning."""

    code: str
    pattern: re.Pattern[str]
    meaning: str
    remedy: str


PREDICATES = tuple(
    Predicate(code, re.compile(pattern), meaning, remedy)
    for code, pattern, meaning, remedy in (
        (
            "resources",
            r"Insufficient (?P<what>\S+)",
            "{n} have too little {what}",
            "add nodes, free {what}, or lower the requests of the pod",
        ),
        (
            "too-many-pods",
            r"Too many pods",
            "{n} have their full number of pods",
            "add nodes, or remove pods",
        ),
        (
            "taint",
            r"had untolerated taint(?:\(s\)|s)? ?\{?(?P<what>[^}]*)\}?",
            "{n} have a taint that the pod does not tolerate ({what})",
            "add a toleration to the pod, or remove the taint",
        ),
        (
            "cordoned",
            r"were unschedulable",
            "{n} are cordoned",
            "uncordon a node: kubectl uncordon NODE",
        ),
        (
            "affinity",
            r"didn't match Pod's node affinity/selector|didn't satisfy plugin\(s\) \[NodeAffinity\]",
            "{n} do not match its nodeSelector or node affinity",
            "label a node accordingly, or change the nodeSelector",
        ),
        (
            "anti-affinity",
            r"didn't match pod anti-affinity rules",
            "{n} have a pod that its anti-affinity excludes",
            "add nodes, or make the anti-affinity a preference",
        ),
        (
            "anti-affinity",
            r"didn't satisfy existing pods anti-affinity rules",
            "{n} have a pod whose anti-affinity excludes it",
            "add nodes, or make that pod's anti-affinity a preference",
        ),
        (
            "pod-affinity",
            r"didn't match pod affinity rules",
            "{n} lack the pods that its affinity asks for",
            "start those pods, or make the affinity a preference",
        ),
        (
            "spread",
            r"didn't match pod topology spread constraints",
            "{n} would break its topology spread",
            "add nodes in the missing zones, or set whenUnsatisfiable: ScheduleAnyway",
        ),
        (
            "volume-zone",
            r"didn't match PersistentVolume's node affinity|had volume node affinity conflict|had no available volume zone",
            "{n} cannot reach its volume, which is bound to another node or zone",
            "make room on a node where the volume is, or add one there",
        ),
        (
            "no-local-volume",
            r"didn't find available persistent volumes to bind",
            "{n} have no volume for its claims, and none can be provisioned there",
            "create a PersistentVolume there, or change the allowedTopologies of the StorageClass",
        ),
        (
            "lost-volume",
            r"unavailable due to one or more pvc\(s\) bound to non-existent pv\(s\)",
            "its claim is bound to a PersistentVolume that does not exist",
            "restore the volume under the same name, or delete the claim and its data",
        ),
        (
            "storage-capacity",
            r"did not have enough free storage",
            "{n} have too little storage for its claims",
            "ask for less storage, or add some: kubectl get csistoragecapacities -A",
        ),
        (
            "disk",
            r"had no available disk",
            "{n} have a pod that uses its volume, which takes one pod only",
            "run one replica, or use another volume",
        ),
        (
            "ports",
            r"didn't have free ports",
            "{n} have its host port in use",
            "add nodes, or do without the host port",
        ),
        ("volume-limit", r"exceed max volume count", "{n} have their full number of volumes", "add nodes"),
        (
            "single-pod-volume",
            r"PersistentVolumeClaim with ReadWriteOncePod access mode already in-use",
            "its ReadWriteOncePod volume is used by another pod",
            "run one replica, or use a claim with another access mode",
        ),
        (
            "devices",
            r"cannot allocate all claims",
            "{n} lack the devices that its ResourceClaims ask for",
            "add nodes with such devices, or ask for fewer: kubectl get resourceslices, kubectl get resourceclaims",
        ),
    )
)


def read_predicates(message: str, taints: str = "") -> tuple[str, str, str]:
    """The code, the cause and the remedy in a message of the scheduler. ``taints`` are those that the message leaves out."""
    match = AVAILABLE.match(message)
    if match is None:
        return "unschedulable", f"not scheduled: {brief(message) or 'the scheduler gives no reason'}", ""
    _, total, reasons = match.groups()
    if total == "0":
        return "no-nodes", "there is no node at all", "add a node"
    # What follows the first sentence is about preemption.
    reasons = reasons.partition(". ")[0].rstrip(". ")
    told: list[str] = []
    code, remedy = "unschedulable", ""
    for number, reason in PREDICATE.findall(reasons):
        for predicate in PREDICATES:
            found = predicate.pattern.search(reason)
            if found is not None:
                words = {"n": number, **{k: v.strip() or taints for k, v in found.groupdict().items()}}
                told.append(_agree(predicate.meaning.format(**words)))
                if not remedy:
                    code, remedy = predicate.code, predicate.remedy.format(**words)
                break
        else:
            told.append(f"{number} {reason.strip()}")
    # What is wrong with the pod itself is said without a number of nodes.
    return code, f"no node of {total} fits: {', '.join(told) or brief(reasons)}", remedy


_SINGULAR = {"have": "has", "are": "is", "do": "does", "lack": "lacks"}


def _agree(clause: str) -> str:
    """A clause of the scheduler's message, with its verb in the singular where it is about one node."""
    number, verb, rest = clause.removesuffix(" ()").split(" ", 2)
    return (
        f"{number} {_SINGULAR.get(verb, verb)} {rest.replace('their full', 'its full')}"
        if number == "1"
        else clause
    )
