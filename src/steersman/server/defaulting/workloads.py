"""Defaults of what makes pods: Deployments and their kin, Jobs and CronJobs."""

from __future__ import annotations

from steersman.api.generated import apps_v1, batch_v1
from steersman.api.generated import core_v1 as v1
from steersman.server.defaulting.missing_fields import each, maybe, put, unset, zero
from steersman.server.defaulting.pods import template_spec
from steersman.server.defaulting.volumes import claim_spec

_NO_LIMIT = 2**31 - 1


def deployment(obj: apps_v1.Deployment) -> apps_v1.Deployment:
    spec = unset(obj.spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    strategy = zero(spec.strategy, type="RollingUpdate")
    if strategy.type == "RollingUpdate":
        rolling = strategy.rollingUpdate or apps_v1.RollingUpdateDeployment()
        strategy = put(strategy, rollingUpdate=unset(rolling, maxUnavailable="25%", maxSurge="25%"))
    return put(obj, spec=put(spec, strategy=strategy, template=template_spec(spec.template)))


def replica_set(obj: apps_v1.ReplicaSet) -> apps_v1.ReplicaSet:
    spec = unset(obj.spec, replicas=1)
    return put(obj, spec=put(spec, template=template_spec(spec.template)))


def replication_controller(obj: v1.ReplicationController) -> v1.ReplicationController:
    """Selects its template's labels where it does not say, and is labelled with them."""
    spec = unset(obj.spec, replicas=1)
    spec = put(spec, template=maybe(spec.template, template_spec))
    if spec.template is not None and spec.template.metadata.labels:
        labels = spec.template.metadata.labels
        spec = zero(spec, selector=labels)
        obj = put(obj, metadata=zero(obj.metadata, labels=labels))
    return put(obj, spec=spec)


TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
"""An annotation that stands for a field there once was, and so is always there."""


def daemon_set(obj: apps_v1.DaemonSet) -> apps_v1.DaemonSet:
    notes = obj.metadata.annotations
    if TEMPLATE_GENERATION not in notes:
        obj = put(obj, metadata=put(obj.metadata, annotations={**notes, TEMPLATE_GENERATION: "0"}))
    spec = unset(obj.spec, revisionHistoryLimit=10)
    strategy = zero(spec.updateStrategy, type="RollingUpdate")
    if strategy.type == "RollingUpdate":
        rolling = strategy.rollingUpdate or apps_v1.RollingUpdateDaemonSet()
        strategy = put(strategy, rollingUpdate=unset(rolling, maxUnavailable=1, maxSurge=0))
    return put(obj, spec=put(spec, updateStrategy=strategy, template=template_spec(spec.template)))


def stateful_set(obj: apps_v1.StatefulSet) -> apps_v1.StatefulSet:
    spec = unset(obj.spec, replicas=1, revisionHistoryLimit=10)
    spec = zero(spec, podManagementPolicy="OrderedReady")
    strategy = spec.updateStrategy
    if not strategy.type:
        rolling = strategy.rollingUpdate or apps_v1.RollingUpdateStatefulSetStrategy()
        strategy = put(strategy, type="RollingUpdate", rollingUpdate=rolling)
    if strategy.type == "RollingUpdate" and strategy.rollingUpdate is not None:
        # More than one at a time is not for everybody yet.
        rolling = put(unset(strategy.rollingUpdate, partition=0), maxUnavailable=None)
        strategy = put(strategy, rollingUpdate=rolling)
    kept = spec.persistentVolumeClaimRetentionPolicy
    kept = kept or apps_v1.StatefulSetPersistentVolumeClaimRetentionPolicy()
    return put(
        obj,
        spec=put(
            spec,
            updateStrategy=strategy,
            persistentVolumeClaimRetentionPolicy=zero(kept, whenDeleted="Retain", whenScaled="Retain"),
            template=template_spec(spec.template),
            volumeClaimTemplates=each(spec.volumeClaimTemplates, _claim_template),
        ),
    )


def _claim_template(template: v1.NestedPersistentVolumeClaim) -> v1.NestedPersistentVolumeClaim:
    """A claim like any other, which says what it is since it is not where claims are."""
    filled: v1.NestedPersistentVolumeClaim = zero(template, apiVersion="v1", kind="PersistentVolumeClaim")
    return put(filled, spec=claim_spec(filled.spec), status=zero(filled.status, phase="Pending"))


def job(obj: batch_v1.Job) -> batch_v1.Job:
    """Runs one pod to completion where it does not say, and is labelled like its template."""
    obj = put(obj, spec=job_spec(obj.spec))
    labels = obj.spec.template.metadata.labels
    return put(obj, metadata=zero(obj.metadata, labels=labels)) if labels else obj


def job_spec(spec: batch_v1.JobSpec) -> batch_v1.JobSpec:
    if spec.completions is None and spec.parallelism is None:
        spec = put(spec, completions=1)
    spec = unset(
        spec,
        parallelism=1,
        backoffLimit=6 if spec.backoffLimitPerIndex is None else _NO_LIMIT,
        completionMode="NonIndexed",
        suspend=False,
        podReplacementPolicy="TerminatingOrFailed" if spec.podFailurePolicy is None else "Failed",
        manualSelector=False,
    )
    return put(_failure_policy(spec), template=template_spec(spec.template))


def _failure_policy(spec: batch_v1.JobSpec) -> batch_v1.JobSpec:
    """A rule about a condition means that it is true, where it does not say."""
    policy = spec.podFailurePolicy
    if policy is None or not policy.rules:
        return spec
    return put(spec, podFailurePolicy=put(policy, rules=each(policy.rules, _failure_rule)))


def _failure_rule(rule: batch_v1.PodFailurePolicyRule) -> batch_v1.PodFailurePolicyRule:
    patterns = maybe(
        rule.onPodConditions, lambda given: each(given, lambda pattern: zero(pattern, status="True"))
    )
    return put(rule, onPodConditions=patterns)


def cron_job(obj: batch_v1.CronJob) -> batch_v1.CronJob:
    spec = zero(obj.spec, concurrencyPolicy="Allow")
    spec = unset(spec, suspend=False, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1)
    made = spec.jobTemplate
    # A template of a Job is no Job: only its pod template is filled in.
    filled = put(_failure_policy(made.spec), template=template_spec(made.spec.template))
    made = put(made, spec=filled)
    return put(obj, spec=put(spec, jobTemplate=made))
