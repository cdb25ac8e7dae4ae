"""Admission webhooks that are Python functions, asked by a cluster under virtual time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from steersman.api.errors import ApiError, BadRequest, Forbidden, Invalid, ServerError
from steersman.server.auth.users import ADMIN
from steersman.server.calls import WebhookAddresses, url_endpoint
from steersman.server.codec.convert import to_struct
from steersman.server.rest.perform import perform
from steersman.server.rest.request import Request
from steersman.server.rest.restart import restartable
from steersman.testing import Cluster
from tests.harness.webhook_server import allow, answered, configuration, denying, patching

Webhook = Callable[[dict[str, Any]], Any]


def client(path: str) -> dict[str, Any]:
    return {"service": {"namespace": "default", "name": "hook", "path": path}}


class Hooks:
    """Functions by path, and the reviews they were asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.cluster = Cluster(nodes=0, controllers=())
        self.functions: dict[str, Webhook] = {}

    def add(self, kind: str, name: str, function: Webhook, **more: Any) -> None:
        """A configuration whose webhook is a function."""

        def recorded(review: dict[str, Any]) -> Any:
            self.asked.append((name, review))
            return function(review)

        self.functions[f"default/hook/{name}"] = recorded
        self.cluster.world.server.webhook_addresses = WebhookAddresses(self.functions)
        self.cluster.apply(configuration(kind, name, client(f"/{name}"), **more))

    def names(self) -> list[str]:
        return [name for name, _ in self.asked]

    def create(self, **more: Any) -> Any:
        return self.cluster.create(cm(**more))


def cm(name: str = "x", **more: Any) -> dict[str, Any]:
    meta = {"name": name, **more.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, **more}


def add(path: str, value: Any) -> Webhook:
    return patching({"op": "add", "path": path, "value": value})


@pytest.fixture
def hooks() -> Iterator[Hooks]:
    made = Hooks()
    with made.cluster:
        yield made


def refusal(hooks: Hooks, **more: Any) -> ApiError:
    with pytest.raises(ApiError) as refused:
        hooks.create(**more)
    with pytest.raises(ApiError):
        hooks.cluster.get("cm", more.get("name", "x"))
    return refused.value


# -- order and patches ------------------------------------------------------------------------


def test_mutating_webhooks_are_asked_in_the_order_of_their_names_and_see_each_others_patches(
    hooks: Hooks,
) -> None:
    hooks.add("Mutating", "b", add("/data/b", "2"))
    hooks.add("Mutating", "a", add("/data", {"a": "1"}))
    hooks.add("Validating", "c", allow)
    made = hooks.create()
    assert dict(made.data) == {"a": "1", "b": "2"}
    assert hooks.names() == ["a", "b", "c"]
    objects = [review["request"]["object"] for _, review in hooks.asked]
    assert [each.get("data") for each in objects] == [None, {"a": "1"}, {"a": "1", "b": "2"}]
    # Names and uids are set before validation, and what a webhook saw is what is stored.
    assert "uid" not in objects[0]["metadata"]
    assert objects[2]["metadata"]["uid"] == made.metadata.uid


def test_the_generated_name_that_a_webhook_saw_is_the_one_that_is_stored(hooks: Hooks) -> None:
    hooks.add("Validating", "a", allow)
    hooks.add("Validating", "b", allow)
    made = hooks.cluster.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "x-", "namespace": "default"}}
    )
    assert {review["request"]["name"] for _, review in hooks.asked} == {made.metadata.name}
    assert {review["request"]["object"]["metadata"]["uid"] for _, review in hooks.asked} == {
        made.metadata.uid
    }
    assert len({review["request"]["uid"] for _, review in hooks.asked}) == 2


def test_a_webhook_is_asked_again_only_if_it_wants_to_and_another_has_changed_the_object(
    hooks: Hooks,
) -> None:
    hooks.add("Mutating", "a", allow, reinvocationPolicy="IfNeeded")
    hooks.add("Mutating", "b", add("/data", {"b": "2"}), reinvocationPolicy="IfNeeded")
    hooks.add("Mutating", "c", allow, reinvocationPolicy="IfNeeded")
    hooks.add("Mutating", "d", allow)
    hooks.create()
    # Those after the change have seen it already.
    assert hooks.names() == ["a", "b", "c", "d", "a"]


