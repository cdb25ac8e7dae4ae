"""Strategies of DaemonSets (template generation) and Jobs (generated selector)."""

from __future__ import annotations

from msgspec.structs import replace

from steersman.api.generated.apps_v1 import DaemonSet, DaemonSetStatus
from steersman.api.generated.batch_v1 import Job, JobStatus
from steersman.api.generated.meta_v1 import LabelSelector
from steersman.server.defaulting.workloads import TEMPLATE_GENERATION
from steersman.server.registry.strategy import WriteContext

# -- daemonsets -------------------------------------------------------------------------------


def prepare_daemonset_for_create(obj: DaemonSet, context: WriteContext) -> DaemonSet:
    """Starts the template generation at 1 and clears the status."""
    return replace(_with_template_generation(obj, 1), status=DaemonSetStatus())


def prepare_daemonset_for_update(new: DaemonSet, old: DaemonSet, context: WriteContext) -> DaemonSet:
    """Increments the template generation if the template changed; a client cannot set it."""
    text = old.metadata.annotations.get(TEMPLATE_GENERATION, "")
    generation = int(text) if text.isascii() and text.isdigit() else 0
    if new.spec.template != old.spec.template:
        generation += 1
    return replace(_with_template_generation(new, generation), status=old.status)


def _with_template_generation(obj: DaemonSet, generation: int) -> DaemonSet:
    annotations, text = obj.metadata.annotations, str(generation)
    if annotations.get(TEMPLATE_GENERATION) == text:
        return obj
    annotations = {**annotations, TEMPLATE_GENERATION: text}
    return replace(obj, metadata=replace(obj.metadata, annotations=annotations))


# -- jobs -------------------------------------------------------------------------------------

_UID = "batch.kubernetes.io/controller-uid"
_NAME = "batch.kubernetes.io/job-name"


def prepare_job_for_create(job: Job, context: WriteContext) -> Job:
    """Generates the selector of a new Job from its uid and labels its template to match."""
    job = replace(job, status=JobStatus())
    if job.spec.manualSelector:
        return job
    meta, template = job.metadata, job.spec.template
    own = {"job-name": meta.name, _NAME: meta.name, "controller-uid": meta.uid, _UID: meta.uid}
    before = template.metadata.labels
    labels = {**own, **before}
    selector = job.spec.selector or LabelSelector()
    if _UID not in selector.matchLabels:
        selector = replace(selector, matchLabels={**selector.matchLabels, _UID: meta.uid})
    template = replace(template, metadata=replace(template.metadata, labels=labels))
    # Upstream defaults an object again when it is read, and so labels the Job like its pods. Labels that it has by default are
    # the very map of its template, to which the labels of the pods are added.
    if not meta.labels or meta.labels is before:
        meta = replace(meta, labels=labels)
    return replace(job, metadata=meta, spec=replace(job.spec, selector=selector, template=template))
