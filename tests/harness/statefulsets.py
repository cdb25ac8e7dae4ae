"""StatefulSets and their pods for tests, each pod in one letter.

====== ==============================================  ====== ================================================
``A``  available                                       ``T``  available and terminating
``R``  ready, not yet for minReadySeconds              ``F``  failed
``N``  running, not ready                              ``S``  succeeded
``P``  pending                                         ``X``  failed and terminating
``Q``  pending and terminating                         ``.``  missing
====== ==============================================  ====== ================================================
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec

from steersman.api.kinds import (
    Condition,
    LabelSelector,
    ObjectMeta,
    PersistentVolumeClaimVolumeSource,
    Pod,
    PodSpec,
    PodStatus,
    Volume,
)
from steersman.api.kinds.statefulsets import (
    STATEFULSETS,
    PersistentVolumeClaimRetentionPolicy,
    RollingUpdateStatefulSetStrategy,
    StatefulSet,
    StatefulSetOrdinals,
    StatefulSetSpec,
    StatefulSetStatus,
    StatefulSetUpdateStrategy,
    VolumeClaimTemplate,
)
from steersman.api.meta import owner_reference
from steersman.controllers.statefulset.identity import POD_INDEX, POD_NAME, claim_names
from steersman.controllers.statefulset.order import PodsByOrdinal, group_by_ordinal
from tests.harness.workloads import CREATED, LABELS, NAMESPACE, pod_template

NOW = CREATED + timedelta(minutes=10)
LETTERS = "ARNPQTFSX."

_PHASES = {"P": "Pending", "Q": "Pending", "F": "Failed", "X": "Failed", "S": "Succeeded"}


def stateful(
    replicas: int = 3,
    image: str = "v1",
    *,
    parallel: bool = False,
    start: int = 0,
    claims: tuple[str, ...] = (),
    keep: str = "",
    partition: int = 0,
    unavailable: int | str | None = None,
    on_delete: bool = False,
    min_ready: int = 60,
    history: int | None = 10,
    deleted: bool = False,
    status: StatefulSetStatus = StatefulSetStatus(),
) -> StatefulSet:
    """A StatefulSet. ``keep`` is the retention policy of claims, whenScaled and whenDeleted: ``RD`` is Retain and
    Delete."""
    words = {"R": "Retain", "D": "Delete"}
    rolling = RollingUpdateStatefulSetStrategy(partition=partition, maxUnavailable=unavailable)
    strategy = StatefulSetUpdateStrategy(type="RollingUpdate", rollingUpdate=rolling)
    return StatefulSet(
        metadata=ObjectMeta(
            name="web",
            namespace=NAMESPACE,
            uid="web-uid",
            resourceVersion="1",
            generation=2,
            creationTimestamp=CREATED,
            deletionTimestamp=NOW if deleted else None,
        ),
        spec=StatefulSetSpec(
            replicas=replicas,
            serviceName="svc",
            selector=LabelSelector(matchLabels=LABELS),
            template=pod_template(image),
            podManagementPolicy="Parallel" if parallel else "OrderedReady",
            ordinals=StatefulSetOrdinals(start=start) if start else None,
            volumeClaimTemplates=tuple(
                VolumeClaimTemplate(metadata=ObjectMeta(name=claim, labels={"claim": claim}))
                for claim in claims
            ),
            persistentVolumeClaimRetentionPolicy=PersistentVolumeClaimRetentionPolicy(
                whenScaled=words[keep[0]], whenDeleted=words[keep[1]]
            )
            if keep
            else None,
            updateStrategy=StatefulSetUpdateStrategy(type="OnDelete") if on_delete else strategy,
            minReadySeconds=min_ready,
            revisionHistoryLimit=history,
        ),
        status=status,
    )


def member(set_: StatefulSet, ordinal: int, letter: str = "A", revision: str = "new", **meta: Any) -> Pod:
    """The pod of an ordinal."""
    name = f"web-{ordinal}"
    ready = letter in "ART"
    since = NOW - timedelta(seconds=1 if letter == "R" else 300)
    volumes = claim_names(set_, ordinal).items()
    metadata = ObjectMeta(
        name=name,
        namespace=NAMESPACE,
        uid=f"{name}-uid",
        resourceVersion="1",
        creationTimestamp=CREATED,
        deletionTimestamp=NOW if letter in "TQX" else None,
        labels={**LABELS, POD_NAME: name, POD_INDEX: str(ordinal), "controller-revision-hash": revision},
        ownerReferences=(owner_reference(set_, STATEFULSETS),),
    )
    return Pod(
        metadata=msgspec.structs.replace(metadata, **meta),
        spec=PodSpec(
            volumes=tuple(
                Volume(name=volume, persistentVolumeClaim=PersistentVolumeClaimVolumeSource(claimName=claim))
                for volume, claim in volumes
            )
        ),
        status=PodStatus(
            phase=_PHASES.get(letter, "Running"),
            conditions=(
                Condition(type="Ready", status="True" if ready else "False", lastTransitionTime=since),
            ),
        ),
    )


def members(set_: StatefulSet, letters: str, revisions: str = "") -> list[Pod]:
    """The pods from the set's first ordinal on. Of the revisions, ``n`` is new and ``o`` is old."""
    start = set_.spec.ordinals.start if set_.spec.ordinals is not None else 0
    names = {"n": "new", "o": "old"}
    return [
        member(set_, start + index, letter, names[revisions[index]] if revisions else "new")
        for index, letter in enumerate(letters)
        if letter != "."
    ]


def by_ordinal(set_: StatefulSet, letters: str, revisions: str = "") -> PodsByOrdinal:
    """The pods from the set's first ordinal on, grouped."""
    return group_by_ordinal(set_, members(set_, letters, revisions), NOW)