def test_built_in_plugins_run_again_after_a_webhook_has_changed_the_object(hooks: Hooks) -> None:
    hooks.cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "LimitRange",
            "metadata": {"name": "l"},
            "spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]},
        }
    )
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}]
    side = {"name": "side", "image": "side:1"}

    def once(review: dict[str, Any]) -> Any:
        names = [each["name"] for each in review["request"]["object"]["spec"]["containers"]]
        return allow(review) if "side" in names else add("/spec/containers/-", side)(review)

    hooks.add("Mutating", "a", once, rules=rules, reinvocationPolicy="IfNeeded")
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "main", "image": "main:1"}]},
    }

    made = hooks.cluster.create(pod)
    assert [str(each.resources.limits["cpu"]) for each in made.spec.containers] == ["1", "1"]
    # LimitRanger changed the new container, so the webhook is asked once more.
    assert hooks.names() == ["a", "a"]


def test_the_fields_of_a_patch_are_defaulted_and_validated(hooks: Hooks) -> None:
    hooks.add("Mutating", "a", add("/data", {"bad key!": "x"}))
    assert isinstance(refusal(hooks), Invalid)


def test_a_webhook_cannot_move_an_object_to_another_namespace(hooks: Hooks) -> None:
    hooks.add("Mutating", "a", add("/metadata/namespace", "kube-system"))
    assert refusal(hooks).message == (
        "the namespace of the provided object does not match the namespace sent on the request"
    )


def test_a_patch_of_an_immutable_field_is_refused_by_validation(hooks: Hooks) -> None:
    hooks.create(immutable=True, data={"a": "1"})
    hooks.add("Mutating", "a", add("/data/b", "2"))
    with pytest.raises(Invalid, match="field is immutable when `immutable` is set"):
        hooks.cluster.patch("cm", "x", {"metadata": {"labels": {"a": "b"}}})
    assert dict(hooks.cluster.get("cm", "x").data) == {"a": "1"}


# -- refusals ---------------------------------------------------------------------------------


def test_a_denial_has_the_code_and_the_words_of_the_webhook(hooks: Hooks) -> None:
    hooks.add("Validating", "a", denying("no such thing", code=403, reason="Forbidden"))
    error = refusal(hooks)
    assert isinstance(error, Forbidden)
    assert error.message == 'admission webhook "a.example.com" denied the request: no such thing'


@pytest.mark.parametrize(
    ("status", "code", "told"),
    [
        (None, 400, " without explanation"),
        ({"reason": "Because"}, 400, ": Because"),
        ({"code": 200, "message": "x"}, 400, ": x"),
        ({"code": 418, "message": "tea"}, 418, ": tea"),
    ],
)
def test_a_denial_is_at_least_a_400(hooks: Hooks, status: Any, code: int, told: str) -> None:
    hooks.add("Validating", "a", lambda review: answered(review, allowed=False, status=status))
    error = refusal(hooks)
    assert (error.code, error.message) == (
        code,
        f'admission webhook "a.example.com" denied the request{told}',
    )


def test_of_several_refusals_the_first_counts_and_all_webhooks_were_asked(hooks: Hooks) -> None:
    for name in ("a", "b", "c"):
        hooks.add("Validating", name, denying(f"says {name}"))
    assert refusal(hooks).message.endswith("says a")
    assert hooks.names() == ["a", "b", "c"]


BROKEN: list[tuple[Any, str]] = [
    (
        b"garbage",
        "failed to call webhook: couldn't get version/kind; json parse error: invalid character 'g'",
    ),
    (b"{}", "received invalid webhook response: webhook response was absent"),
    (b"", "failed to call webhook: 0-length response with status code: 200"),
    (
        b"[]",
        "failed to call webhook: couldn't get version/kind; json parse error: json: cannot unmarshal array",
    ),
    (
        {"response": {"allowed": True}},
        "received invalid webhook response: expected webhook response of admission.k8s.io/v1, "
        "Kind=AdmissionReview, got /, Kind=",
    ),
    ({"uid": "other", "allowed": True}, 'received invalid webhook response: expected response.uid="'),
    ({"allowed": "yes"}, "failed to call webhook: json: cannot unmarshal string into Go struct field"),
    (
        {"allowed": True, "patch": "W10="},
        "received invalid webhook response: webhook returned response.patch but not response.patchType",
    ),
    (
        {"allowed": True, "patchType": "JSONPatch"},
        "received invalid webhook response: webhook returned response.patchType but not response.patch",
    ),
    (
        {"allowed": True, "patchType": "Strange", "patch": "W3sib3AiOiJyZW1vdmUiLCJwYXRoIjoiL2RhdGEifV0="},
        'unsupported patch type "Strange"',
    ),
    (
        {"allowed": True, "patchType": "JSONPatch", "patch": "e30="},
        "received undecodable patch in webhook response: json: cannot unmarshal object into Go value of type",
    ),
    (
        TimeoutError(),
        'failed to call webhook: Post "https://hook.default.svc:443/a?timeout=10s": context deadline',
    ),
    (RuntimeError("broken"), "RuntimeError: broken"),
]


