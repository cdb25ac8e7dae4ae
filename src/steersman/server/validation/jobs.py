"""Jobs and the CronJobs that make them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from steersman.api.generated import batch_v1
from steersman.api.generated import core_v1 as v1
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.server.status_errors import IMMUTABLE
from steersman.server.validation import job_policies, names
from steersman.server.validation import metadata as meta
from steersman.server.validation.field_errors import Found, labels, selector
from steersman.server.validation.pods.spec import template as check_template
from steersman.server.validation.schedules import schedule_error, zone_error
from steersman.server.validation.selectors import compiled, label_selector

_UID = "batch.kubernetes.io/controller-uid"
_NAME = "batch.kubernetes.io/job-name"
_MISMATCH = "`selector` does not match template `labels`"
_MANY = 100_000
_REPLACEMENTS = ("Failed", "TerminatingOrFailed")
_MODES = ("NonIndexed", "Indexed")
_CONCURRENCY = ("Allow", "Forbid", "Replace")


def create(found: Found, job: batch_v1.Job) -> None:
    meta.check(found, job.metadata)
    _body(found, job)


def _body(found: Found, job: batch_v1.Job) -> None:
    _generated(found, job)
    _whole(found, "spec", job.spec)
    spec = job.spec
    if spec.completionMode == "Indexed" and spec.completions:
        longest = f"{job.metadata.name}-{spec.completions - 1}"
        if names.label(longest):
            says = f"will not able to create pod with invalid DNS label: {longest}"
            found.invalid("metadata.name", job.metadata.name, says)


def _generated(found: Found, job: batch_v1.Job) -> None:
    """A selector nobody wrote selects what bears the Job's name and uid."""
    spec, metadata = job.spec, job.metadata
    if spec.manualSelector or spec.selector is None:
        return
    if not metadata.uid:
        found.required("metadata.uid")
    own = {
        "controller-uid": metadata.uid,
        "job-name": metadata.name,
        _UID: metadata.uid,
        _NAME: metadata.name,
    }
    template = spec.template.metadata
    for key, value in own.items():
        _has_label(found, template, key, value)
    chosen = compiled(spec.selector)
    if chosen is not None and not chosen.matches(own):
        found.invalid("spec.selector", selector(spec.selector), "`selector` not auto-generated")


def _has_label(found: Found, template: ObjectMeta, key: str, value: str) -> None:
    at = f"spec.template.metadata.labels[{key}]"
    if key not in template.labels:
        found.required(at, f"must be '{value}'")
    elif template.labels[key] != value:
        found.invalid(at, template.labels, f"must be '{value}'")


def _whole(found: Found, path: str, spec: batch_v1.JobSpec) -> None:
    """The spec of a Job proper, which selects its pods."""
    job_spec(found, path, spec)
    if spec.selector is None:
        found.required(f"{path}.selector")
    label_selector(found, f"{path}.selector", spec.selector)
    chosen = compiled(spec.selector)
    if chosen is not None and not chosen.matches(spec.template.metadata.labels):
        found.invalid(f"{path}.template.metadata.labels", labels(spec.template.metadata.labels), _MISMATCH)


def job_spec(found: Found, path: str, spec: batch_v1.JobSpec) -> None:
    """What Jobs and templates of Jobs have in common."""
    for name in (
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ):
        found.negative(f"{path}.{name}", getattr(spec, name))
    if spec.maxFailedIndexes is not None and spec.backoffLimitPerIndex is None:
        found.required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    if spec.managedBy is not None:
        names.domain_path(found, f"{path}.managedBy", spec.managedBy)
        if len(spec.managedBy) > 63:
            found.too_long(f"{path}.managedBy", 63)
    if spec.completionMode is not None and spec.completionMode not in _MODES:
        found.unsupported(f"{path}.completionMode", spec.completionMode, _MODES)
    if spec.completionMode == "Indexed":
        _indexed(found, path, spec)
    elif spec.completionMode in (None, "NonIndexed"):
        for name in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if getattr(spec, name) is not None:
                found.invalid(f"{path}.{name}", getattr(spec, name), "requires indexed completion mode")
    if spec.podFailurePolicy is not None:
        job_policies.failure(found, f"{path}.podFailurePolicy", spec, spec.podFailurePolicy)
    if spec.successPolicy is not None:
        job_policies.success(found, f"{path}.successPolicy", spec, spec.successPolicy)
    _replacement(found, f"{path}.podReplacementPolicy", spec)
    check_template(found, f"{path}.template", spec.template)
    _ending(found, f"{path}.template.spec.restartPolicy", spec)


