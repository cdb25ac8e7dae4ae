"""Pods from a Job's template: whatever is in it goes along, and what an index needs is added."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from steersman.api.generated_names import SUFFIX_LENGTH
from steersman.api.kinds import JOBS, Job, NewPod, ObjectMeta, Opaque, Pod
from steersman.api.label_syntax import MAX_NAME
from steersman.api.meta import owner_reference
from steersman.api.scheme import unusual
from steersman.controllers.job.pods import (
    FAILURES,
    FINALIZER,
    IGNORED,
    INDEX,
    failures_before,
    ignored_before,
)
from steersman.controllers.job.policy import ruling
from steersman.controllers.job.spec import limits_each_index

ENVIRONMENT = "JOB_COMPLETION_INDEX"
LONGEST_NAME = 253

_encoder = msgspec.json.Encoder(enc_hook=unusual)


class _Peek(msgspec.Struct):
    """What is looked at in a template."""

    restartPolicy: str | None = None


_peek = msgspec.json.Decoder(_Peek).decode


def restart_policy(spec: Any) -> str:
    """The restart policy of a template's spec, whichever form that has."""
    if isinstance(spec, msgspec.Raw):
        return _peek(spec).restartPolicy or ""
    said: str = spec.restartPolicy
    return said


def new_pod(job: Job, index: int | None = None, before: Pod | None = None) -> NewPod:
    """A pod to create, for an index where it is for one; ``before`` is the pod that failed at it."""
    template, name = job.spec.template, job.metadata.name
    labels, annotations, spec = template.metadata.labels, template.metadata.annotations, template.spec
    prefix = f"{name}-" if len(name) < LONGEST_NAME else name
    if index is not None:
        labels = {**labels, INDEX: str(index)}
        annotations = {**annotations, INDEX: str(index)}
        if limits_each_index(job):
            annotations |= _failures(job, before)
        spec = _with_hostname(spec, f"{name}-{index}")
        prefix = index_prefix(name, index)
    finalizers = template.metadata.finalizers
    return NewPod(
        metadata=ObjectMeta(
            generateName=prefix,
            labels=labels,
            annotations=annotations,
            finalizers=finalizers if FINALIZER in finalizers else (*finalizers, FINALIZER),
            ownerReferences=(owner_reference(job, JOBS),),
        ),
        spec=spec,
    )


def index_prefix(name: str, index: int) -> str:
    """What the names of an index's pods begin with: short enough for the index to stay in them."""
    end, room = f"-{index}-", MAX_NAME - SUFFIX_LENGTH
    prefix = name + end
    return prefix if len(prefix) <= room else prefix[: room - len(end)] + end


def _failures(job: Job, before: Pod | None) -> dict[str, str]:
    """How often the index has failed, for its next pod to know."""
    if before is None:
        return {FAILURES: "0"}
    counts = ruling(job, before).counts
    ignored = ignored_before(before) + (not counts)
    failures = {FAILURES: str(failures_before(before) + counts)}
    return {**failures, IGNORED: str(ignored)} if ignored else failures


# -- inside the spec ------------------------------------------------------------------------------


def _with_hostname(spec: Any, hostname: str) -> Opaque:
    raw = bytes(spec) if isinstance(spec, msgspec.Raw) else _encoder.encode(spec)
    rest = _prepared(raw)
    head = b'{"hostname":' + _encoder.encode(hostname)
    return msgspec.Raw(head + (b"}" if rest == b"{}" else b"," + rest[1:]))


@lru_cache(maxsize=64)
def _prepared(raw: bytes) -> bytes:
    """The spec with the index in every container's environment, and no hostname. All else stays as it is."""
    document: dict[str, Any] = msgspec.json.decode(raw)
    document.pop("hostname", None)
    for field in ("initContainers", "containers"):
        for container in document.get(field) or ():
            environment = container.get("env") or []
            if not any(one.get("name") == ENVIRONMENT for one in environment):
                container["env"] = [*environment, _VARIABLE]
    return _encoder.encode(document)


_VARIABLE = {
    "name": ENVIRONMENT,
    "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}},
}