@pytest.mark.parametrize(("made", "told"), BROKEN, ids=[str(n) for n in range(len(BROKEN))])
def test_a_webhook_that_fails_refuses_the_request_or_is_ignored(hooks: Hooks, made: Any, told: str) -> None:
    def broken(review: dict[str, Any]) -> Any:
        if isinstance(made, Exception):
            raise made
        return made

    hooks.add("Mutating", "a", broken)
    error = refusal(hooks)
    assert isinstance(error, ServerError)
    assert error.reason == "InternalError"
    start = 'Internal error occurred: failed calling webhook "a.example.com": '
    assert error.message.startswith(start)
    assert told in error.message.removeprefix(start)
    hooks.add("Mutating", "a", broken, failurePolicy="Ignore")
    assert hooks.create().metadata.name == "x"


def test_a_patch_that_does_not_apply_is_an_internal_error_whatever_the_failure_policy(hooks: Hooks) -> None:
    hooks.add("Mutating", "a", patching({"op": "remove", "path": "/data/x"}), failurePolicy="Ignore")
    assert "remove operation does not apply" in refusal(hooks).message


def test_the_error_for_a_service_without_an_address_names_all_ways_to_state_one(hooks: Hooks) -> None:
    elsewhere = {"service": {"namespace": "default", "name": "elsewhere"}}
    hooks.cluster.apply(configuration("Validating", "a", elsewhere))
    assert refusal(hooks).message.endswith(
        'Post "https://elsewhere.default.svc:443/?timeout=10s": service "elsewhere" not found'
    )
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "elsewhere"},
        "spec": {"ports": [{"port": 443}]},
    }
    hooks.cluster.apply(service)
    message = refusal(hooks).message
    for way in (
        "--webhook-address default/elsewhere=127.0.0.1:PORT",
        "annotation sim.steersman.dev/webhook-address of the Service",
        "pytest.mark.cluster(webhooks=",
    ):
        assert way in message
    meta = {"name": "elsewhere", "annotations": {"sim.steersman.dev/webhook-address": "nowhere"}}
    hooks.cluster.apply({**service, "metadata": meta})
    assert "'nowhere' is no address: write HOST:PORT" in refusal(hooks).message


# -- which requests ---------------------------------------------------------------------------


def test_a_dry_run_is_for_webhooks_without_side_effects(hooks: Hooks) -> None:
    # v1 allows no other sideEffects, so this one has it from a data directory.
    hooks.add("Validating", "a", allow, sideEffects="NoneOnDryRun")
    api = hooks.cluster.world.server

    resource = api.registry.find("", "v1", "configmaps")
    request = Request(ADMIN, "create", resource, "default", dry_run=True)
    body = to_struct(resource.type, cm())
    hooks.cluster.run(restartable(api, lambda: perform(api, request, body)))
    assert hooks.asked[0][1]["request"]["dryRun"] is True
    assert hooks.asked[0][1]["request"]["options"] == {
        "kind": "CreateOptions",
        "apiVersion": "meta.k8s.io/v1",
        "dryRun": ["All"],
    }
    with pytest.raises(ApiError):
        hooks.cluster.get("cm", "x")


