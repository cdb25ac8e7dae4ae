"""Jobs: a selector nobody has to write."""

from __future__ import annotations

from msgspec.structs import replace

from steersman.api.generated.batch_v1 import Job, JobStatus
from steersman.api.generated.meta_v1 import LabelSelector
from steersman.server.registry.strategy import WriteContext

_UID = "batch.kubernetes.io/controller-uid"
_NAME = "batch.kubernetes.io/job-name"


def created(job: Job, context: WriteContext) -> Job:
    """A new Job selects the pods that bear its uid, and its template puts that on them."""
    job = replace(job, status=JobStatus())
    if job.spec.manualSelector:
        return job
    meta, template = job.metadata, job.spec.template
    own = {"job-name": meta.name, _NAME: meta.name, "controller-uid": meta.uid, _UID: meta.uid}
    labels = {**own, **template.metadata.labels}
    selector = job.spec.selector or LabelSelector()
    if _UID not in selector.matchLabels:
        selector = replace(selector, matchLabels={**selector.matchLabels, _UID: meta.uid})
    template = replace(template, metadata=replace(template.metadata, labels=labels))
    # The server fills in defaults once more when it reads an object, and so labels the Job like its pods.
    meta = meta if meta.labels else replace(meta, labels=labels)
    return replace(job, metadata=meta, spec=replace(job.spec, selector=selector, template=template))
