"""Validation of Jobs and CronJobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from steersman.api.bounded_cache import short_cache
from steersman.api.cron import ScheduleSyntaxError, parse, time_zone
from steersman.api.generated import batch_v1
from steersman.api.generated import core_v1 as v1
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.server.status_errors import IMMUTABLE
from steersman.server.validation import job_policies, names
from steersman.server.validation import metadata as meta
from steersman.server.validation.field_errors import FieldErrors, format_labels, format_selector
from steersman.server.validation.job_status import validate_job_status
from steersman.server.validation.pods.spec import validate_pod_template_spec
from steersman.server.validation.rules import AnyRules, GroupKind, Rules
from steersman.server.validation.selectors import compile_or_none, validate_label_selector

_CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
_JOB_NAME = "batch.kubernetes.io/job-name"
_MISMATCH = "`selector` does not match template `labels`"
_MAX_INDEXED = 100_000
_REPLACEMENT_POLICIES = ("Failed", "TerminatingOrFailed")
_COMPLETION_MODES = ("NonIndexed", "Indexed")
_CONCURRENCY_POLICIES = ("Allow", "Forbid", "Replace")


def validate_job(errors: FieldErrors, job: batch_v1.Job) -> None:
    meta.validate_object_meta(errors, job.metadata)
    _validate_job_body(errors, job)


def _validate_job_body(errors: FieldErrors, job: batch_v1.Job) -> None:
    _validate_generated_selector(errors, job)
    _validate_full_job_spec(errors, "spec", job.spec)
    spec = job.spec
    if spec.completionMode == "Indexed" and spec.completions:
        longest = f"{job.metadata.name}-{spec.completions - 1}"
        if names.dns1123_label(longest):
            message = f"will not able to create pod with invalid DNS label: {longest}"
            errors.invalid("metadata.name", job.metadata.name, message)


def _validate_generated_selector(errors: FieldErrors, job: batch_v1.Job) -> None:
    """A generated selector selects pods by the Job's name and uid, and the template has these labels."""
    spec, metadata = job.spec, job.metadata
    if spec.manualSelector or spec.selector is None:
        return
    if not metadata.uid:
        errors.required("metadata.uid")
    generated = {
        "controller-uid": metadata.uid,
        "job-name": metadata.name,
        _CONTROLLER_UID: metadata.uid,
        _JOB_NAME: metadata.name,
    }
    template = spec.template.metadata
    for key, value in generated.items():
        _validate_template_label(errors, template, key, value)
    compiled = compile_or_none(spec.selector)
    if compiled is not None and not compiled.matches(generated):
        errors.invalid("spec.selector", format_selector(spec.selector), "`selector` not auto-generated")


def _validate_template_label(errors: FieldErrors, template: ObjectMeta, key: str, value: str) -> None:
    at = f"spec.template.metadata.labels[{key}]"
    if key not in template.labels:
        errors.required(at, f"must be '{value}'")
    elif template.labels[key] != value:
        errors.invalid(at, template.labels, f"must be '{value}'")


def _validate_full_job_spec(errors: FieldErrors, path: str, spec: batch_v1.JobSpec) -> None:
    """Validates the spec of a Job, which unlike that of a job template has a selector."""
    validate_job_spec(errors, path, spec)
    if spec.selector is None:
        errors.required(f"{path}.selector")
    validate_label_selector(errors, f"{path}.selector", spec.selector)
    compiled = compile_or_none(spec.selector)
    if compiled is not None and not compiled.matches(spec.template.metadata.labels):
        errors.invalid(
            f"{path}.template.metadata.labels", format_labels(spec.template.metadata.labels), _MISMATCH
        )


def validate_job_spec(errors: FieldErrors, path: str, spec: batch_v1.JobSpec) -> None:
    """Validates the fields that Jobs and job templates share."""
    for name, value in (
        ("parallelism", spec.parallelism),
        ("completions", spec.completions),
        ("activeDeadlineSeconds", spec.activeDeadlineSeconds),
        ("backoffLimit", spec.backoffLimit),
        ("ttlSecondsAfterFinished", spec.ttlSecondsAfterFinished),
        ("backoffLimitPerIndex", spec.backoffLimitPerIndex),
        ("maxFailedIndexes", spec.maxFailedIndexes),
    ):
        errors.nonnegative(f"{path}.{name}", value)
    if spec.maxFailedIndexes is not None and spec.backoffLimitPerIndex is None:
        errors.required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    if spec.managedBy is not None:
        names.validate_domain_prefixed_path(errors, f"{path}.managedBy", spec.managedBy)
        if len(spec.managedBy) > 63:
            errors.too_long(f"{path}.managedBy", 63)
    if spec.completionMode is not None and spec.completionMode not in _COMPLETION_MODES:
        errors.not_supported(f"{path}.completionMode", spec.completionMode, _COMPLETION_MODES)
    if spec.completionMode == "Indexed":
        _validate_indexed_job(errors, path, spec)
    elif spec.completionMode in (None, "NonIndexed"):
        for name, value in (
            ("backoffLimitPerIndex", spec.backoffLimitPerIndex),
            ("maxFailedIndexes", spec.maxFailedIndexes),
        ):
            if value is not None:
                errors.invalid(f"{path}.{name}", value, "requires indexed completion mode")
    if spec.podFailurePolicy is not None:
        job_policies.validate_pod_failure_policy(
            errors, f"{path}.podFailurePolicy", spec, spec.podFailurePolicy
        )
    if spec.successPolicy is not None:
        job_policies.validate_success_policy(errors, f"{path}.successPolicy", spec, spec.successPolicy)
    _validate_pod_replacement_policy(errors, f"{path}.podReplacementPolicy", spec)
    validate_pod_template_spec(errors, f"{path}.template", spec.template)
    _validate_restart_policy(errors, f"{path}.template.spec.restartPolicy", spec)


