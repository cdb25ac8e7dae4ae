"""How a control plane begins: keys, roles, and what every cluster has."""

from __future__ import annotations

import stat
from pathlib import Path

import msgspec
import pytest

from steersman.api.errors import Forbidden
from steersman.api.generated.certificates_v1 import (
    CertificateSigningRequest,
    CertificateSigningRequestCondition,
    CertificateSigningRequestSpec,
    CertificateSigningRequestStatus,
)
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.api.generated.rbac_v1 import (
    ClusterRole,
    ClusterRoleBinding,
    PolicyRule,
    Role,
    RoleRef,
    Subject,
)
from steersman.client.kubeconfig import load
from steersman.server.auth.attributes import Attributes
from steersman.server.auth.users import APISERVER, User
from steersman.server.bootstrap import NAMESPACES, Bootstrap, bootstrap_server
from steersman.server.bootstrap_objects import ADVERTISED_ADDRESS, install_roles
from steersman.server.server import Server
from tests.harness import verbs
from tests.harness.fake_clock import FakeClock
from tests.real.scenario import CSR


@pytest.fixture
def server() -> Server:
    return Server(FakeClock())


def test_what_every_cluster_has_is_created_once(server: Server) -> None:
    bootstrap_server(server, client_ca=b"certificate")
    assert server.store.table("namespaces").keys() == list(NAMESPACES)
    assert server.store.table("services").get("default/kubernetes") is not None
    told = server.store.table("configmaps").get("kube-system/extension-apiserver-authentication")
    assert told.data == {"client-ca-file": "certificate"}
    revision = server.store.revision
    bootstrap_server(server, client_ca=b"certificate")
    assert server.store.revision == revision


def test_the_server_has_a_range_an_address_and_endpoints_of_its_own(server: Server) -> None:
    bootstrap_server(server)
    cidr = server.store.table("servicecidrs.networking.k8s.io").get("kubernetes")
    assert cidr.spec.cidrs == ("10.0.0.0/16",)
    (ready,) = cidr.status.conditions
    assert (ready.type, ready.status, ready.reason) == ("Ready", "True", "")
    assert ready.message == "Kubernetes default Service CIDR is ready"
    assert server.store.table("ipaddresses.networking.k8s.io").keys() == ["10.0.0.1"]
    endpoints = server.store.table("endpoints").get("default/kubernetes")
    assert endpoints.metadata.labels == {"endpointslice.kubernetes.io/skip-mirror": "true"}
    sliced = server.store.table("endpointslices.discovery.k8s.io").get("default/kubernetes")
    assert sliced.metadata.labels == {"kubernetes.io/service-name": "kubernetes"}
    (subset,), (endpoint,) = endpoints.subsets, sliced.endpoints
    assert [each.ip for each in subset.addresses] == list(endpoint.addresses) == [ADVERTISED_ADDRESS]
    assert (subset.ports[0].name, subset.ports[0].port) == ("https", 6443)
    assert (sliced.ports[0].name, sliced.ports[0].port) == ("https", 6443)


def test_services_of_an_older_server_get_their_ipaddresses(server: Server) -> None:
    bootstrap_server(server)
    resource = server.registry.find("networking.k8s.io", "v1", "ipaddresses")
    server.remove(resource, "10.0.0.1")
    bootstrap_server(server)
    assert server.store.table(resource.table).keys() == ["10.0.0.1"]


def test_roles_are_followed(server: Server) -> None:
    authorizer = bootstrap_server(server)
    node = User("system:kube-scheduler")
    assert authorizer.authorize(Attributes(node, "create", "", "pods", "binding", "default")).allowed
    bindings = server.registry.find("rbac.authorization.k8s.io", "v1", "clusterrolebindings")
    verbs.delete(server, bindings, "", "system:kube-scheduler")
    assert not authorizer.authorize(Attributes(node, "create", "", "pods", "binding", "default")).allowed


def test_what_was_taken_from_a_bootstrap_role_is_given_back(server: Server) -> None:
    bootstrap_server(server)
    resource = server.registry.find("rbac.authorization.k8s.io", "v1", "clusterroles")
    role = server.get(resource, "", "system:kube-scheduler")
    server.rewrite(resource, "", "system:kube-scheduler", lambda old: msgspec.structs.replace(old, rules=()))
    install_roles(server)
    assert len(server.get(resource, "", "system:kube-scheduler").rules) >= len(role.rules)


def test_the_control_plane_itself_may_grant_and_others_only_what_they_hold(server: Server) -> None:
    bootstrap_server(server)
    resource = server.registry.find("rbac.authorization.k8s.io", "v1", "roles")
    rule = PolicyRule(apiGroups=("",), resources=("secrets",), verbs=("get",))

    def grant(name: str, user: User) -> None:
        made = Role(metadata=ObjectMeta(name=name), rules=(rule,))
        verbs.create(server, resource, "default", made, user=user)

    grant("ours", APISERVER)
    with pytest.raises(Forbidden, match="not currently held"):
        grant("theirs", User("stranger"))


