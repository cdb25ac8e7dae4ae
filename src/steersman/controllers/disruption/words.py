"""What is said of pods that nobody controls."""

from __future__ import annotations

from steersman.api.kinds import LabelSelector
from steersman.api.kinds.policy import PodDisruptionBudget


def described(budget: PodDisruptionBudget) -> str:
    """Upstream's message, which prints the selector as Go does."""
    return (
        f"Pods selected by this PodDisruptionBudget (selector: {selector(budget.spec.selector)}) were found to be "
        "unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may result in "
        'undefined behavior. To account for these pods please set ".spec.minAvailable" field of the PDB to an '
        "integer value."
    )


def selector(of: LabelSelector | None) -> str:
    """A selector as Go prints it."""
    if of is None:
        return "nil"
    labels = "".join(f"{key}: {of.matchLabels[key]}," for key in sorted(of.matchLabels))
    rules = "".join(
        f"LabelSelectorRequirement{{Key:{one.key},Operator:{one.operator},Values:[{' '.join(one.values)}],}},"
        for one in of.matchExpressions
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{rules}}},}}"
    )