def _validate_indexed_job(errors: FieldErrors, path: str, spec: batch_v1.JobSpec) -> None:
    completions, parallelism, failed = spec.completions, spec.parallelism, spec.maxFailedIndexes
    if completions is None:
        errors.required(f"{path}.completions", "when completion mode is Indexed")
    if parallelism is not None and parallelism > _MAX_INDEXED:
        most = f"must be less than or equal to {_MAX_INDEXED} when completion mode is Indexed"
        errors.invalid(f"{path}.parallelism", parallelism, most)
    if completions is not None and failed is not None and failed > completions:
        errors.invalid(f"{path}.maxFailedIndexes", failed, "must be less than or equal to completions")
    if failed is not None and failed > _MAX_INDEXED:
        errors.invalid(f"{path}.maxFailedIndexes", failed, f"must be less than or equal to {_MAX_INDEXED}")
    if completions is None or completions <= _MAX_INDEXED or spec.backoffLimitPerIndex is None:
        return
    if failed is None:
        needs = f"must be specified when completions is above {_MAX_INDEXED}"
        errors.required(f"{path}.maxFailedIndexes", needs)
    for name, number in (("parallelism", spec.parallelism), ("maxFailedIndexes", spec.maxFailedIndexes)):
        if number is not None and number > 10_000:
            errors.invalid(
                f"{path}.{name}",
                number,
                f"must be less than or equal to 10000 when completions are above {_MAX_INDEXED} and used with "
                "backoff limit per index",
            )


def _validate_pod_replacement_policy(errors: FieldErrors, path: str, spec: batch_v1.JobSpec) -> None:
    policy = spec.podReplacementPolicy
    choices: Sequence[str] = _REPLACEMENT_POLICIES if spec.podFailurePolicy is None else ("Failed",)
    if policy is not None and policy not in choices:
        errors.not_supported(path, policy, choices)


def _validate_restart_policy(errors: FieldErrors, path: str, spec: batch_v1.JobSpec) -> None:
    """The restart policy lets the pods of a Job end."""
    policy = spec.template.spec.restartPolicy
    if policy in ("Always", ""):
        errors.required(path, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        errors.not_supported(path, policy, ("OnFailure", "Never"))
    elif spec.podFailurePolicy is not None and policy != "Never":
        only = 'only "Never" is supported when podFailurePolicy is specified'
        errors.invalid(path, policy, only)


# -- updates ----------------------------------------------------------------------------------


def validate_job_update(errors: FieldErrors, new: batch_v1.Job, old: batch_v1.Job) -> None:
    """Most of a Job's spec is immutable; its template is mutable while the Job is suspended."""
    meta.validate_changed_object_meta(errors, new.metadata, old.metadata, names.dns1123_subdomain)
    same = new.spec is old.spec
    if not same:
        _validate_job_body(errors, new)
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    if same:
        return
    now, was = new.spec, old.spec
    _validate_full_job_spec(errors, "spec", now)
    _validate_completions_update(errors, now, was)
    if now.selector != was.selector:
        errors.invalid("spec.selector", format_selector(now.selector), IMMUTABLE)
    _validate_template_update(errors, now.template, old)
    for name, new_value, old_value in (
        ("completionMode", now.completionMode, was.completionMode),
        ("podFailurePolicy", now.podFailurePolicy, was.podFailurePolicy),
        ("backoffLimitPerIndex", now.backoffLimitPerIndex, was.backoffLimitPerIndex),
        ("managedBy", now.managedBy, was.managedBy),
        ("successPolicy", now.successPolicy, was.successPolicy),
    ):
        errors.immutable(f"spec.{name}", new_value, old_value)


def _validate_completions_update(errors: FieldErrors, new: batch_v1.JobSpec, old: batch_v1.JobSpec) -> None:
    if new.completionMode != "Indexed":
        errors.immutable("spec.completions", new.completions, old.completions)
    elif (
        new.completions is not None
        and new.completions != old.completions
        and new.completions != new.parallelism
    ):
        both = "can only be modified in tandem with spec.parallelism"
        errors.invalid("spec.completions", new.completions, both)


def _validate_template_update(errors: FieldErrors, new: v1.PodTemplateSpec, job: batch_v1.Job) -> None:
    """The scheduling directives and the resources of the template are mutable while the Job is suspended."""
    old = job.spec.template
    if new == old:
        return
    status = job.status
    suspended = any(c.type == "Suspended" and c.status == "True" for c in status.conditions)
    mutable = bool(job.spec.suspend) and (status.startTime is None or suspended) and not status.active
    if not mutable:
        errors.invalid("spec.template", new, IMMUTABLE)
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
        containers=_with_resources_of(was.containers, new.spec.containers),
        initContainers=_with_resources_of(was.initContainers, new.spec.initContainers),
    )
    if new.spec != allowed:
        errors.invalid("spec.template.spec", new.spec, IMMUTABLE)


