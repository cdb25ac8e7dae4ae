"""Defaults of workloads: Deployments, ReplicaSets, DaemonSets, StatefulSets, Jobs and CronJobs."""

from __future__ import annotations

from collections.abc import Mapping

from steersman.api.generated import apps_v1, batch_v1
from steersman.api.generated import core_v1 as v1
from steersman.server.defaulting.missing_fields import (
    Default,
    GroupKind,
    default_if_none,
    default_if_zero,
    map_items,
    map_optional,
    put,
)
from steersman.server.defaulting.pods import default_pod_template_spec
from steersman.server.defaulting.volumes import default_claim_spec

_NO_LIMIT = 2**31 - 1


def default_deployment(obj: apps_v1.Deployment) -> apps_v1.Deployment:
    spec = default_if_none(obj.spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    strategy = default_if_zero(spec.strategy, type="RollingUpdate")
    if strategy.type == "RollingUpdate":
        rolling = strategy.rollingUpdate or apps_v1.RollingUpdateDeployment()
        strategy = put(strategy, rollingUpdate=default_if_none(rolling, maxUnavailable="25%", maxSurge="25%"))
    return put(obj, spec=put(spec, strategy=strategy, template=default_pod_template_spec(spec.template)))


def default_replica_set(obj: apps_v1.ReplicaSet) -> apps_v1.ReplicaSet:
    spec = default_if_none(obj.spec, replicas=1)
    return put(obj, spec=put(spec, template=default_pod_template_spec(spec.template)))


def default_replication_controller(obj: v1.ReplicationController) -> v1.ReplicationController:
    """The selector and the labels default to the template's labels."""
    spec = default_if_none(obj.spec, replicas=1)
    spec = put(spec, template=map_optional(spec.template, default_pod_template_spec))
    if spec.template is not None and spec.template.metadata.labels:
        labels = spec.template.metadata.labels
        spec = default_if_zero(spec, selector=labels)
        obj = put(obj, metadata=default_if_zero(obj.metadata, labels=labels))
    return put(obj, spec=spec)


TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
"""The annotation in place of the removed field ``templateGeneration``; every DaemonSet has it."""


def default_daemon_set(obj: apps_v1.DaemonSet) -> apps_v1.DaemonSet:
    notes = obj.metadata.annotations
    if TEMPLATE_GENERATION not in notes:
        obj = put(obj, metadata=put(obj.metadata, annotations={**notes, TEMPLATE_GENERATION: "0"}))
    spec = default_if_none(obj.spec, revisionHistoryLimit=10)
    strategy = default_if_zero(spec.updateStrategy, type="RollingUpdate")
    if strategy.type == "RollingUpdate":
        rolling = strategy.rollingUpdate or apps_v1.RollingUpdateDaemonSet()
        strategy = put(strategy, rollingUpdate=default_if_none(rolling, maxUnavailable=1, maxSurge=0))
    return put(
        obj, spec=put(spec, updateStrategy=strategy, template=default_pod_template_spec(spec.template))
    )


def default_stateful_set(obj: apps_v1.StatefulSet) -> apps_v1.StatefulSet:
    spec = default_if_none(obj.spec, replicas=1, revisionHistoryLimit=10)
    spec = default_if_zero(spec, podManagementPolicy="OrderedReady")
    strategy = spec.updateStrategy
    if not strategy.type:
        rolling = strategy.rollingUpdate or apps_v1.RollingUpdateStatefulSetStrategy()
        strategy = put(strategy, type="RollingUpdate", rollingUpdate=rolling)
    if strategy.type == "RollingUpdate" and strategy.rollingUpdate is not None:
        # maxUnavailable belongs to a feature gate that is off.
        rolling = put(default_if_none(strategy.rollingUpdate, partition=0), maxUnavailable=None)
        strategy = put(strategy, rollingUpdate=rolling)
    kept = spec.persistentVolumeClaimRetentionPolicy
    kept = kept or apps_v1.StatefulSetPersistentVolumeClaimRetentionPolicy()
    return put(
        obj,
        spec=put(
            spec,
            updateStrategy=strategy,
            persistentVolumeClaimRetentionPolicy=default_if_zero(
                kept, whenDeleted="Retain", whenScaled="Retain"
            ),
            template=default_pod_template_spec(spec.template),
            volumeClaimTemplates=map_items(spec.volumeClaimTemplates, _default_claim_template),
        ),
    )


def _default_claim_template(template: v1.NestedPersistentVolumeClaim) -> v1.NestedPersistentVolumeClaim:
    """Defaults of a claim template, which carries its apiVersion and kind."""
    filled: v1.NestedPersistentVolumeClaim = default_if_zero(
        template, apiVersion="v1", kind="PersistentVolumeClaim"
    )
    return put(
        filled, spec=default_claim_spec(filled.spec), status=default_if_zero(filled.status, phase="Pending")
    )


def default_job(obj: batch_v1.Job) -> batch_v1.Job:
    """Completions default to one, the labels to the template's labels."""
    obj = put(obj, spec=default_job_spec(obj.spec))
    labels = obj.spec.template.metadata.labels
    return put(obj, metadata=default_if_zero(obj.metadata, labels=labels)) if labels else obj


def default_job_spec(spec: batch_v1.JobSpec) -> batch_v1.JobSpec:
    if spec.completions is None and spec.parallelism is None:
        spec = put(spec, completions=1)
    spec = default_if_none(
        spec,
        parallelism=1,
        backoffLimit=6 if spec.backoffLimitPerIndex is None else _NO_LIMIT,
        completionMode="NonIndexed",
        suspend=False,
        podReplacementPolicy="TerminatingOrFailed" if spec.podFailurePolicy is None else "Failed",
        manualSelector=False,
    )
    return put(_default_failure_policy(spec), template=default_pod_template_spec(spec.template))


def _default_failure_policy(spec: batch_v1.JobSpec) -> batch_v1.JobSpec:
    """The status of a condition pattern defaults to True."""
    policy = spec.podFailurePolicy
    if policy is None or not policy.rules:
        return spec
    return put(spec, podFailurePolicy=put(policy, rules=map_items(policy.rules, _default_failure_rule)))


def _default_failure_rule(rule: batch_v1.PodFailurePolicyRule) -> batch_v1.PodFailurePolicyRule:
    patterns = map_optional(
        rule.onPodConditions,
        lambda given: map_items(given, lambda pattern: default_if_zero(pattern, status="True")),
    )
    return put(rule, onPodConditions=patterns)


def default_cron_job(obj: batch_v1.CronJob) -> batch_v1.CronJob:
    spec = default_if_zero(obj.spec, concurrencyPolicy="Allow")
    spec = default_if_none(spec, suspend=False, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1)
    made = spec.jobTemplate
    # Of a job template only the pod template has defaults.
    filled = put(_default_failure_policy(made.spec), template=default_pod_template_spec(made.spec.template))
    made = put(made, spec=filled)
    return put(obj, spec=put(spec, jobTemplate=made))


DEFAULTS: Mapping[GroupKind, Default] = {
    ("", "ReplicationController"): default_replication_controller,
    ("apps", "DaemonSet"): default_daemon_set,
    ("apps", "Deployment"): default_deployment,
    ("apps", "ReplicaSet"): default_replica_set,
    ("apps", "StatefulSet"): default_stateful_set,
    ("batch", "CronJob"): default_cron_job,
    ("batch", "Job"): default_job,
}
