"""Metrics of resourceclaim-controller, under upstream's names, and the count of claims behind one of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from steersman.api.kinds.devices import (
    EXTENDED_RESOURCE_CLAIM,
    POD_CLAIM_NAME,
    ResourceClaim,
    ResourceClaimSpec,
)
from steersman.intent.controller import Change
from steersman.intent.metrics import Measure, Metric

CREATES = Metric(
    "resourceclaim_controller_creates_total",
    "Number of requests to create a ResourceClaim, by their outcome and whether the claim has admin access",
    ("status", "admin_access"),
)
CLAIMS = Metric(
    "resourceclaim_controller_resource_claims",
    "Number of ResourceClaims, by whether they are allocated, whether they have admin access, and their source: "
    "a template, extended resources, or neither",
    ("allocated", "admin_access", "source"),
    gauge=True,
)
METRICS = (CREATES, CLAIMS)


def needs_admin_access(spec: ResourceClaimSpec) -> bool:
    """Whether a claim asks for admin access. Only exact requests can."""
    return any(each.exactly is not None and each.exactly.adminAccess for each in spec.devices.requests or ())


def has_prioritized_list(spec: ResourceClaimSpec) -> bool:
    """Whether a claim has a list of requests of which the first that can be satisfied is taken."""
    return any(each.firstAvailable for each in spec.devices.requests or ())


def admin_access_label(spec: ResourceClaimSpec) -> str:
    return "true" if needs_admin_access(spec) else "false"


def claim_labels(claim: ResourceClaim) -> tuple[str, str, str]:
    """The labels under which a claim is counted."""
    annotations = claim.metadata.annotations
    source = ""
    if annotations.get(EXTENDED_RESOURCE_CLAIM) == "true":
        source = "extended_resource"
    elif annotations.get(POD_CLAIM_NAME):
        source = "resource_claim_template"
    allocated = "true" if claim.status.allocation is not None else "false"
    return allocated, admin_access_label(claim.spec), source


class ClaimCounts:
    """The number of claims by their labels, kept from the changes of claims."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str, str]] = Counter()

    def measure(self, change: Change[ResourceClaim]) -> Iterator[Measure]:
        """Counts a change, and measures the counts that it changes."""
        old = claim_labels(change.old) if change.old is not None else None
        new = claim_labels(change.new) if change.new is not None else None
        if old == new:
            return
        for labels, difference in ((old, -1), (new, 1)):
            if labels is not None:
                self._counts[labels] += difference
                yield Measure(CLAIMS, self._counts[labels], labels)