def test_deletions_show_the_old_object_and_cannot_be_patched(hooks: Hooks) -> None:
    hooks.create(data={"a": "1"})
    hooks.add("Mutating", "a", allow)
    hooks.add("Validating", "b", denying("keep it"))
    with pytest.raises(BadRequest, match="keep it"):
        hooks.cluster.delete("cm", "x")
    assert [review["request"]["operation"] for _, review in hooks.asked] == ["DELETE", "DELETE"]
    request = hooks.asked[0][1]["request"]
    assert (request["object"], request["oldObject"]["data"]) == (None, {"a": "1"})
    assert request["options"] == {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"}
    hooks.add("Mutating", "a", add("/data/b", "2"))
    with pytest.raises(
        ServerError, match="attempted to modify the object, which is not supported for this operation"
    ):
        hooks.cluster.delete("cm", "x")
    assert hooks.cluster.get("cm", "x").data["a"] == "1"


def test_of_a_collection_the_objects_before_the_refused_one_are_deleted(hooks: Hooks) -> None:
    for name in ("a", "b", "c"):
        hooks.create(name=name)

    def judge(review: dict[str, Any]) -> Any:
        name = review["request"]["oldObject"]["metadata"]["name"]
        return denying("not b")(review) if name == "b" else allow(review)

    hooks.add("Validating", "v", judge)
    with pytest.raises(BadRequest, match="not b"):
        hooks.cluster.run(hooks.cluster.client.delete_collection(hooks.cluster.kind("cm"), "default"))
    assert [each.metadata.name for each in hooks.cluster.list("cm", "default")] == ["b", "c"]
    assert "name" not in hooks.asked[0][1]["request"]


def test_scales_evictions_and_bindings_are_shown_as_what_they_are(hooks: Hooks) -> None:
    rules = [
        {
            "apiGroups": ["", "apps"],
            "apiVersions": ["v1"],
            "resources": ["deployments/scale", "pods/eviction", "pods/binding"],
            "operations": ["*"],
        }
    ]
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "main:1"}]},
    }
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    hooks.cluster.create(
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    )
    hooks.cluster.create(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": template["spec"]}
    )

    def fewer(review: dict[str, Any]) -> Any:
        if review["request"]["kind"]["kind"] != "Scale":
            return allow(review)
        return patching({"op": "replace", "path": "/spec/replicas", "value": 2})(review)

    hooks.add("Mutating", "a", fewer, rules=rules)
    hooks.cluster.scale("deploy", "web", 5)
    assert hooks.cluster.get("deploy", "web").spec.replicas == 2
    pods, api = hooks.cluster.kind("pods"), hooks.cluster.client
    target = {"target": {"kind": "Node", "name": "n"}}
    hooks.cluster.run(api.subresource(pods, "default", "p", "binding", target))
    hooks.cluster.run(api.subresource(pods, "default", "p", "eviction", {"metadata": {"name": "p"}}))
    kinds = [
        (request["kind"]["kind"], request["subResource"], request["operation"])
        for request in (review["request"] for _, review in hooks.asked)
    ]
    assert kinds == [
        ("Scale", "scale", "UPDATE"),
        ("Binding", "binding", "CREATE"),
        ("Eviction", "eviction", "CREATE"),
    ]
    assert hooks.asked[0][1]["request"]["oldObject"]["spec"] == {"replicas": 1}


def test_a_rule_for_one_version_also_matches_requests_for_the_other(hooks: Hooks) -> None:
    rules = [
        {
            "apiGroups": ["autoscaling"],
            "apiVersions": ["v2"],
            "resources": ["horizontalpodautoscalers"],
            "operations": ["CREATE"],
        }
    ]
    hooks.add("Mutating", "a", add("/metadata/labels", {"seen": "yes"}), rules=rules)
    hooks.add("Validating", "exact", denying("no"), rules=rules, matchPolicy="Exact")
    spec = {
        "maxReplicas": 3,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
    }
    made = hooks.cluster.create(
        {
            "apiVersion": "autoscaling/v1",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "h"},
            "spec": {**spec, "targetCPUUtilizationPercentage": 50},
        }
    )
    assert dict(made.metadata.labels) == {"seen": "yes"}
    assert made.spec.targetCPUUtilizationPercentage == 50
    request = hooks.asked[0][1]["request"]
    assert [request[name]["version"] for name in ("kind", "resource", "requestKind", "requestResource")] == [
        "v2",
        "v2",
        "v1",
        "v1",
    ]
    assert request["object"]["apiVersion"] == "autoscaling/v2"
    assert "metrics" in request["object"]["spec"]
    assert hooks.names() == ["a"]


def test_configurations_of_admission_are_exempt(hooks: Hooks) -> None:
    everything = [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"], "operations": ["*"]}]
    hooks.add("Validating", "a", denying("never"), rules=everything)
    with pytest.raises(BadRequest, match="never"):
        hooks.create()
    hooks.cluster.delete("validatingwebhookconfigurations", "a")
    hooks.create()


def test_an_object_that_changes_while_its_webhook_is_asked_is_shown_again(hooks: Hooks) -> None:
    hooks.create(data={"n": "0"})
    server = hooks.cluster.world.server
    resource = server.registry.find("", "v1", "configmaps")

    def meddle(review: dict[str, Any]) -> Any:
        if review["request"]["oldObject"]["data"]["n"] == "0":
            server.rewrite(resource, "default", "x", lambda old: replace(old, data={"n": "1"}))
        return allow(review)

    hooks.add("Validating", "a", meddle)
    made = hooks.cluster.patch("cm", "x", {"metadata": {"labels": {"a": "b"}}})
    assert (dict(made.data), dict(made.metadata.labels)) == ({"n": "1"}, {"a": "b"})
    assert [review["request"]["oldObject"]["data"]["n"] for _, review in hooks.asked] == ["0", "1"]


@pytest.mark.parametrize(
    ("url", "requested"),
    [
        ("https://hook.test", "https://hook.test/"),
        ("https://hook.test/", "https://hook.test/"),
        ("https://hook.test/a/", "https://hook.test/a"),
        ("https://hook.test:8443//a/../b", "https://hook.test:8443/b"),
    ],
)
def test_a_path_is_requested_as_client_go_does_without_a_slash_at_its_end(url: str, requested: str) -> None:
    assert url_endpoint(url, "").url == requested
