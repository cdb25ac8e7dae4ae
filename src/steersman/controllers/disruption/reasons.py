"""What is said of pods that nobody controls."""

from __future__ import annotations

from steersman.api.kinds.policy import PodDisruptionBudget
from steersman.api.label_selectors import printed


def described(budget: PodDisruptionBudget) -> str:
    """Upstream's message, which prints the selector as Go does."""
    return (
        f"Pods selected by this PodDisruptionBudget (selector: {printed(budget.spec.selector)}) were found to be "
        "unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may result in "
        'undefined behavior. To account for these pods please set ".spec.minAvailable" field of the PDB to an '
        "integer value."
    )
