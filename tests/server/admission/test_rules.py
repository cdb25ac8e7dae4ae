"""Limits, security, storage, certificates, and what is told although nothing is refused."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from msgspec.structs import replace

from steersman.api.errors import Forbidden, Invalid
from steersman.server.admission.pod_security import LevelVersion, NamespacePolicy, policy_of
from steersman.server.auth.users import User
from steersman.server.server import AdmissionAttributes, Operation

PSS = "pod-security.kubernetes.io/"


def pod(name: str = "p", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


def sized(requests: dict[str, str], limits: dict[str, str]) -> dict[str, Any]:
    resources = {"requests": requests, "limits": limits}
    return pod(containers=[{"name": "c", "image": "i", "resources": resources}])


def warned(ask: Any, plural: str, obj: Any, old: Any = None) -> tuple[str, ...]:
    resource = ask.resource(plural)
    namespace = "default" if resource.namespaced else ""
    operation: Operation = "CREATE" if old is None else "UPDATE"
    told: tuple[str, ...] = ask.server.admission.warnings(
        AdmissionAttributes(operation, resource, "", namespace, obj.metadata.name, obj, old, User(""))
    )
    return told


# -- limits -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("item", "asked", "why"),
    [
        (
            {"type": "Pod", "min": {"cpu": "1"}},
            sized({"memory": "1"}, {}),
            "minimum cpu usage per Pod is 1.  No request is specified",
        ),
        (
            {"type": "Container", "max": {"cpu": "1"}},
            sized({"cpu": "1"}, {"cpu": "1500m"}),
            "maximum cpu usage per Container is 1, but limit is 1500m",
        ),
        (
            {"type": "Container", "min": {"cpu": "1"}, "max": {"memory": "1Mi"}},
            sized({"cpu": "1m"}, {"memory": "2Mi"}),
            "[minimum cpu usage per Container is 1, but request is 1m, "
            "maximum memory usage per Container is 1Mi, but limit is 2Mi]",
        ),
        (
            {"type": "Pod", "maxLimitRequestRatio": {"cpu": "2"}},
            sized({"cpu": "100m"}, {"cpu": "250m"}),
            "cpu max limit to request ratio per Pod is 2, but provided ratio is 2.500000",
        ),
    ],
)
def test_a_pod_out_of_range_is_refused(ask: Any, item: Any, asked: Any, why: str) -> None:
    ask.create("limitranges", {"metadata": {"name": "l"}, "spec": {"limits": [item]}})
    said = ask.forbidden_error("pods", asked)
    assert said.endswith(f"is forbidden: {why}")


def test_what_a_limit_range_fills_in_is_noted(ask: Any) -> None:
    item = {"type": "Container", "default": {"memory": "1Gi", "cpu": "1"}, "defaultRequest": {"cpu": "10m"}}
    ask.create("limitranges", {"metadata": {"name": "l"}, "spec": {"limits": [item]}})
    made = ask.create("pods", pod())
    assert made.metadata.annotations["kubernetes.io/limit-ranger"] == (
        "LimitRanger plugin set: cpu, memory request for container c; cpu, memory limit for container c"
    )
    assert made.spec.containers[0].resources.limits == {"cpu": "1", "memory": "1Gi"}


def test_a_limit_range_that_is_gone_limits_nothing(ask: Any) -> None:
    item = {"type": "Pod", "max": {"cpu": "1"}}
    ask.create("limitranges", {"metadata": {"name": "l"}, "spec": {"limits": [item]}})
    assert "maximum cpu" in ask.forbidden_error("pods", pod())
    ask.delete("limitranges", "l")
    ask.create("pods", pod())


# -- security ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "policy", "wrong"),
    [
        ({}, NamespacePolicy(), 0),
        ({"enforce": "baseline"}, NamespacePolicy(LevelVersion("baseline"), LevelVersion("baseline")), 0),
        (
            {"enforce": "restricted", "enforce-version": "v1.24", "warn": "privileged"},
            NamespacePolicy(LevelVersion("restricted", "v1.24"), LevelVersion()),
            0,
        ),
        ({"enforce": "strict"}, NamespacePolicy(LevelVersion("restricted"), LevelVersion()), 1),
        (
            {"warn": "baseline", "warn-version": "1.2"},
            NamespacePolicy(LevelVersion(), LevelVersion("baseline")),
            1,
        ),
    ],
)
def test_labels_are_read_as_a_policy(labels: dict[str, str], policy: NamespacePolicy, wrong: int) -> None:
    read, found = policy_of({PSS + name: value for name, value in labels.items()})
    assert read == policy
    assert len(found) == wrong


def label(ask: Any, **labels: str) -> Any:
    named = {PSS + name: value for name, value in labels.items()}

    def labelled(old: Any) -> Any:
        return replace(old, metadata=replace(old.metadata, labels={**old.metadata.labels, **named}))

    return ask.patch("namespaces", "default", labelled)


def test_a_namespace_that_becomes_strict_refuses_what_it_let_pass(ask: Any) -> None:
    host = pod("a", hostNetwork=True)
    ask.create("pods", host)
    old = ask.get("namespaces", "default")
    new = label(ask, enforce="baseline")
    said = ask.forbidden_error("pods", pod("b", hostNetwork=True))
    assert (
        said
        == 'pods "b" is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)'
    )
    assert warned(ask, "namespaces", new, old) == (
        'existing pods in namespace "default" violate the new PodSecurity enforce level "baseline:latest"',
        "a: host namespaces",
    )


def test_a_template_is_warned_of_and_not_refused(ask: Any) -> None:
    label(ask, warn="baseline")
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod(hostPID=True)["spec"]}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    made = ask.create("deployments.apps", {"metadata": {"name": "d"}, "spec": spec})
    assert warned(ask, "deployments.apps", made) == (
        'would violate PodSecurity "baseline:latest": host namespaces (hostPID=true)',
    )


def test_labels_nobody_knows_are_refused(ask: Any) -> None:
    with pytest.raises(Invalid, match="must be one of privileged, baseline, restricted"):
        label(ask, enforce="strict")


def test_an_annotation_decides_for_its_own_pod_only(ask: Any) -> None:
    label(ask, enforce="baseline")
    made = ask.create("pods", pod("a"))
    bad = {"container.apparmor.security.beta.kubernetes.io/c": "unconfined"}
    same = replace(made, metadata=replace(made.metadata, annotations=bad))
    plugin = ask.server.admission
    with pytest.raises(Forbidden, match="forbidden AppArmor profile"):
        plugin.validate(
            AdmissionAttributes("CREATE", ask.resource("pods"), "", "default", "a", same, None, User(""))
        )
    plugin.validate(
        AdmissionAttributes("CREATE", ask.resource("pods"), "", "default", "a", made, None, User(""))
    )


# -- the rest ---------------------------------------------------------------------------------


def pkcs10(*organizations: str) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    parts = [x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, each) for each in organizations]
    parts.append(x509.NameAttribute(x509.NameOID.COMMON_NAME, "ada"))
    signed = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(parts)).sign(key, hashes.SHA256())
    return signed.public_bytes(serialization.Encoding.PEM)


def request(pem: bytes) -> dict[str, Any]:
    spec = {
        "request": base64.b64encode(pem).decode(),
        "signerName": "kubernetes.io/kube-apiserver-client",
        "usages": ["client auth"],
    }
    return {"metadata": {"name": "r"}, "spec": spec}


def test_nobody_becomes_a_master_by_a_request(ask: Any) -> None:
    requests = "certificatesigningrequests.certificates.k8s.io"
    masters, devs = pkcs10("devs", "system:masters"), pkcs10("devs")
    for pem in (masters, masters + devs, b"x" + devs + masters):
        said = ask.forbidden_error(requests, request(pem))
        assert said.endswith(
            "is forbidden: use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed"
        )
    # Go does not see a block that begins inside a line: neither kubectl nor the signer does.
    ask.create(requests, request(b"x" + masters + devs))


@pytest.mark.parametrize(
    ("plural", "kind"),
    [
        ("validatingwebhookconfigurations", "ValidatingWebhookConfiguration"),
        ("mutatingwebhookconfigurations", "MutatingWebhookConfiguration"),
    ],
)
def test_a_webhook_configuration_comes_without_warnings(ask: Any, plural: str, kind: str) -> None:
    made = ask.create(f"{plural}.admissionregistration.k8s.io", {"metadata": {"name": "w"}})
    assert warned(ask, f"{plural}.admissionregistration.k8s.io", made) == ()


def test_of_two_default_classes_the_newest_is_taken_and_of_equally_new_ones_the_first(ask: Any) -> None:
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"}
    for name in ("b", "a"):
        body = {"metadata": {"name": name, "annotations": annotations}, "provisioner": "x"}
        ask.create("storageclasses.storage.k8s.io", body)
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    made = ask.create("persistentvolumeclaims", {"metadata": {"name": "c"}, "spec": spec})
    assert made.spec.storageClassName == "a"
    assert made.metadata.finalizers == ("kubernetes.io/pvc-protection",)


def test_a_new_node_is_tainted_once(ask: Any) -> None:
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    one = ask.create("nodes", {"metadata": {"name": "a"}})
    two = ask.create("nodes", {"metadata": {"name": "b"}, "spec": {"taints": [taint]}})
    assert one.spec.taints == two.spec.taints
    assert [each.key for each in one.spec.taints] == [taint["key"]]
