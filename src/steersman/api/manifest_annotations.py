"""Annotations in which clients keep the whole manifest of an object: those of a Secret repeat its data."""

from __future__ import annotations

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
MAX_LENGTH = 128
"""Characters of an annotation that is no manifest for sure. Helm and Rancher keep theirs compressed, so that text tells nothing."""


def may_hold_manifest(name: str, value: object) -> bool:
    """Whether an annotation may hold a manifest: kubectl's and kapp's are JSON, those of others long."""
    text = str(value)
    return name == LAST_APPLIED or text.lstrip()[:1] in ("{", "[") or len(text) > MAX_LENGTH
