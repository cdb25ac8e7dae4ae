"""The types of batch/v1. Made by tools/generate_api.py; do not edit."""

from __future__ import annotations

from types import NoneType
from typing import Annotated

import msgspec

from steersman.api.generated import core_v1, meta_v1
from steersman.api.generated.base import AnyCondition, Time, none
from steersman.api.generated.merge import ATOMIC, SET, Merge
from steersman.api.kinds import Struct


class JobSpec(Struct, frozen=True):
    activeDeadlineSeconds: int | None = None
    backoffLimit: int | None = None
    backoffLimitPerIndex: int | None = None
    completionMode: str | None = None
    completions: int | None = None
    managedBy: str | None = None
    manualSelector: bool | None = None
    maxFailedIndexes: int | None = None
    parallelism: int | None = None
    podFailurePolicy: PodFailurePolicy | None = None
    podReplacementPolicy: str | None = None
    selector: meta_v1.LabelSelector | None = None
    successPolicy: SuccessPolicy | None = None
    suspend: bool | None = None
    template: core_v1.PodTemplateSpec = msgspec.field(default_factory=core_v1.PodTemplateSpec)
    ttlSecondsAfterFinished: int | None = None


class JobTemplateSpec(Struct, frozen=True):
    metadata: meta_v1.ObjectMeta = msgspec.field(default_factory=meta_v1.ObjectMeta)
    spec: JobSpec = msgspec.field(default_factory=JobSpec)


class CronJobSpec(Struct, frozen=True):
    concurrencyPolicy: str = ""
    failedJobsHistoryLimit: int | None = None
    jobTemplate: JobTemplateSpec = msgspec.field(default_factory=JobTemplateSpec)
    schedule: str = msgspec.field(default_factory=str)
    startingDeadlineSeconds: int | None = None
    successfulJobsHistoryLimit: int | None = None
    suspend: bool | None = None
    timeZone: str | None = None


class CronJobStatus(Struct, frozen=True):
    active: Annotated[tuple[core_v1.ObjectReference, ...], ATOMIC] = ()
    lastScheduleTime: Time | None = None
    lastSuccessfulTime: Time | None = None


class CronJob(meta_v1.Object, frozen=True):
    spec: CronJobSpec = msgspec.field(default_factory=CronJobSpec)
    status: CronJobStatus = msgspec.field(default_factory=CronJobStatus)


class JobStatus(Struct, frozen=True):
    active: int = 0
    completedIndexes: str = ""
    completionTime: Time | None = None
    conditions: Annotated[
        tuple[JobCondition, ...], Merge(strategy="merge", key="type", list_type="atomic")
    ] = ()
    failed: int = 0
    failedIndexes: str | None = None
    ready: int | None = None
    startTime: Time | None = None
    succeeded: int = 0
    terminating: int | None = None
    uncountedTerminatedPods: UncountedTerminatedPods | None = None


class Job(meta_v1.Object, frozen=True):
    spec: JobSpec = msgspec.field(default_factory=JobSpec)
    status: JobStatus = msgspec.field(default_factory=JobStatus)


class JobCondition(AnyCondition, frozen=True):
    lastProbeTime: Time | None = msgspec.field(default_factory=NoneType)
    lastTransitionTime: Time | None = msgspec.field(default_factory=NoneType)
    message: str = ""
    reason: str = ""
    status: str = msgspec.field(default_factory=str)
    type: str = msgspec.field(default_factory=str)


class PodFailurePolicy(Struct, frozen=True):
    rules: Annotated[tuple[PodFailurePolicyRule, ...] | None, ATOMIC] = msgspec.field(
        default_factory=NoneType
    )


class PodFailurePolicyOnExitCodesRequirement(Struct, frozen=True):
    containerName: str | None = None
    operator: str = msgspec.field(default_factory=str)
    values: Annotated[tuple[int, ...], SET] = msgspec.field(default_factory=none)


class PodFailurePolicyOnPodConditionsPattern(Struct, frozen=True):
    status: str = msgspec.field(default_factory=str)
    type: str = msgspec.field(default_factory=str)


class PodFailurePolicyRule(Struct, frozen=True):
    action: str = msgspec.field(default_factory=str)
    onExitCodes: PodFailurePolicyOnExitCodesRequirement | None = None
    onPodConditions: Annotated[tuple[PodFailurePolicyOnPodConditionsPattern, ...], ATOMIC] = ()


class SuccessPolicy(Struct, frozen=True):
    rules: Annotated[tuple[SuccessPolicyRule, ...], ATOMIC] = msgspec.field(default_factory=none)


class SuccessPolicyRule(Struct, frozen=True):
    succeededCount: int | None = None
    succeededIndexes: str | None = None


class UncountedTerminatedPods(Struct, frozen=True):
    failed: Annotated[tuple[str, ...], SET] = ()
    succeeded: Annotated[tuple[str, ...], SET] = ()