def _with_resources_of(
    old: tuple[v1.Container, ...], new: tuple[v1.Container, ...]
) -> tuple[v1.Container, ...]:
    if len(old) != len(new):
        return old
    return tuple(
        replace(was, resources=now.resources) if was.name == now.name else was
        for was, now in zip(old, new, strict=True)
    )


# -- CronJobs ---------------------------------------------------------------------------------


def validate_cron_job(errors: FieldErrors, job: batch_v1.CronJob) -> None:
    meta.validate_object_meta(errors, job.metadata)
    _validate_cron_job_spec(errors, job.spec, None)
    # The names of the Jobs append eleven characters for the scheduled time.
    if len(job.metadata.name) > 52:
        errors.invalid("metadata.name", job.metadata.name, "must be no more than 52 characters")


def validate_cron_job_update(errors: FieldErrors, new: batch_v1.CronJob, old: batch_v1.CronJob) -> None:
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    if new.spec is not old.spec:
        _validate_cron_job_spec(errors, new.spec, old.spec)


def _validate_cron_job_spec(
    errors: FieldErrors, spec: batch_v1.CronJobSpec, old: batch_v1.CronJobSpec | None
) -> None:
    if not spec.schedule:
        errors.required("spec.schedule")
    else:
        _validate_schedule(errors, "spec.schedule", spec, old)
    errors.nonnegative("spec.startingDeadlineSeconds", spec.startingDeadlineSeconds)
    if spec.timeZone is not None and (old is None or old.timeZone != spec.timeZone):
        _validate_time_zone(errors, "spec.timeZone", spec.timeZone)
    errors.enum("spec.concurrencyPolicy", spec.concurrencyPolicy, _CONCURRENCY_POLICIES)
    job_spec = spec.jobTemplate.spec
    if old is None or job_spec != old.jobTemplate.spec:
        validate_job_spec(errors, "spec.jobTemplate.spec", job_spec)
    if job_spec.selector is not None:
        shown = format_selector(job_spec.selector)
        errors.invalid("spec.jobTemplate.spec.selector", shown, "`selector` will be auto-generated")
    if job_spec.manualSelector:
        errors.not_supported("spec.jobTemplate.spec.manualSelector", True, ("nil", "false"))
    errors.nonnegative("spec.successfulJobsHistoryLimit", spec.successfulJobsHistoryLimit)
    errors.nonnegative("spec.failedJobsHistoryLimit", spec.failedJobsHistoryLimit)


def _validate_schedule(
    errors: FieldErrors, path: str, spec: batch_v1.CronJobSpec, old: batch_v1.CronJobSpec | None
) -> None:
    if (detail := cron_schedule_error(spec.schedule)) is not None:
        errors.invalid(path, spec.schedule, detail)
    if "TZ" not in spec.schedule:
        return
    if old is None or "TZ" not in old.schedule:
        instead = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        errors.invalid(path, spec.schedule, instead)
    elif spec.timeZone is not None:
        both = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        errors.invalid(path, spec.schedule, both)


def _validate_time_zone(errors: FieldErrors, path: str, zone: str) -> None:
    if not zone:
        errors.invalid(path, zone, "timeZone must be nil or non-empty string")
        return
    if zone.lower() == "local":
        explicit = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        errors.invalid(path, zone, explicit)
    if (detail := time_zone_error(zone)) is not None:
        errors.invalid(path, zone, detail)


@short_cache(1024)
def cron_schedule_error(text: str) -> str | None:
    """The parse error of a cron schedule; None where it is valid."""
    try:
        parse(text)
    except ScheduleSyntaxError as error:
        return str(error)
    return None


def time_zone_error(name: str) -> str | None:
    """The error of looking up a time zone; None where it exists."""
    if not name:
        return "unknown time zone "
    try:
        time_zone(name)
    except LookupError as error:
        return str(error.args[0])
    return None


RULES: Mapping[GroupKind, AnyRules] = {
    ("batch", "CronJob"): Rules[batch_v1.CronJob](validate_cron_job, validate_cron_job_update),
    ("batch", "Job"): Rules[batch_v1.Job](validate_job, validate_job_update, status=validate_job_status),
}