def _bind(server: Server, name: str, rule: PolicyRule, user: User) -> None:
    """Gives a user a rule at the cluster scope."""
    group = "rbac.authorization.k8s.io"
    meta, find = ObjectMeta(name=name), server.registry.find
    verbs.create(server, find(group, "v1", "clusterroles"), "", ClusterRole(metadata=meta, rules=(rule,)))
    subject = Subject(apiGroup=group, kind="User", name=user.name)
    ref = RoleRef(apiGroup=group, kind="ClusterRole", name=name)
    binding = ClusterRoleBinding(metadata=meta, roleRef=ref, subjects=(subject,))
    verbs.create(server, find(group, "v1", "clusterrolebindings"), "", binding)


def test_a_fork_prevents_escalation_by_its_own_roles(server: Server) -> None:
    bootstrap_server(server)
    fork, joe = server.fork(), User("joe")
    held = {
        server: PolicyRule(apiGroups=("",), resources=("pods",), verbs=("get",)),
        fork: PolicyRule(apiGroups=("",), resources=("secrets",), verbs=("get",)),
    }
    for each, rule in held.items():
        _bind(each, "held", rule, joe)
    for each, own in held.items():
        resource = each.registry.find("rbac.authorization.k8s.io", "v1", "roles")
        for name, rule in (("pods", held[server]), ("secrets", held[fork])):
            made = Role(metadata=ObjectMeta(name=name), rules=(rule,))
            if rule is own:
                verbs.create(each, resource, "default", made, user=joe)
                continue
            with pytest.raises(Forbidden, match="not currently held"):
                verbs.create(each, resource, "default", made, user=joe)


def test_a_fork_authorizes_approvals_by_its_own_roles(server: Server) -> None:
    bootstrap_server(server)
    fork, joe = server.fork(), User("joe")
    _bind(
        fork,
        "approver",
        PolicyRule(apiGroups=("certificates.k8s.io",), resources=("signers",), verbs=("approve",)),
        joe,
    )
    approved = CertificateSigningRequestCondition(type="Approved", status="True", reason="Fine")
    for each in (server, fork):
        resource = each.registry.find("certificates.k8s.io", "v1", "certificatesigningrequests")
        spec = CertificateSigningRequestSpec(
            request=CSR["request"], signerName=CSR["signerName"], usages=("client auth",)
        )
        made = verbs.create(
            each, resource, "", CertificateSigningRequest(metadata=ObjectMeta(name="r"), spec=spec)
        )
        wanted = msgspec.structs.replace(made, status=CertificateSigningRequestStatus(conditions=(approved,)))
        if each is fork:
            verbs.update(each, resource, "", "r", wanted, subresource="approval", user=joe)
            continue
        with pytest.raises(Forbidden, match="not permitted to approve"):
            verbs.update(each, resource, "", "r", wanted, subresource="approval", user=joe)


def test_a_dry_run_writes_nothing(server: Server) -> None:
    bootstrap_server(server)
    revision = server.store.revision
    namespaces = server.registry.find("", "v1", "namespaces")
    from steersman.api.generated.core_v1 import Namespace

    made = verbs.create(server, namespaces, "", Namespace(metadata=ObjectMeta(name="n")), dry_run=True)
    assert made.metadata.uid
    assert not made.metadata.resourceVersion
    deleted = verbs.delete(server, namespaces, "", "kube-node-lease", dry_run=True).obj
    assert deleted.status.phase == "Terminating"
    assert server.store.revision == revision
    assert server.get(namespaces, "", "kube-node-lease").status.phase == "Active"


def test_keys_are_kept_and_nobody_else_may_read_them(tmp_path: Path) -> None:
    clock = FakeClock()
    one = Bootstrap.load_or_generate(tmp_path / "keys", clock.now)
    two = Bootstrap.load_or_generate(tmp_path / "keys", clock.now)
    assert one.authority.pair == two.authority.pair
    assert one.keys.pem == two.keys.pem
    for file in (tmp_path / "keys").iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


def test_a_kubeconfig_can_be_read_by_clients(tmp_path: Path) -> None:
    boot = Bootstrap.generate(FakeClock().now)
    path = tmp_path / "kubeconfig"
    path.write_bytes(boot.kubeconfig("https://127.0.0.1:6443", "jane", ("devs",)))
    connection = load(str(path))
    assert connection.server == "https://127.0.0.1:6443"
    assert connection.tls.ca.data == boot.authority.pair.cert
    assert connection.tls.cert.data.startswith(b"-----BEGIN CERTIFICATE-----")
