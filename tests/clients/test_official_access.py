"""The official client for Python: who one is, what one may, and how a program inside a cluster finds it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client, config
from kubernetes.client.exceptions import ForbiddenException, UnauthorizedException
from kubernetes.config.incluster_config import InClusterConfigLoader

RBAC = "rbac.authorization.k8s.io"
TRIES = 5000
"""How often to ask again. A real server decides by caches of its own: a binding may take a moment to count."""


def token_of(admin: client.ApiClient, namespace: str, name: str, **spec: Any) -> Any:
    request = client.AuthenticationV1TokenRequest(
        spec=client.V1TokenRequestSpec(**{"audiences": [], "expiration_seconds": 600, **spec})
    )
    return client.CoreV1Api(admin).create_namespaced_service_account_token(name, namespace, request).status


@pytest.fixture
def robot(mounted: Path) -> Iterator[client.ApiClient]:
    """The client as a program in a pod has it."""
    made = client.Configuration()
    loader = InClusterConfigLoader(
        token_filename=str(mounted / "token"), cert_filename=str(mounted / "ca.crt")
    )
    loader.load_and_set(made)
    with client.ApiClient(made) as api:
        yield api


def test_a_kubeconfig_is_loaded_with_its_context(plane: Any) -> None:
    made = client.Configuration()
    config.load_kube_config(str(plane.kubeconfig), client_configuration=made)
    contexts, active = config.list_kube_config_contexts(str(plane.kubeconfig))
    assert active in contexts
    with client.ApiClient(made) as api:
        version = client.VersionApi(api).get_code()
        assert (version.major, version.minor) == ("1", "36")
        assert "default" in [each.metadata.name for each in client.CoreV1Api(api).list_namespace().items]


def test_a_program_in_a_pod_is_its_service_account(robot: client.ApiClient, namespace: str) -> None:
    review = client.AuthenticationV1Api(robot).create_self_subject_review(client.V1SelfSubjectReview())
    user = review.status.user_info
    assert user.username == f"system:serviceaccount:{namespace}:default"
    assert user.groups == [
        "system:serviceaccounts",
        f"system:serviceaccounts:{namespace}",
        "system:authenticated",
    ]


def test_a_service_account_may_what_its_roles_say_and_nothing_else(
    admin: client.ApiClient, robot: client.ApiClient, namespace: str
) -> None:
    core, rights = client.CoreV1Api(robot), client.RbacAuthorizationV1Api(admin)
    with pytest.raises(ForbiddenException, match="cannot list resource"):
        core.list_namespaced_config_map(namespace)
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "create"]}]
    rights.create_namespaced_role(namespace, {"metadata": {"name": "reader"}, "rules": rules})
    binding = {
        "metadata": {"name": "reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": namespace}],
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "reader"},
    }
    rights.create_namespaced_role_binding(namespace, binding)
    access = client.AuthorizationV1Api(robot)

    def may(verb: str, resource: str, where: str = namespace) -> bool:
        asked = client.V1ResourceAttributes(namespace=where, verb=verb, resource=resource)
        spec = client.V1SelfSubjectAccessReviewSpec(resource_attributes=asked)
        made = access.create_self_subject_access_review(client.V1SelfSubjectAccessReview(spec=spec))
        return bool(made.status.allowed)

    assert any(may("list", "configmaps") for _ in range(TRIES))
    assert [may("delete", "configmaps"), may("list", "secrets"), may("list", "configmaps", "default")] == [
        False,
        False,
        False,
    ]
    core.create_namespaced_config_map(namespace, {"metadata": {"name": "mine"}})
    assert "mine" in [each.metadata.name for each in core.list_namespaced_config_map(namespace).items]
    with pytest.raises(ForbiddenException) as refused:
        core.delete_namespaced_config_map("mine", namespace)
    assert json.loads(refused.value.body)["message"] == (
        f'configmaps "mine" is forbidden: User "system:serviceaccount:{namespace}:default" cannot delete '
        f'resource "configmaps" in API group "" in the namespace "{namespace}"'
    )
    spec = client.V1SelfSubjectRulesReviewSpec(namespace=namespace)
    review = access.create_self_subject_rules_review(client.V1SelfSubjectRulesReview(spec=spec))
    assert ["get", "list", "create"] in [each.verbs for each in review.status.resource_rules]


def test_nobody_grants_more_than_they_have(
    admin: client.ApiClient, robot: client.ApiClient, namespace: str
) -> None:
    rights = client.RbacAuthorizationV1Api(admin)
    rules = [{"apiGroups": [RBAC], "resources": ["roles"], "verbs": ["create"]}]
    rights.create_namespaced_role(namespace, {"metadata": {"name": "granter"}, "rules": rules})
    binding = {
        "metadata": {"name": "granter"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": namespace}],
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "granter"},
    }
    rights.create_namespaced_role_binding(namespace, binding)
    spec = {
        "user": f"system:serviceaccount:{namespace}:default",
        "resourceAttributes": {"namespace": namespace, "verb": "create", "group": RBAC, "resource": "roles"},
    }
    reviews = client.AuthorizationV1Api(admin)
    assert any(reviews.create_subject_access_review({"spec": spec}).status.allowed for _ in range(TRIES))
    more = [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]
    with pytest.raises(ForbiddenException, match="attempting to grant RBAC permissions not currently held"):
        client.RbacAuthorizationV1Api(robot).create_namespaced_role(
            namespace, {"metadata": {"name": "more"}, "rules": more}
        )


def test_a_token_is_for_its_audience_and_is_reviewed(admin: client.ApiClient, namespace: str) -> None:
    client.CoreV1Api(admin).create_namespaced_service_account(namespace, {"metadata": {"name": "bot"}})
    minted = token_of(admin, namespace, "bot", audiences=["vault"])
    assert minted.expiration_timestamp
    reviews = client.AuthenticationV1Api(admin)

    def review(**spec: Any) -> Any:
        body = client.V1TokenReview(spec=client.V1TokenReviewSpec(token=minted.token, **spec))
        return reviews.create_token_review(body).status

    reviewed = review(audiences=["vault", "other"])
    assert (reviewed.authenticated, reviewed.audiences) == (True, ["vault"])
    assert reviewed.user.username == f"system:serviceaccount:{namespace}:bot"
    assert not review().authenticated, "it is not for the API server"


def test_a_token_goes_with_the_account_it_was_minted_for(
    plane: Any, admin: client.ApiClient, robot: client.ApiClient, namespace: str
) -> None:
    access = client.AuthenticationV1Api(robot)
    access.create_self_subject_review(client.V1SelfSubjectReview())
    client.CoreV1Api(admin).delete_namespaced_service_account("default", namespace)
    if plane.real:
        pytest.skip("a real server remembers for ten seconds that a token was good")
    with pytest.raises(UnauthorizedException):
        access.create_self_subject_review(client.V1SelfSubjectReview())


def test_who_may_acts_as_somebody_else(plane: Any) -> None:
    with config.new_client_from_config(str(plane.kubeconfig)) as api:
        api.set_default_header("Impersonate-User", "jane")
        api.set_default_header("Impersonate-Group", "developers")
        made = client.AuthenticationV1Api(api).create_self_subject_review(client.V1SelfSubjectReview())
        assert made.status.user_info.username == "jane"
        assert made.status.user_info.groups == ["developers", "system:authenticated"]
        with pytest.raises(ForbiddenException, match='User \\\\"jane\\\\" cannot list resource'):
            client.CoreV1Api(api).list_namespaced_secret("default")


def test_a_stranger_and_a_wrong_token_are_refused(plane: Any) -> None:
    made = client.Configuration()
    made.host, made.ssl_ca_cert = plane.url, str(plane.ca)
    with client.ApiClient(made) as api, pytest.raises(ForbiddenException, match="system:anonymous"):
        client.CoreV1Api(api).list_namespace()
    made.api_key = {"BearerToken": "Bearer wrong"}
    with client.ApiClient(made) as api, pytest.raises(UnauthorizedException):
        client.CoreV1Api(api).list_namespace()


def test_a_kubeconfig_with_a_token_in_a_file_is_read_again(
    plane: Any, admin: client.ApiClient, namespace: str, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text(token_of(admin, namespace, "default").token)
    document = yaml.safe_load(plane.kubeconfig.read_text())
    document["users"][0]["user"] = {"tokenFile": str(tmp_path / "token")}
    (tmp_path / "config").write_text(yaml.safe_dump(document))
    with config.new_client_from_config(str(tmp_path / "config")) as api:
        made = client.AuthenticationV1Api(api).create_self_subject_review(client.V1SelfSubjectReview())
        assert made.status.user_info.username == f"system:serviceaccount:{namespace}:default"
