"""Views of Nodes."""

from __future__ import annotations

from steersman.api.kinds import Condition, Object, Struct
from steersman.api.scheme import Kind, register


class Taint(Struct, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Struct, frozen=True):
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False


class NodeStatus(Struct, frozen=True):
    conditions: tuple[Condition, ...] = ()


class Node(Object, frozen=True):
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


NODES = register(Kind("", "v1", "Node", "nodes", False, Node))
