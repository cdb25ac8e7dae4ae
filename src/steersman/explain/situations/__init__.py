"""Situations in which objects are stuck: one small function for each, in a table by kind."""

from __future__ import annotations

from steersman.explain.situations import (
    autoscaling,
    batch,
    certificates,
    conditions,
    deletion,
    devices,
    disruption,
    network,
    nodes,
    pods,
    refusals,
    running,
    storage,
    workloads,
)
from steersman.explain.situations.registry import findings, situations

__all__ = (
    "autoscaling",
    "batch",
    "certificates",
    "conditions",
    "deletion",
    "devices",
    "disruption",
    "findings",
    "network",
    "nodes",
    "pods",
    "refusals",
    "running",
    "situations",
    "storage",
    "workloads",
)
