"""Validation of the status of Jobs.

Only fields that a write changes are validated, so that a Job with an invalid status can still be repaired.
"""

from __future__ import annotations

from collections.abc import Callable

from steersman.api.generated import batch_v1
from steersman.server.status_errors import IMMUTABLE
from steersman.server.validation import metadata as meta
from steersman.server.validation.field_errors import OMITTED, FieldErrors, format_strings, go_struct
from steersman.server.validation.job_policies import count_indexes, parse_interval

_CONDITIONS_PATH = "status.conditions"


def validate_job_status(errors: FieldErrors, new: batch_v1.Job, old: batch_v1.Job) -> None:
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    now = new.status
    for name, value in (
        ("active", now.active),
        ("succeeded", now.succeeded),
        ("failed", now.failed),
        ("ready", now.ready),
        ("terminating", now.terminating),
    ):
        errors.nonnegative(f"status.{name}", value)
    _validate_uncounted_pods(errors, now.uncountedTerminatedPods)

    def changed(name: str) -> bool:
        return bool(getattr(now, name) != getattr(old.status, name))

    _validate_finish(errors, new, old, changed)
    _validate_index_fields(errors, new, changed)
    if (
        now.terminating
        and _is_finished(new)
        and (_changed_to(new, old, _is_finished) or changed("terminating"))
    ):
        errors.invalid("status.terminating", now.terminating, "terminating>0 is invalid for finished job")
    if now.ready is not None and now.ready > now.active and (changed("ready") or changed("active")):
        errors.invalid("status.ready", now.ready, "cannot set more ready pods than active")
    _validate_success_criteria(errors, new)
    _validate_irreversible(errors, new, old, changed)


def _has_condition(job: batch_v1.Job, type_: str) -> bool:
    return any(c.type == type_ and c.status == "True" for c in job.status.conditions)


def _is_finished(job: batch_v1.Job) -> bool:
    return _has_condition(job, "Complete") or _has_condition(job, "Failed")


def _changed_to(new: batch_v1.Job, old: batch_v1.Job, question: Callable[[batch_v1.Job], bool]) -> bool:
    return question(new) != question(old)


def _condition_changed(new: batch_v1.Job, old: batch_v1.Job, type_: str) -> bool:
    return _has_condition(new, type_) != _has_condition(old, type_)


def _validate_uncounted_pods(errors: FieldErrors, pods: batch_v1.UncountedTerminatedPods | None) -> None:
    if pods is None:
        return
    seen: set[str] = set()
    for name, value in (("succeeded", pods.succeeded), ("failed", pods.failed)):
        for i, uid in enumerate(value):
            at = f"status.uncountedTerminatedPods.{name}[{i}]"
            if not uid:
                errors.invalid(at, uid, "must not be empty")
            elif uid in seen:
                errors.duplicate(at, uid)
            seen.add(uid)


def _validate_finish(
    errors: FieldErrors, new: batch_v1.Job, old: batch_v1.Job, changed: Callable[[str], bool]
) -> None:
    """Validates that a finished Job has consistent conditions, times and counts."""
    now, finished = new.status, _is_finished(new)
    complete, failed = _has_condition(new, "Complete"), _has_condition(new, "Failed")
    completes, fails = _condition_changed(new, old, "Complete"), _condition_changed(new, old, "Failed")
    finishes = _changed_to(new, old, _is_finished)
    if complete and failed and (completes or fails):
        errors.invalid(_CONDITIONS_PATH, OMITTED, "cannot set Complete=True and Failed=true conditions")
    if (
        complete
        and _has_condition(new, "FailureTarget")
        and (completes or _condition_changed(new, old, "FailureTarget"))
    ):
        errors.invalid(
            _CONDITIONS_PATH, OMITTED, "cannot set Complete=True and FailureTarget=true conditions"
        )
    if completes or changed("completionTime"):
        if now.completionTime is not None and not complete:
            message = "cannot set completionTime when there is no Complete=True condition"
            errors.invalid("status.completionTime", now.completionTime, message)
        if now.completionTime is None and complete:
            errors.required("status.completionTime", "completionTime is required for Complete jobs")
    if changed("startTime") or changed("completionTime"):
        start, end = now.startTime, now.completionTime
        if start is not None and end is not None and end < start:
            errors.invalid("status.completionTime", end, "must be equal to or after `startTime`")
    if failed and not _has_condition(new, "FailureTarget") and (fails or changed("failedIndexes")):
        message = "cannot set Failed=True condition without the FailureTarget=true condition"
        errors.invalid(_CONDITIONS_PATH, OMITTED, message)
    met = _condition_changed(new, old, "SuccessCriteriaMet")
    if complete and not _has_condition(new, "SuccessCriteriaMet") and (completes or met):
        message = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"
        errors.invalid(_CONDITIONS_PATH, OMITTED, message)
    if now.active > 0 and finished and (finishes or changed("active")):
        errors.invalid("status.active", now.active, "active>0 is invalid for finished job")
    nothing = bool(new.spec.suspend) and new.spec.completions == 0
    if now.startTime is None and finished and (finishes or changed("startTime")) and not nothing:
        errors.required("status.startTime", "startTime is required for finished job")
    pods = now.uncountedTerminatedPods
    uncounted = pods is not None and (pods.failed or pods.succeeded)
    if pods is not None and uncounted and finished and (finishes or changed("uncountedTerminatedPods")):
        shown = go_struct(Succeeded=format_strings(pods.succeeded), Failed=format_strings(pods.failed))
        errors.invalid("status.uncountedTerminatedPods", shown, "must be empty for finished job")


