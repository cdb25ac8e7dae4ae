"""What the server fills in where a writer said nothing: one function per kind, object in, object out.

A function returns the very object it was given where nothing is missing, so an object that was stored
before goes through untouched and its parts stay shared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from steersman.server.defaulting import core, pods, workloads

Default: TypeAlias = Callable[[Any], Any]

DEFAULTS: Mapping[tuple[str, str], Default] = {
    ("", "Namespace"): core.namespace,
    ("", "Node"): core.node,
    ("", "Pod"): pods.pod,
    ("", "PodTemplate"): pods.template,
    ("", "ReplicationController"): workloads.replication_controller,
    ("", "Secret"): core.secret,
    ("", "Service"): core.service,
    ("apps", "DaemonSet"): workloads.daemon_set,
    ("apps", "Deployment"): workloads.deployment,
    ("apps", "ReplicaSet"): workloads.replica_set,
    ("apps", "StatefulSet"): workloads.stateful_set,
    ("batch", "CronJob"): workloads.cron_job,
    ("batch", "Job"): workloads.job,
}


def untouched(obj: Any) -> Any:
    """For kinds that have no defaults."""
    return obj


def default_for(group: str, kind: str) -> Default:
    """What fills in an object of a kind."""
    return DEFAULTS.get((group, kind), untouched)