def _indexed(found: Found, path: str, spec: batch_v1.JobSpec) -> None:
    completions, parallelism, failed = spec.completions, spec.parallelism, spec.maxFailedIndexes
    if completions is None:
        found.required(f"{path}.completions", "when completion mode is Indexed")
    if parallelism is not None and parallelism > _MANY:
        most = f"must be less than or equal to {_MANY} when completion mode is Indexed"
        found.invalid(f"{path}.parallelism", parallelism, most)
    if completions is not None and failed is not None and failed > completions:
        found.invalid(f"{path}.maxFailedIndexes", failed, "must be less than or equal to completions")
    if failed is not None and failed > _MANY:
        found.invalid(f"{path}.maxFailedIndexes", failed, f"must be less than or equal to {_MANY}")
    if completions is None or completions <= _MANY or spec.backoffLimitPerIndex is None:
        return
    if failed is None:
        needs = f"must be specified when completions is above {_MANY}"
        found.required(f"{path}.maxFailedIndexes", needs)
    for name in ("parallelism", "maxFailedIndexes"):
        number = getattr(spec, name)
        if number is not None and number > 10_000:
            found.invalid(
                f"{path}.{name}",
                number,
                f"must be less than or equal to 10000 when completions are above {_MANY} and used with "
                "backoff limit per index",
            )


def _replacement(found: Found, path: str, spec: batch_v1.JobSpec) -> None:
    policy = spec.podReplacementPolicy
    choices: Sequence[str] = _REPLACEMENTS if spec.podFailurePolicy is None else ("Failed",)
    if policy is not None and policy not in choices:
        found.unsupported(path, policy, choices)


