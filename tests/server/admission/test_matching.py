"""Which requests the rules and selectors of webhooks and policies match."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.generated.admissionregistration_v1 import MatchResources, ValidatingWebhook
from steersman.server.admission.matching import (
    Matcher,
    ServedVersions,
    compile_constraints,
    compile_webhook,
    is_exempt,
    namespace_labels,
)
from steersman.server.auth.users import ADMIN
from steersman.server.codec.convert import to_struct
from steersman.server.server import AdmissionAttributes, Server

PODS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
SCALERS = {
    "apiGroups": ["autoscaling"],
    "apiVersions": ["v2"],
    "operations": ["*"],
    "resources": ["horizontalpodautoscalers"],
}


def attributes(server: Server, what: str, operation: Any = "CREATE", **given: Any) -> AdmissionAttributes:
    """A request for ``group/version/plural[/subresource]``, of an object with ``labels``."""
    group, version, plural, *rest = what.split("/")
    resource = server.registry.find(group, version, plural)
    meta = {"name": given.get("name", "a"), "labels": given.get("labels") or {}}
    obj = to_struct(resource.type, {"metadata": meta})
    namespace = given.get("namespace", "default") if resource.namespaced else ""
    subresource = rest[0] if rest else ""
    new, old = (None, obj) if operation == "DELETE" else (obj, None)
    return AdmissionAttributes(
        operation, resource, subresource, namespace, meta["name"], new, old, user=ADMIN
    )


def matched(server: Server, matcher: Matcher, request: AdmissionAttributes) -> str:
    """The version at which a request matches; empty if it does not."""
    found = matcher.matches(
        request,
        lambda each: namespace_labels(each, server.store.table("namespaces").get),
        ServedVersions(server.registry),
    )
    return found.api_version if found is not None else ""


def constraints(**fields: Any) -> Matcher:
    return compile_constraints(to_struct(MatchResources, {"matchPolicy": "Equivalent", **fields}))


@pytest.mark.parametrize(
    ("rule", "what", "given", "expected"),
    [
        (PODS, "/v1/pods", {}, "v1"),
        (PODS, "/v1/pods", {"operation": "UPDATE"}, ""),
        (PODS, "/v1/pods/status", {}, ""),
        (PODS, "/v1/services", {}, ""),
        (PODS | {"resources": ["*"]}, "/v1/services", {}, "v1"),
        (PODS | {"resources": ["*"]}, "/v1/pods/status", {}, ""),
        (PODS | {"resources": ["*/*"]}, "/v1/pods/status", {}, "v1"),
        (PODS | {"resources": ["pods/*"]}, "/v1/pods/status", {}, "v1"),
        (PODS | {"resources": ["pods/*"]}, "/v1/services/status", {}, ""),
        (PODS | {"resources": ["*/status"]}, "/v1/services/status", {}, "v1"),
        (PODS | {"apiGroups": ["*"]}, "/v1/pods", {}, "v1"),
        (PODS | {"apiVersions": ["v2"]}, "/v1/pods", {}, ""),
        (PODS | {"apiVersions": ["*"]}, "/v1/pods", {}, "v1"),
        (PODS | {"scope": "Namespaced"}, "/v1/pods", {}, "v1"),
        (PODS | {"scope": "Cluster"}, "/v1/pods", {}, ""),
        (PODS | {"scope": "Cluster", "resources": ["*"]}, "/v1/namespaces", {}, "v1"),
        (PODS | {"scope": "Namespaced", "resources": ["*"]}, "/v1/namespaces", {}, ""),
        (PODS | {"resourceNames": ["a", "b"]}, "/v1/pods", {"name": "b"}, "v1"),
        (PODS | {"resourceNames": ["a", "b"]}, "/v1/pods", {"name": "c"}, ""),
        (PODS | {"operations": ["*"]}, "/v1/pods", {"operation": "DELETE"}, "v1"),
    ],
)
def test_a_rule_matches_by_operation_resource_scope_and_name(
    server: Server, rule: dict[str, Any], what: str, given: dict[str, Any], expected: str
) -> None:
    assert matched(server, constraints(resourceRules=[rule]), attributes(server, what, **given)) == expected


def test_a_rule_for_another_version_matches_if_the_policy_is_equivalent(server: Server) -> None:
    request = attributes(server, "autoscaling/v1/horizontalpodautoscalers")
    assert matched(server, constraints(resourceRules=[SCALERS]), request) == "autoscaling/v2"
    assert matched(server, constraints(resourceRules=[SCALERS], matchPolicy="Exact"), request) == ""


def test_an_event_matches_in_both_groups(server: Server) -> None:
    rule = PODS | {"apiGroups": ["events.k8s.io"], "resources": ["events"]}
    request = attributes(server, "/v1/events")
    assert matched(server, constraints(resourceRules=[rule]), request) == "events.k8s.io/v1"


def test_excluded_resources_do_not_match(server: Server) -> None:
    everything = PODS | {"resources": ["*"]}
    matcher = constraints(resourceRules=[everything], excludeResourceRules=[PODS])
    assert matched(server, matcher, attributes(server, "/v1/pods")) == ""
    assert matched(server, matcher, attributes(server, "/v1/services")) == "v1"


def test_constraints_without_rules_match_everything_and_webhooks_without_rules_nothing(
    server: Server,
) -> None:
    request = attributes(server, "/v1/pods")
    assert matched(server, compile_constraints(None), request) == "v1"
    assert matched(server, constraints(), request) == "v1"
    assert matched(server, compile_webhook(ValidatingWebhook()), request) == ""


def test_the_namespace_selector_exempts_namespaces_but_no_other_cluster_scoped_object(server: Server) -> None:
    named = {"matchLabels": {"kubernetes.io/metadata.name": "other"}}
    every = {**PODS, "resources": ["*"], "operations": ["*"]}
    matcher = constraints(resourceRules=[every], namespaceSelector=named)
    assert matched(server, matcher, attributes(server, "/v1/pods")) == ""
    assert matched(server, matcher, attributes(server, "/v1/pods", namespace="other")) == "v1"
    assert matched(server, matcher, attributes(server, "/v1/nodes")) == "v1"
    # A new Namespace is matched by the labels it is given, one that is deleted by those it has.
    label = {"kubernetes.io/metadata.name": "other"}
    assert matched(server, matcher, attributes(server, "/v1/namespaces", name="new")) == ""
    assert matched(server, matcher, attributes(server, "/v1/namespaces", name="new", labels=label)) == "v1"
    assert matched(server, matcher, attributes(server, "/v1/namespaces", "DELETE", name="other")) == "v1"


def test_the_object_selector_looks_at_the_new_and_at_the_old_object(server: Server) -> None:
    every = {**PODS, "operations": ["*"]}
    matcher = constraints(resourceRules=[every], objectSelector={"matchLabels": {"app": "web"}})
    assert matched(server, matcher, attributes(server, "/v1/pods")) == ""
    assert matched(server, matcher, attributes(server, "/v1/pods", labels={"app": "web"})) == "v1"
    assert matched(server, matcher, attributes(server, "/v1/pods", "DELETE", labels={"app": "web"})) == "v1"


def test_what_configures_admission_is_exempt(server: Server) -> None:
    find = server.registry.find
    assert is_exempt(find("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies"))
    assert not is_exempt(find("", "v1", "pods"))
