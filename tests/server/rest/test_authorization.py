"""Rights that a request needs for what it does, where ``tests/real/authorization.txt`` has no row about it."""

from __future__ import annotations

import msgspec
import pytest

from steersman.api.errors import Forbidden, Invalid
from steersman.api.generated.admissionregistration_v1 import (
    MutatingAdmissionPolicyBinding,
    MutatingAdmissionPolicyBindingSpec,
    ParamRef,
)
from steersman.api.generated.core_v1 import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.api.generated.rbac_v1 import PolicyRule, Role, RoleBinding, RoleRef, Subject
from steersman.api.generated.resource_v1 import (
    AllocatedDeviceStatus,
    AllocationResult,
    DeviceAllocationResult,
    DeviceClaim,
    DeviceRequest,
    DeviceRequestAllocationResult,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from steersman.server.auth.users import NODE_NAME, User
from steersman.server.bootstrap import bootstrap_server
from steersman.server.server import Server
from tests.harness import verbs
from tests.harness.fake_clock import FakeClock

RBAC = "rbac.authorization.k8s.io"
DRIVER = User("system:serviceaccount:default:driver", extra={NODE_NAME: ("n",)})


@pytest.fixture
def server() -> Server:
    server = Server(FakeClock())
    bootstrap_server(server)
    return server


def _grant(server: Server, rule: PolicyRule, user: User) -> None:
    meta, find = ObjectMeta(name="granted"), server.registry.find
    verbs.create(server, find(RBAC, "v1", "roles"), "default", Role(metadata=meta, rules=(rule,)))
    subject = Subject(apiGroup=RBAC, kind="User", name=user.name)
    ref = RoleRef(apiGroup=RBAC, kind="Role", name="granted")
    binding = RoleBinding(metadata=meta, roleRef=ref, subjects=(subject,))
    verbs.create(server, find(RBAC, "v1", "rolebindings"), "default", binding)


def _allocated(server: Server, *terms: NodeSelectorTerm) -> ResourceClaim:
    """A claim of one device, allocated on the nodes that match one of the terms."""
    resource = server.registry.find("resource.k8s.io", "v1", "resourceclaims")
    request = DeviceRequest(
        name="r", exactly=ExactDeviceRequest(deviceClassName="d", allocationMode="ExactCount", count=1)
    )
    spec = ResourceClaimSpec(devices=DeviceClaim(requests=(request,)))
    claim = verbs.create(server, resource, "default", ResourceClaim(metadata=ObjectMeta(name="c"), spec=spec))
    device = DeviceRequestAllocationResult(request="r", driver="d.example", pool="p", device="x")
    allocation = AllocationResult(
        devices=DeviceAllocationResult(results=(device,)),
        nodeSelector=NodeSelector(nodeSelectorTerms=terms),
    )
    status = msgspec.structs.replace(claim.status, allocation=allocation)
    made: ResourceClaim = verbs.update_status(
        server, resource, "default", "c", msgspec.structs.replace(claim, status=status)
    )
    return made


def _report(server: Server, claim: ResourceClaim, user: User) -> None:
    resource = server.registry.find("resource.k8s.io", "v1", "resourceclaims")
    reported = (AllocatedDeviceStatus(driver="d.example", pool="p", device="x"),)
    status = msgspec.structs.replace(claim.status, devices=reported)
    verbs.update_status(
        server, resource, "default", "c", msgspec.structs.replace(claim, status=status), user=user
    )


def _named(*nodes: str) -> tuple[NodeSelectorRequirement, ...]:
    return (NodeSelectorRequirement(key="metadata.name", operator="In", values=nodes),)


ASSOCIATED = PolicyRule(
    apiGroups=("resource.k8s.io",),
    resources=("resourceclaims/driver",),
    verbs=("associated-node:update",),
    resourceNames=("d.example",),
)


def test_a_driver_may_report_the_devices_of_its_own_node(server: Server) -> None:
    _grant(server, ASSOCIATED, DRIVER)
    _report(server, _allocated(server, NodeSelectorTerm(matchFields=_named("n"))), DRIVER)


@pytest.mark.parametrize(
    ("terms", "user"),
    [
        ([NodeSelectorTerm(matchFields=_named("m"))], DRIVER),
        ([NodeSelectorTerm(matchFields=_named("n")), NodeSelectorTerm(matchFields=_named("m"))], DRIVER),
        ([NodeSelectorTerm(matchFields=_named("n"), matchExpressions=_named("n"))], DRIVER),
        ([NodeSelectorTerm(matchFields=_named("n"))], User(DRIVER.name)),
    ],
    ids=["another node", "two nodes", "labels too", "a token of no node"],
)
def test_a_driver_may_not_report_the_devices_of_other_nodes(
    server: Server, terms: list[NodeSelectorTerm], user: User
) -> None:
    _grant(server, ASSOCIATED, user)
    claim = _allocated(server, *terms)
    with pytest.raises(Invalid, match=r'verb="\[arbitrary-node:update\]" permission'):
        _report(server, claim, user)


def test_a_binding_of_a_mutating_policy_is_refused_in_the_words_that_upstream_mixes_up(
    server: Server,
) -> None:
    resource = server.registry.find("admissionregistration.k8s.io", "v1", "mutatingadmissionpolicybindings")
    ref = ParamRef(name="one", namespace="default", parameterNotFoundAction="Deny")
    spec = MutatingAdmissionPolicyBindingSpec(policyName="absent", paramRef=ref)
    binding = MutatingAdmissionPolicyBinding(metadata=ObjectMeta(name="b"), spec=spec)
    with pytest.raises(
        Invalid, match=r"unable to get policy absent .* user &\{joe  \[\] map\[\]\} does not have \"get\""
    ):
        verbs.create(server, resource, "", binding, user=User("joe"))


def test_a_role_is_refused_before_it_is_found_invalid(server: Server) -> None:
    both = PolicyRule(apiGroups=("",), resources=("pods",), verbs=("get",), nonResourceURLs=("/x",))
    roles = server.registry.find(RBAC, "v1", "roles")
    with pytest.raises(Forbidden, match="not currently held"):
        verbs.create(
            server, roles, "default", Role(metadata=ObjectMeta(name="r"), rules=(both,)), user=User("joe")
        )
