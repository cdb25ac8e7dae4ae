"""The status of Jobs: how one may be told to go and to end.

Only what a write changes is looked at, so that a Job somebody broke before can still be seen to.
"""

from __future__ import annotations

from collections.abc import Callable

from steersman.api.generated import batch_v1
from steersman.server.status_errors import IMMUTABLE
from steersman.server.validation import metadata as meta
from steersman.server.validation.field_errors import OMITTED, FieldErrors, format_strings, go_struct
from steersman.server.validation.job_policies import count_indexes, interval_of

_CONDITIONS = "status.conditions"


def status(listed: FieldErrors, new: batch_v1.Job, old: batch_v1.Job) -> None:
    meta.check_update(listed, new.metadata, old.metadata)
    now = new.status
    for name in ("active", "succeeded", "failed", "ready", "terminating"):
        listed.nonnegative(f"status.{name}", getattr(now, name))
    _uncounted(listed, now.uncountedTerminatedPods)

    def changed(name: str) -> bool:
        return bool(getattr(now, name) != getattr(old.status, name))

    _ends(listed, new, old, changed)
    _indexes(listed, new, changed)
    if now.terminating and _finished(new) and (_turned(new, old, _finished) or changed("terminating")):
        listed.invalid("status.terminating", now.terminating, "terminating>0 is invalid for finished job")
    if now.ready is not None and now.ready > now.active and (changed("ready") or changed("active")):
        listed.invalid("status.ready", now.ready, "cannot set more ready pods than active")
    _success(listed, new)
    _stays(listed, new, old, changed)


def _is(job: batch_v1.Job, type_: str) -> bool:
    return any(c.type == type_ and c.status == "True" for c in job.status.conditions)


def _finished(job: batch_v1.Job) -> bool:
    return _is(job, "Complete") or _is(job, "Failed")


def _turned(new: batch_v1.Job, old: batch_v1.Job, question: Callable[[batch_v1.Job], bool]) -> bool:
    return question(new) != question(old)


def _turned_to(new: batch_v1.Job, old: batch_v1.Job, type_: str) -> bool:
    return _is(new, type_) != _is(old, type_)


def _uncounted(listed: FieldErrors, pods: batch_v1.UncountedTerminatedPods | None) -> None:
    if pods is None:
        return
    seen: set[str] = set()
    for name in ("succeeded", "failed"):
        for i, uid in enumerate(getattr(pods, name)):
            at = f"status.uncountedTerminatedPods.{name}[{i}]"
            if not uid:
                listed.invalid(at, uid, "must not be empty")
            elif uid in seen:
                listed.duplicate(at, uid)
            seen.add(uid)


def _ends(listed: FieldErrors, new: batch_v1.Job, old: batch_v1.Job, changed: Callable[[str], bool]) -> None:
    """What goes together with having ended."""
    now, finished = new.status, _finished(new)
    complete, failed = _is(new, "Complete"), _is(new, "Failed")
    completes, fails = _turned_to(new, old, "Complete"), _turned_to(new, old, "Failed")
    finishes = _turned(new, old, _finished)
    if complete and failed and (completes or fails):
        listed.invalid(_CONDITIONS, OMITTED, "cannot set Complete=True and Failed=true conditions")
    if complete and _is(new, "FailureTarget") and (completes or _turned_to(new, old, "FailureTarget")):
        listed.invalid(_CONDITIONS, OMITTED, "cannot set Complete=True and FailureTarget=true conditions")
    if completes or changed("completionTime"):
        if now.completionTime is not None and not complete:
            says = "cannot set completionTime when there is no Complete=True condition"
            listed.invalid("status.completionTime", now.completionTime, says)
        if now.completionTime is None and complete:
            listed.required("status.completionTime", "completionTime is required for Complete jobs")
    if changed("startTime") or changed("completionTime"):
        start, end = now.startTime, now.completionTime
        if start is not None and end is not None and end < start:
            listed.invalid("status.completionTime", end, "must be equal to or after `startTime`")
    if failed and not _is(new, "FailureTarget") and (fails or changed("failedIndexes")):
        says = "cannot set Failed=True condition without the FailureTarget=true condition"
        listed.invalid(_CONDITIONS, OMITTED, says)
    met = _turned_to(new, old, "SuccessCriteriaMet")
    if complete and not _is(new, "SuccessCriteriaMet") and (completes or met):
        says = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"
        listed.invalid(_CONDITIONS, OMITTED, says)
    if now.active > 0 and finished and (finishes or changed("active")):
        listed.invalid("status.active", now.active, "active>0 is invalid for finished job")
    nothing = bool(new.spec.suspend) and new.spec.completions == 0
    if now.startTime is None and finished and (finishes or changed("startTime")) and not nothing:
        listed.required("status.startTime", "startTime is required for finished job")
    pods = now.uncountedTerminatedPods
    uncounted = pods is not None and (pods.failed or pods.succeeded)
    if pods is not None and uncounted and finished and (finishes or changed("uncountedTerminatedPods")):
        shown = go_struct(Succeeded=format_strings(pods.succeeded), Failed=format_strings(pods.failed))
        listed.invalid("status.uncountedTerminatedPods", shown, "must be empty for finished job")


