"""DaemonSets: the generation of their template, which pods of before there were revisions are told apart by."""

from __future__ import annotations

from msgspec.structs import replace

from steersman.api.generated.apps_v1 import DaemonSet, DaemonSetStatus
from steersman.server.defaulting.workloads import TEMPLATE_GENERATION
from steersman.server.registry.strategy import WriteContext

_GENERATION = TEMPLATE_GENERATION


def created(obj: DaemonSet, context: WriteContext) -> DaemonSet:
    return replace(_numbered(obj, 1), status=DaemonSetStatus())


def updated(new: DaemonSet, old: DaemonSet, context: WriteContext) -> DaemonSet:
    """A changed template is a new generation of it, whatever the writer says."""
    said = old.metadata.annotations.get(_GENERATION, "")
    generation = int(said) if said.isascii() and said.isdigit() else 0
    if new.spec.template != old.spec.template:
        generation += 1
    return replace(_numbered(new, generation), status=old.status)


def _numbered(obj: DaemonSet, generation: int) -> DaemonSet:
    annotations, text = obj.metadata.annotations, str(generation)
    if annotations.get(_GENERATION) == text:
        return obj
    return replace(obj, metadata=replace(obj.metadata, annotations={**annotations, _GENERATION: text}))
