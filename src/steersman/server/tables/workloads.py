"""Workloads: deployments and all else that runs pods."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from steersman.api.label_selectors import compile_selector
from steersman.server.tables import cells
from steersman.server.tables.age import human, since
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


def deployment(deployment: Deployment, now: datetime) -> tuple[Cell, ...]:
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
        since(deployment.metadata.creationTimestamp, now),
        *cells.containers(spec.template.spec.containers),
        selector,
    )


def replica_set(owner: ReplicaSet, now: datetime) -> tuple[Cell, ...]:
    return (
        owner.metadata.name,
        owner.spec.replicas or 0,
        owner.status.replicas,
        owner.status.readyReplicas,
        since(owner.metadata.creationTimestamp, now),
        *cells.containers(owner.spec.template.spec.containers),
        cells.selector(owner.spec.selector),
    )


def replication_controller(owner: ReplicationController, now: datetime) -> tuple[Cell, ...]:
    template = owner.spec.template
    return (
        owner.metadata.name,
        owner.spec.replicas or 0,
        owner.status.replicas,
        owner.status.readyReplicas,
        since(owner.metadata.creationTimestamp, now),
        *cells.containers(template.spec.containers if template else ()),
        cells.labels(owner.spec.selector),
    )


def stateful_set(owner: StatefulSet, now: datetime) -> tuple[Cell, ...]:
    return (
        owner.metadata.name,
        f"{owner.status.readyReplicas}/{owner.spec.replicas or 0}",
        since(owner.metadata.creationTimestamp, now),
        *cells.containers(owner.spec.template.spec.containers),
    )


def daemon_set(owner: DaemonSet, now: datetime) -> tuple[Cell, ...]:
    status, template = owner.status, owner.spec.template
    return (
        owner.metadata.name,
        status.desiredNumberScheduled,
        status.currentNumberScheduled,
        status.numberReady,
        status.updatedNumberScheduled,
        status.numberAvailable,
        cells.labels(template.spec.nodeSelector),
        since(owner.metadata.creationTimestamp, now),
        *cells.containers(template.spec.containers),
        cells.selector(owner.spec.selector),
    )


def job(job: Job, now: datetime) -> tuple[Cell, ...]:
    return (
        job.metadata.name,
        _job_status(job),
        _completions(job),
        _job_duration(job, now),
        since(job.metadata.creationTimestamp, now),
        *cells.containers(job.spec.template.spec.containers),
        cells.selector(job.spec.selector),
    )


def _job_status(job: Job) -> str:
    held: dict[str, str] = {}
    for condition in job.status.conditions:
        held.setdefault(condition.type, condition.status)
    # What has finished is not said to end.
    order = ("Complete", "Failed", "Terminating", "Suspended", "FailureTarget", "SuccessCriteriaMet")
    held["Terminating"] = str(job.metadata.deletionTimestamp is not None)
    return next((word for word in order if held.get(word) == "True"), "Running")


def _completions(job: Job) -> str:
    done, spec = job.status.succeeded, job.spec
    if spec.completions is not None:
        return f"{done}/{spec.completions}"
    parallelism = spec.parallelism or 0
    return f"{done}/1 of {parallelism}" if parallelism > 1 else f"{done}/1"


def _job_duration(job: Job, now: datetime) -> str:
    start = job.status.startTime
    return "" if start is None else human((job.status.completionTime or now) - start)


def cron_job(cron_job: CronJob, now: datetime) -> tuple[Cell, ...]:
    spec, status = cron_job.spec, cron_job.status
    template = spec.jobTemplate.spec
    last = status.lastScheduleTime
    return (
        cron_job.metadata.name,
        spec.schedule,
        "<none>" if spec.timeZone is None else spec.timeZone,
        cells.truth(spec.suspend),
        len(status.active),
        "<none>" if last is None else since(last, now),
        since(cron_job.metadata.creationTimestamp, now),
        *cells.containers(template.template.spec.containers),
        cells.selector(template.selector),
    )


def controller_revision(revision: ControllerRevision, now: datetime) -> tuple[Cell, ...]:
    return (
        revision.metadata.name,
        _controller(revision),
        revision.revision,
        since(revision.metadata.creationTimestamp, now),
    )


def _controller(revision: ControllerRevision) -> str:
    for owner in revision.metadata.ownerReferences:
        if owner.controller:
            group = owner.apiVersion.rpartition("/")[0]
            return f"{owner.kind}.{group}".rstrip(".").lower() + f"/{owner.name}"
    return "<none>"


def disruption_budget(budget: PodDisruptionBudget, now: datetime) -> tuple[Cell, ...]:
    least, most = budget.spec.minAvailable, budget.spec.maxUnavailable
    return (
        budget.metadata.name,
        "N/A" if least is None else str(least),
        "N/A" if most is None else str(most),
        budget.status.disruptionsAllowed,
        since(budget.metadata.creationTimestamp, now),
    )


_TEMPLATE = (wide("Containers"), wide("Images"), wide("Selector"))
_REPLICAS = columns(NAME, integer("Desired"), integer("Current"), integer("Ready"), "Age", *_TEMPLATE)

PRINTERS: Printers = {
    "deployments.apps": Printer(
        columns(NAME, "Ready", "Up-to-date", "Available", "Age", *_TEMPLATE), deployment
    ),
    "replicasets.apps": Printer(_REPLICAS, replica_set),
    "replicationcontrollers": Printer(_REPLICAS, replication_controller),
    "statefulsets.apps": Printer(
        columns(NAME, "Ready", "Age", wide("Containers"), wide("Images")), stateful_set
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
            *_TEMPLATE,
        ),
        daemon_set,
    ),
    "jobs.batch": Printer(columns(NAME, "Status", "Completions", "Duration", "Age", *_TEMPLATE), job),
    "cronjobs.batch": Printer(
        columns(
            NAME,
            "Schedule",
            "Timezone",
            boolean("Suspend"),
            integer("Active"),
            "Last Schedule",
            "Age",
            *_TEMPLATE,
        ),
        cron_job,
    ),
    "controllerrevisions.apps": Printer(columns(NAME, "Controller", "Revision", "Age"), controller_revision),
    "poddisruptionbudgets.policy": Printer(
        columns(NAME, "Min Available", "Max Unavailable", integer("Allowed Disruptions"), "Age"),
        disruption_budget,
    ),
}