def _indexes(listed: FieldErrors, new: batch_v1.Job, changed: Callable[[str], bool]) -> None:
    now, spec = new.status, new.spec
    completed, failed = now.completedIndexes, now.failedIndexes
    if changed("completedIndexes") and spec.completions is not None:
        _readable(listed, "completedIndexes", completed, spec.completions)
    per_index = spec.completions is not None and spec.backoffLimitPerIndex is not None
    if changed("failedIndexes") and failed is not None and per_index:
        _readable(listed, "failedIndexes", failed, spec.completions or 0)
    if changed("completedIndexes") and completed and spec.completionMode != "Indexed":
        says = "cannot set non-empty completedIndexes when non-indexed completion mode"
        listed.invalid("status.completedIndexes", completed, says)
    if changed("failedIndexes") and failed is not None and spec.backoffLimitPerIndex is None:
        says = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        listed.invalid("status.failedIndexes", failed, says)
    if (changed("failedIndexes") or changed("completedIndexes")) and spec.completions is not None:
        common = _overlap(completed, failed or "", spec.completions)
        if common is not None:
            says = f"failedIndexes and completedIndexes overlap at index: {common}"
            listed.invalid("status.failedIndexes", failed, says)


def _readable(listed: FieldErrors, name: str, text: str, completions: int) -> None:
    try:
        count_indexes(text, completions)
    except ValueError as error:
        listed.invalid(f"status.{name}", text, f"error parsing {name}: {error}")


def _overlap(completed: str, failed: str, completions: int) -> int | None:
    """The first index that is in both; intervals nobody can read are in neither."""
    left, right = _intervals(completed, completions), _intervals(failed, completions)
    for start, end in left:
        for low, high in right:
            if start <= high and low <= end:
                return max(start, low)
    return None


def _intervals(text: str, completions: int) -> list[tuple[int, int]]:
    listed = []
    for part in text.split(",") if text else ():
        try:
            listed.append(interval_of(part, completions))
        except ValueError:
            continue
    return listed


def _success(listed: FieldErrors, new: batch_v1.Job) -> None:
    met = _is(new, "SuccessCriteriaMet")
    for other in ("Failed", "FailureTarget"):
        if met and _is(new, other):
            says = f"cannot set SuccessCriteriaMet=True and {other}=true conditions"
            listed.invalid(_CONDITIONS, OMITTED, says)
    if new.spec.successPolicy is not None and not met and _is(new, "Complete"):
        says = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"
        listed.invalid(_CONDITIONS, OMITTED, says)


def _stays(listed: FieldErrors, new: batch_v1.Job, old: batch_v1.Job, changed: Callable[[str], bool]) -> None:
    """What does not come back: ends, counts, times."""
    now, was = new.status, old.status
    for type_ in ("Failed", "Complete", "FailureTarget"):
        if _is(old, type_) and not _is(new, type_):
            says = f"cannot disable the terminal {type_}=True condition"
            listed.invalid(_CONDITIONS, OMITTED, says)
    if now.failed < was.failed:
        listed.invalid("status.failed", now.failed, "cannot decrease the failed counter")
    elastic = new.spec.completionMode == "Indexed" and new.spec.completions == new.spec.parallelism
    if now.succeeded < was.succeeded and not elastic:
        listed.invalid("status.succeeded", now.succeeded, "cannot decrease the succeeded counter")
    if None not in (now.completionTime, was.completionTime) and now.completionTime != was.completionTime:
        listed.invalid("status.completionTime", now.completionTime, IMMUTABLE)
    resumes = _is(old, "Suspended") and any(
        c.type == "Suspended" and c.status == "False" for c in now.conditions
    )
    if changed("startTime") and was.startTime is not None and not resumes and not new.spec.suspend:
        says = "field is immutable for unsuspended job once set"
        listed.invalid("status.startTime", now.startTime, says)
    if _is(old, "SuccessCriteriaMet") and not _is(new, "SuccessCriteriaMet"):
        listed.invalid(_CONDITIONS, OMITTED, "cannot disable the SuccessCriteriaMet=True condition")
    if _is(old, "Complete") and not _is(old, "SuccessCriteriaMet") and _is(new, "SuccessCriteriaMet"):
        says = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
        listed.invalid(_CONDITIONS, OMITTED, says)
