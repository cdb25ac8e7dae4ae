"""NodeAuthorizer: what kubelets may do, each for its own node (upstream's authorization mode Node).

A kubelet is a user ``system:node:NAME`` in the group ``system:nodes``. Objects that pods use are only for the nodes of
those pods; writes that are allowed here for any name are limited to a node's own objects by the admission plugin
NodeRestriction.
"""

from __future__ import annotations

from steersman.api.field_selectors import parse_fields
from steersman.api.generated.rbac_v1 import PolicyRule
from steersman.server.auth.attributes import Attributes, Decision
from steersman.server.auth.node_graph import NodeGraph
from steersman.server.auth.rbac_rules import resource_names, rule_matches
from steersman.server.auth.users import User, node_identity
from steersman.server.status_errors import qualified

_ALLOWED = Decision(True)
_NO_OPINION = Decision(False)
_NODE_LEASES = "kube-node-lease"
_OWN_VERBS = ("get", "create", "update", "patch", "delete")


class NodeAuthorizer:
    """Authorizes the requests of nodes. Has no opinion on those of other users."""

    def __init__(self, graph: NodeGraph, rules: tuple[PolicyRule, ...]) -> None:
        self._graph = graph
        self._rules = rules
        """The rules of all nodes, for requests that do not depend on the node."""

    def authorize(self, attributes: Attributes) -> Decision:
        """Whether a node may make a request."""
        node = node_identity(attributes.user)
        if node is None:
            return _NO_OPINION
        if not node:
            return Decision(False, f"unknown node for user {_go_quote(attributes.user)}")
        if attributes.path is None:
            why = self._refusal(node, attributes)
            if why is not None:
                return Decision(False, why.strip()) if why else _ALLOWED
        for rule in self._rules:
            if rule_matches(rule, attributes):
                only = resource_names(rule, attributes)
                if only is None or attributes.name in only:
                    return _ALLOWED
        return _NO_OPINION

    def _refusal(self, node: str, request: Attributes) -> str | None:
        """Why a request is refused, ``""`` where it is allowed, None where the rules of all nodes decide."""
        match qualified(request.group, request.resource):
            case "secrets" | "configmaps":
                return self._read(node, request)
            case "persistentvolumeclaims" if request.subresource == "status":
                if request.verb not in ("update", "patch"):
                    return "can only get/update/patch this type"
                return self._related(node, request)
            case (
                "persistentvolumeclaims"
                | "persistentvolumes"
                | "resourceclaims.resource.k8s.io"
                | "volumeattachments.storage.k8s.io"
            ):
                return self._get(node, request)
            case "serviceaccounts":
                return self._service_account(node, request)
            case "leases.coordination.k8s.io":
                return _lease(node, request)
            case "csinodes.storage.k8s.io":
                return _csi_node(node, request)
            case "resourceslices.resource.k8s.io":
                return self._resource_slice(node, request)
            case "nodes":
                return _node(node, request)
            case "pods":
                return self._pod(node, request)
        return None

    def _related(self, node: str, request: Attributes) -> str:
        if not request.name:
            return "No Object name found"
        resource = qualified(request.group, request.resource)
        if self._graph.is_related(node, resource, request.namespace, request.name):
            return ""
        return f"no relationship found between node '{node}' and this object"

    def _get(self, node: str, request: Attributes) -> str:
        if request.verb != "get":
            return "can only get individual resources of this type"
        return "cannot get subresource" if request.subresource else self._related(node, request)

    def _read(self, node: str, request: Attributes) -> str:
        if request.verb not in ("get", "list", "watch"):
            return "can only read resources of this type"
        if request.subresource:
            return "cannot read subresource"
        if not request.namespace:
            return "can only read namespaced object of this type"
        return self._related(node, request)

    def _service_account(self, node: str, request: Attributes) -> str:
        if request.verb == "get" and not request.subresource:
            return self._read(node, request)
        if request.verb != "create" or not request.name:
            return "can only create tokens for individual service accounts"
        if request.subresource != "token":
            return "can only create token subresource of serviceaccount"
        return self._related(node, request)

    def _resource_slice(self, node: str, request: Attributes) -> str:
        if request.subresource:
            return "cannot authorize ResourceSlice subresources"
        match request.verb:
            case "create":
                return ""
            case "get" | "update" | "patch" | "delete":
                return self._related(node, request)
            case "watch" | "list" | "deletecollection":
                if _selects(request, "spec.nodeName", node):
                    return ""
                return "can only list/watch/deletecollection resourceslices with nodeName field selector"
        return (
            "only the following verbs are allowed for a ResourceSlice: "
            "get, watch, list, create, update, patch, delete, deletecollection"
        )

    def _pod(self, node: str, request: Attributes) -> str | None:
        match request.subresource, request.verb:
            case "", "get":
                return self._get(node, request)
            case "", "list" | "watch":
                if _selects(request, "spec.nodeName", node):
                    return ""
                if request.name:
                    return self._related(node, request)
                return "can only list/watch pods with spec.nodeName field selector"
            case ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create"):
                return ""
        return _REFUSED


_REFUSED = " "
"""A refusal without a reason."""


def _lease(node: str, request: Attributes) -> str:
    if request.verb not in _OWN_VERBS:
        return "can only get, create, update, patch, or delete a node lease"
    if request.namespace != _NODE_LEASES:
        return f'can only access leases in the "{_NODE_LEASES}" system namespace'
    if request.verb != "create" and request.name != node:
        return "can only access node lease with the same name as the requesting node"
    return ""


def _csi_node(node: str, request: Attributes) -> str:
    if request.verb not in _OWN_VERBS:
        return "can only get, create, update, patch, or delete a CSINode"
    if request.subresource:
        return "cannot authorize CSINode subresources"
    if request.verb != "create" and request.name != node:
        return "can only access CSINode with the same name as the requesting node"
    return ""


def _node(node: str, request: Attributes) -> str:
    match request.subresource, request.verb:
        case ("", "create" | "update" | "patch") | ("status", "update" | "patch"):
            return ""
        case "", "get" | "list" | "watch":
            if request.name == node:
                return ""
            if not request.name:
                return f"node '{node}' cannot read all nodes, only its own Node object"
            return f"node '{node}' cannot read '{request.name}', only its own Node object"
    return _REFUSED


def _selects(request: Attributes, field: str, value: str) -> bool:
    """Whether the field selector of a request requires a value."""
    try:
        return parse_fields(request.field_selector).exact(field) == value
    except ValueError:
        return False


def _go_quote(user: User) -> str:
    return f'"{user.name}"'
