"""Printers of workloads, ControllerRevisions and PodDisruptionBudgets."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from steersman.api.label_selectors import compile_selector
from steersman.server.tables import cells
from steersman.server.tables.cells import age, human_duration
from steersman.server.tables.printer import (
    NAME,
    Cell,
    Printer,
    Printers,
    boolean,
    columns,
    integer,
    wide,
)

if TYPE_CHECKING:
    from steersman.api.generated.apps_v1 import (
        ControllerRevision,
        DaemonSet,
        Deployment,
        ReplicaSet,
        StatefulSet,
    )
    from steersman.api.generated.batch_v1 import CronJob, Job
    from steersman.api.generated.core_v1 import ReplicationController
    from steersman.api.generated.policy_v1 import PodDisruptionBudget


def deployment_cells(deployment: Deployment, now: datetime) -> tuple[Cell, ...]:
    spec, status = deployment.spec, deployment.status
    try:
        selector = str(compile_selector(spec.selector))
    except ValueError:
        selector = "<invalid>"
    return (
        deployment.metadata.name,
        f"{status.readyReplicas}/{spec.replicas or 0}",
        status.updatedReplicas,
        status.availableReplicas,
        age(deployment.metadata.creationTimestamp, now),
        *cells.container_cells(spec.template.spec.containers),
        selector,
    )


def replica_set_cells(owner: ReplicaSet, now: datetime) -> tuple[Cell, ...]:
    return (
        owner.metadata.name,
        owner.spec.replicas or 0,
        owner.status.replicas,
        owner.status.readyReplicas,
        age(owner.metadata.creationTimestamp, now),
        *cells.container_cells(owner.spec.template.spec.containers),
        cells.format_selector(owner.spec.selector),
    )


def replication_controller_cells(owner: ReplicationController, now: datetime) -> tuple[Cell, ...]:
    template = owner.spec.template
    return (
        owner.metadata.name,
        owner.spec.replicas or 0,
        owner.status.replicas,
        owner.status.readyReplicas,
        age(owner.metadata.creationTimestamp, now),
        *cells.container_cells(template.spec.containers if template else ()),
        cells.format_labels(owner.spec.selector),
    )


def stateful_set_cells(owner: StatefulSet, now: datetime) -> tuple[Cell, ...]:
    return (
        owner.metadata.name,
        f"{owner.status.readyReplicas}/{owner.spec.replicas or 0}",
        age(owner.metadata.creationTimestamp, now),
        *cells.container_cells(owner.spec.template.spec.containers),
    )


def daemon_set_cells(owner: DaemonSet, now: datetime) -> tuple[Cell, ...]:
    status, template = owner.status, owner.spec.template
    return (
        owner.metadata.name,
        status.desiredNumberScheduled,
        status.currentNumberScheduled,
        status.numberReady,
        status.updatedNumberScheduled,
        status.numberAvailable,
        cells.format_labels(template.spec.nodeSelector),
        age(owner.metadata.creationTimestamp, now),
        *cells.container_cells(template.spec.containers),
        cells.format_selector(owner.spec.selector),
    )


def job_cells(job: Job, now: datetime) -> tuple[Cell, ...]:
    return (
        job.metadata.name,
        _job_status(job),
        _completions(job),
        _job_duration(job, now),
        age(job.metadata.creationTimestamp, now),
        *cells.container_cells(job.spec.template.spec.containers),
        cells.format_selector(job.spec.selector),
    )


def _job_status(job: Job) -> str:
    conditions: dict[str, str] = {}
    for condition in job.status.conditions:
        conditions.setdefault(condition.type, condition.status)
    # A finished Job is not shown as Terminating.
    order = ("Complete", "Failed", "Terminating", "Suspended", "FailureTarget", "SuccessCriteriaMet")
    conditions["Terminating"] = str(job.metadata.deletionTimestamp is not None)
    return next(
        (condition_type for condition_type in order if conditions.get(condition_type) == "True"), "Running"
    )


def _completions(job: Job) -> str:
    succeeded, spec = job.status.succeeded, job.spec
    if spec.completions is not None:
        return f"{succeeded}/{spec.completions}"
    parallelism = spec.parallelism or 0
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_duration(job: Job, now: datetime) -> str:
    start = job.status.startTime
    return "" if start is None else human_duration((job.status.completionTime or now) - start)


def cron_job_cells(cron_job: CronJob, now: datetime) -> tuple[Cell, ...]:
    spec, status = cron_job.spec, cron_job.status
    template = spec.jobTemplate.spec
    last = status.lastScheduleTime
    return (
        cron_job.metadata.name,
        spec.schedule,
        "<none>" if spec.timeZone is None else spec.timeZone,
        cells.format_bool(spec.suspend),
        len(status.active),
        "<none>" if last is None else age(last, now),
        age(cron_job.metadata.creationTimestamp, now),
        *cells.container_cells(template.template.spec.containers),
        cells.format_selector(template.selector),
    )


def controller_revision_cells(revision: ControllerRevision, now: datetime) -> tuple[Cell, ...]:
    return (
        revision.metadata.name,
        _controller_of(revision),
        revision.revision,
        age(revision.metadata.creationTimestamp, now),
    )


def _controller_of(revision: ControllerRevision) -> str:
    for owner in revision.metadata.ownerReferences:
        if owner.controller:
            group = owner.apiVersion.rpartition("/")[0]
            return f"{owner.kind}.{group}".rstrip(".").lower() + f"/{owner.name}"
    return "<none>"


def disruption_budget_cells(budget: PodDisruptionBudget, now: datetime) -> tuple[Cell, ...]:
    min_available, max_unavailable = budget.spec.minAvailable, budget.spec.maxUnavailable
    return (
        budget.metadata.name,
        "N/A" if min_available is None else str(min_available),
        "N/A" if max_unavailable is None else str(max_unavailable),
        budget.status.disruptionsAllowed,
        age(budget.metadata.creationTimestamp, now),
    )


_TEMPLATE_COLUMNS = (wide("Containers"), wide("Images"), wide("Selector"))
_REPLICA_COLUMNS = columns(
    NAME, integer("Desired"), integer("Current"), integer("Ready"), "Age", *_TEMPLATE_COLUMNS
)

PRINTERS: Printers = {
    "deployments.apps": Printer(
        columns(NAME, "Ready", "Up-to-date", "Available", "Age", *_TEMPLATE_COLUMNS), deployment_cells
    ),
    "replicasets.apps": Printer(_REPLICA_COLUMNS, replica_set_cells),
    "replicationcontrollers": Printer(_REPLICA_COLUMNS, replication_controller_cells),
    "statefulsets.apps": Printer(
        columns(NAME, "Ready", "Age", wide("Containers"), wide("Images")), stateful_set_cells
    ),
    "daemonsets.apps": Printer(
        columns(
            NAME,
            integer("Desired"),
            integer("Current"),
            integer("Ready"),
            integer("Up-to-date"),
            integer("Available"),
            "Node Selector",
            "Age",
            *_TEMPLATE_COLUMNS,
        ),
        daemon_set_cells,
    ),
    "jobs.batch": Printer(
        columns(NAME, "Status", "Completions", "Duration", "Age", *_TEMPLATE_COLUMNS), job_cells
    ),
    "cronjobs.batch": Printer(
        columns(
            NAME,
            "Schedule",
            "Timezone",
            boolean("Suspend"),
            integer("Active"),
            "Last Schedule",
            "Age",
            *_TEMPLATE_COLUMNS,
        ),
        cron_job_cells,
    ),
    "controllerrevisions.apps": Printer(
        columns(NAME, "Controller", "Revision", "Age"), controller_revision_cells
    ),
    "poddisruptionbudgets.policy": Printer(
        columns(NAME, "Min Available", "Max Unavailable", integer("Allowed Disruptions"), "Age"),
        disruption_budget_cells,
    ),
}
