"""DaemonSets, their revisions, pods and nodes for tests."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from steersman.api.kinds import (
    Condition,
    LabelSelector,
    ObjectMeta,
    OwnerReference,
    Pod,
    PodSpec,
    PodStatus,
    PodTemplateSpec,
    RollingUpdate,
)
from steersman.api.kinds.daemonsets import (
    DaemonSet,
    DaemonSetSpec,
    DaemonSetStatus,
    DaemonSetUpdateStrategy,
)
from steersman.api.kinds.nodes import Node, NodeSpec, Taint
from steersman.api.kinds.revisions import ControllerRevision
from steersman.controllers.shared import history

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
LABELS = {"app": "agent"}
SPEC = msgspec.Raw(b'{"containers":[{"name":"c","image":"i"}]}')
EMPTY = {"currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0}
OWNER = OwnerReference(
    apiVersion="apps/v1", kind="DaemonSet", name="agent", uid="ds", controller=True, blockOwnerDeletion=True
)


def daemonset(
    spec: msgspec.Raw = SPEC,
    *,
    unavailable: Any = 1,
    labels: Mapping[str, str] | None = None,
    status: dict[str, Any] | None = None,
    meta: dict[str, Any] | None = None,
    **more: Any,
) -> DaemonSet:
    """A DaemonSet called agent, with what the tests of its controller leave out."""
    strategy = DaemonSetUpdateStrategy(
        type="RollingUpdate", rollingUpdate=RollingUpdate(maxUnavailable=unavailable, maxSurge=0)
    )
    return DaemonSet(
        metadata=ObjectMeta(
            **{"namespace": "default", "name": "agent", "uid": "ds", "generation": 2, **(meta or {})}
        ),
        spec=DaemonSetSpec(
            **{
                "selector": LabelSelector(matchLabels=LABELS if labels is None else labels),
                "template": PodTemplateSpec(metadata=ObjectMeta(labels=LABELS), spec=spec),
                "updateStrategy": strategy,
                "revisionHistoryLimit": 1,
                **more,
            }
        ),
        status=DaemonSetStatus(**{**EMPTY, "observedGeneration": 2, **(status or {})}),
    )


def revision(
    number: int, hash_: str = "now", spec: msgspec.Raw = SPEC, *, owned: bool = True, **labels: str
) -> ControllerRevision:
    """A revision of the DaemonSet's template."""
    template = PodTemplateSpec(metadata=ObjectMeta(labels=LABELS), spec=spec)
    return ControllerRevision(
        metadata=ObjectMeta(
            name=f"agent-{hash_}",
            namespace="default",
            uid=f"revision-{hash_}",
            labels={**LABELS, "controller-revision-hash": hash_, **labels},
            ownerReferences=(OWNER,) if owned else (),
        ),
        data=history.data_of(template),
        revision=number,
    )


def pod(
    node: str = "n1",
    *,
    hash_: str = "now",
    ready: float | None = 600,
    phase: str = "Running",
    age: float = 900,
    name: str = "",
    going: bool = False,
    owned: bool = True,
    app: str = "agent",
) -> Pod:
    """A pod of the DaemonSet on a node, ready for so many seconds."""
    conditions: tuple[Condition, ...] = ()
    if ready is not None:
        since = NOW - timedelta(seconds=ready)
        conditions = (Condition(type="Ready", status="True", lastTransitionTime=since),)
    return Pod(
        metadata=ObjectMeta(
            name=name or f"on-{node}",
            namespace="default",
            uid=name or f"on-{node}",
            labels={"app": app, "controller-revision-hash": hash_},
            creationTimestamp=NOW - timedelta(seconds=age),
            deletionTimestamp=NOW if going else None,
            ownerReferences=(OWNER,) if owned else (),
        ),
        spec=PodSpec(nodeName=node),
        status=PodStatus(phase=phase, conditions=conditions),
    )


def node(name: str = "n1", *taints: Taint, **labels: str) -> Node:
    return Node(metadata=ObjectMeta(name=name, labels=labels), spec=NodeSpec(taints=taints))