def _ending(found: Found, path: str, spec: batch_v1.JobSpec) -> None:
    """The pods of a Job end."""
    policy = spec.template.spec.restartPolicy
    if policy in ("Always", ""):
        found.required(path, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        found.unsupported(path, policy, ("OnFailure", "Never"))
    elif spec.podFailurePolicy is not None and policy != "Never":
        only = 'only "Never" is supported when podFailurePolicy is specified'
        found.invalid(path, policy, only)


# -- updates ----------------------------------------------------------------------------------


def update(found: Found, new: batch_v1.Job, old: batch_v1.Job) -> None:
    """A Job can be suspended, resumed and sped up; what it runs stays, while it runs."""
    meta.again(found, new.metadata, old.metadata, names.subdomain)
    same = new.spec is old.spec
    if not same:
        _body(found, new)
    meta.check_update(found, new.metadata, old.metadata)
    if same:
        return
    now, was = new.spec, old.spec
    _whole(found, "spec", now)
    _completions(found, now, was)
    if now.selector != was.selector:
        found.invalid("spec.selector", selector(now.selector), IMMUTABLE)
    _template(found, now.template, old)
    for name in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
        found.changed(f"spec.{name}", getattr(now, name), getattr(was, name))


def _completions(found: Found, new: batch_v1.JobSpec, old: batch_v1.JobSpec) -> None:
    if new.completionMode != "Indexed":
        found.changed("spec.completions", new.completions, old.completions)
    elif (
        new.completions is not None
        and new.completions != old.completions
        and new.completions != new.parallelism
    ):
        both = "can only be modified in tandem with spec.parallelism"
        found.invalid("spec.completions", new.completions, both)


def _template(found: Found, new: v1.PodTemplateSpec, job: batch_v1.Job) -> None:
    """A suspended Job's pods can be sent elsewhere and be given more, before there are any."""
    old = job.spec.template
    if new == old:
        return
    status = job.status
    halted = any(c.type == "Suspended" and c.status == "True" for c in status.conditions)
    open_ = bool(job.spec.suspend) and (status.startTime is None or halted) and not status.active
    if not open_:
        found.invalid("spec.template", new, IMMUTABLE)
        return
    was = old.spec
    affinity = was.affinity
    wanted = new.spec.affinity
    base = replace(affinity or v1.Affinity(), nodeAffinity=None if wanted is None else wanted.nodeAffinity)
    allowed = replace(
        was,
        affinity=None if base == v1.Affinity() and wanted is None else base,
        nodeSelector=new.spec.nodeSelector,
        tolerations=new.spec.tolerations,
        schedulingGates=new.spec.schedulingGates,
        containers=_resized(was.containers, new.spec.containers),
        initContainers=_resized(was.initContainers, new.spec.initContainers),
    )
    if new.spec != allowed:
        found.invalid("spec.template.spec", new.spec, IMMUTABLE)


def _resized(old: tuple[v1.Container, ...], new: tuple[v1.Container, ...]) -> tuple[v1.Container, ...]:
    if len(old) != len(new):
        return old
    return tuple(
        replace(was, resources=now.resources) if was.name == now.name else was
        for was, now in zip(old, new, strict=True)
    )


# -- CronJobs ---------------------------------------------------------------------------------


def cron_create(found: Found, job: batch_v1.CronJob) -> None:
    meta.check(found, job.metadata)
    _cron(found, job.spec, None)
    # Eleven characters are left for the time in the names of the Jobs.
    if len(job.metadata.name) > 52:
        found.invalid("metadata.name", job.metadata.name, "must be no more than 52 characters")


def cron_update(found: Found, new: batch_v1.CronJob, old: batch_v1.CronJob) -> None:
    meta.check_update(found, new.metadata, old.metadata)
    if new.spec is not old.spec:
        _cron(found, new.spec, old.spec)


def _cron(found: Found, spec: batch_v1.CronJobSpec, old: batch_v1.CronJobSpec | None) -> None:
    if not spec.schedule:
        found.required("spec.schedule")
    else:
        _schedule(found, "spec.schedule", spec, old)
    found.negative("spec.startingDeadlineSeconds", spec.startingDeadlineSeconds)
    if spec.timeZone is not None and (old is None or old.timeZone != spec.timeZone):
        _zone(found, "spec.timeZone", spec.timeZone)
    found.choose("spec.concurrencyPolicy", spec.concurrencyPolicy, _CONCURRENCY)
    made = spec.jobTemplate.spec
    if old is None or made != old.jobTemplate.spec:
        job_spec(found, "spec.jobTemplate.spec", made)
    if made.selector is not None:
        shown = selector(made.selector)
        found.invalid("spec.jobTemplate.spec.selector", shown, "`selector` will be auto-generated")
    if made.manualSelector:
        found.unsupported("spec.jobTemplate.spec.manualSelector", True, ("nil", "false"))
    found.negative("spec.successfulJobsHistoryLimit", spec.successfulJobsHistoryLimit)
    found.negative("spec.failedJobsHistoryLimit", spec.failedJobsHistoryLimit)


def _schedule(found: Found, path: str, spec: batch_v1.CronJobSpec, old: batch_v1.CronJobSpec | None) -> None:
    if (why := schedule_error(spec.schedule)) is not None:
        found.invalid(path, spec.schedule, why)
    if "TZ" not in spec.schedule:
        return
    if old is None or "TZ" not in old.schedule:
        instead = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        found.invalid(path, spec.schedule, instead)
    elif spec.timeZone is not None:
        both = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        found.invalid(path, spec.schedule, both)


def _zone(found: Found, path: str, zone: str) -> None:
    if not zone:
        found.invalid(path, zone, "timeZone must be nil or non-empty string")
        return
    if zone.lower() == "local":
        explicit = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        found.invalid(path, zone, explicit)
    if (why := zone_error(zone)) is not None:
        found.invalid(path, zone, why)