def _validate_index_fields(errors: FieldErrors, new: batch_v1.Job, changed: Callable[[str], bool]) -> None:
    now, spec = new.status, new.spec
    completed, failed = now.completedIndexes, now.failedIndexes
    if changed("completedIndexes") and spec.completions is not None:
        _validate_indexes_text(errors, "completedIndexes", completed, spec.completions)
    per_index = spec.completions is not None and spec.backoffLimitPerIndex is not None
    if changed("failedIndexes") and failed is not None and per_index:
        _validate_indexes_text(errors, "failedIndexes", failed, spec.completions or 0)
    if changed("completedIndexes") and completed and spec.completionMode != "Indexed":
        message = "cannot set non-empty completedIndexes when non-indexed completion mode"
        errors.invalid("status.completedIndexes", completed, message)
    if changed("failedIndexes") and failed is not None and spec.backoffLimitPerIndex is None:
        message = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        errors.invalid("status.failedIndexes", failed, message)
    if (changed("failedIndexes") or changed("completedIndexes")) and spec.completions is not None:
        common = _first_common_index(completed, failed or "", spec.completions)
        if common is not None:
            message = f"failedIndexes and completedIndexes overlap at index: {common}"
            errors.invalid("status.failedIndexes", failed, message)


def _validate_indexes_text(errors: FieldErrors, name: str, text: str, completions: int) -> None:
    try:
        count_indexes(text, completions)
    except ValueError as error:
        errors.invalid(f"status.{name}", text, f"error parsing {name}: {error}")


def _first_common_index(completed: str, failed: str, completions: int) -> int | None:
    """The first index that is in both texts; malformed intervals are skipped."""
    left, right = _parse_intervals(completed, completions), _parse_intervals(failed, completions)
    for start, end in left:
        for low, high in right:
            if start <= high and low <= end:
                return max(start, low)
    return None


def _parse_intervals(text: str, completions: int) -> list[tuple[int, int]]:
    intervals = []
    for part in text.split(",") if text else ():
        try:
            intervals.append(parse_interval(part, completions))
        except ValueError:
            continue
    return intervals


def _validate_success_criteria(errors: FieldErrors, new: batch_v1.Job) -> None:
    met = _has_condition(new, "SuccessCriteriaMet")
    for other in ("Failed", "FailureTarget"):
        if met and _has_condition(new, other):
            message = f"cannot set SuccessCriteriaMet=True and {other}=true conditions"
            errors.invalid(_CONDITIONS_PATH, OMITTED, message)
    if new.spec.successPolicy is not None and not met and _has_condition(new, "Complete"):
        message = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"
        errors.invalid(_CONDITIONS_PATH, OMITTED, message)


def _validate_irreversible(
    errors: FieldErrors, new: batch_v1.Job, old: batch_v1.Job, changed: Callable[[str], bool]
) -> None:
    """Validates that terminal conditions, counters and times are not reverted."""
    now, was = new.status, old.status
    for type_ in ("Failed", "Complete", "FailureTarget"):
        if _has_condition(old, type_) and not _has_condition(new, type_):
            message = f"cannot disable the terminal {type_}=True condition"
            errors.invalid(_CONDITIONS_PATH, OMITTED, message)
    if now.failed < was.failed:
        errors.invalid("status.failed", now.failed, "cannot decrease the failed counter")
    elastic = new.spec.completionMode == "Indexed" and new.spec.completions == new.spec.parallelism
    if now.succeeded < was.succeeded and not elastic:
        errors.invalid("status.succeeded", now.succeeded, "cannot decrease the succeeded counter")
    if None not in (now.completionTime, was.completionTime) and now.completionTime != was.completionTime:
        errors.invalid("status.completionTime", now.completionTime, IMMUTABLE)
    resumes = _has_condition(old, "Suspended") and any(
        c.type == "Suspended" and c.status == "False" for c in now.conditions
    )
    if changed("startTime") and was.startTime is not None and not resumes and not new.spec.suspend:
        message = "field is immutable for unsuspended job once set"
        errors.invalid("status.startTime", now.startTime, message)
    if _has_condition(old, "SuccessCriteriaMet") and not _has_condition(new, "SuccessCriteriaMet"):
        errors.invalid(_CONDITIONS_PATH, OMITTED, "cannot disable the SuccessCriteriaMet=True condition")
    if (
        _has_condition(old, "Complete")
        and not _has_condition(old, "SuccessCriteriaMet")
        and _has_condition(new, "SuccessCriteriaMet")
    ):
        message = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
        errors.invalid(_CONDITIONS_PATH, OMITTED, message)
