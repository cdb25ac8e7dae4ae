"""kopf: operators made with it, each in a process of its own, as people run them.

Definitions and operators are after the examples of kopf (github.com/nolar/kopf, MIT): crd.yaml, obj.yaml,
peering.yaml, and what `operators` names.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import kopf
import pytest
import yaml
from kopf.testing import KopfRunner
from kubernetes import client, watch

from tests.harness.child_process import Child, until

OPERATORS = Path(__file__).parent / "operators"
WAIT = 30
FINALIZER = "kopf.zalando.org/KopfFinalizerMarker"
HANDLED = "kopf.zalando.org/last-handled-configuration"
READY = "Initial authentication has finished"

_numbers = itertools.count(1)


def definition(kind: str, plural: str, **version: Any) -> dict[str, Any]:
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": free, "status": free}}
    return {
        "metadata": {"name": f"{plural}.kopf.dev"},
        "spec": {
            "group": "kopf.dev",
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    **version,
                }
            ],
        },
    }


@pytest.fixture(scope="session")
def defined(admin: client.ApiClient) -> None:
    """The custom resources of all operators here; they go with the plane."""
    extensions = client.ApiextensionsV1Api(admin)
    columns = [{"name": "Message", "type": "string", "jsonPath": ".status.create_fn.message"}]
    for body in (
        definition(
            "KopfExample", "kopfexamples", subresources={"status": {}}, additionalPrinterColumns=columns
        ),
        definition("KopfPeering", "kopfpeerings"),
    ):
        extensions.create_custom_resource_definition(body)
    awaited = {"kopfexamples.kopf.dev", "kopfpeerings.kopf.dev"}
    for event in watch.Watch().stream(extensions.list_custom_resource_definition, timeout_seconds=WAIT):
        found = event["object"]
        if any(
            each.type == "Established" and each.status == "True" for each in found.status.conditions or ()
        ):
            awaited.discard(found.metadata.name)
        if not awaited:
            return
    raise AssertionError(f"not established: {awaited}")


class Examples:
    """The objects an operator is about, in one namespace."""

    def __init__(self, admin: client.ApiClient, namespace: str, plural: str = "kopfexamples") -> None:
        self.custom = client.CustomObjectsApi(admin)
        self.where = ("kopf.dev", "v1", namespace, plural)

    def create(self, name: str, kind: str = "KopfExample", **spec: Any) -> Any:
        body = {"apiVersion": "kopf.dev/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
        return self.custom.create_namespaced_custom_object(*self.where, body)

    def patch(self, name: str, change: dict[str, Any]) -> Any:
        return self.custom.patch_namespaced_custom_object(*self.where, name, change)

    def delete(self, name: str) -> dict[str, Any]:
        """Delete an object and wait until it is gone; how it was seen last."""
        since = self.custom.list_namespaced_custom_object(*self.where)["metadata"]["resourceVersion"]
        self.custom.delete_namespaced_custom_object(*self.where, name)
        return self._until(lambda event, _: event == "DELETED", "deleted", resource_version=since)

    def until(self, good: Callable[[dict[str, Any]], Any], why: str) -> dict[str, Any]:
        """Watch until something is so of an object; the object."""
        return self._until(lambda _, found: good(found), why)

    def _until(self, good: Callable[[str, Any], Any], why: str, **since: str) -> dict[str, Any]:
        found: Any = None
        events = watch.Watch().stream(
            self.custom.list_namespaced_custom_object, *self.where, timeout_seconds=WAIT, **since
        )
        for event in events:
            found = event["object"]
            if good(event["type"], found):
                return dict(found)
        raise AssertionError(f"never {why}: {found}")


@pytest.fixture
def examples(admin: client.ApiClient, defined: None, namespace: str) -> Examples:
    return Examples(admin, namespace)


@pytest.fixture
def operate(plane: Any, namespace: str, tmp_path: Path) -> Callable[..., Any]:
    """Run an operator in a process of its own while in the block."""

    @contextmanager
    def operating(name: str, *argv: str, kubeconfig: Path | None = None, code: int = 0) -> Iterator[Child]:
        where = [f"--namespace={namespace}", str(OPERATORS / f"{name}.py")]
        command = [sys.executable, "-m", "kopf", "run", "--verbose", *argv, *where]
        env = {"KUBECONFIG": str(kubeconfig or plane.kubeconfig), "HOME": str(tmp_path)}
        child = Child(command, tmp_path / f"operator-{next(_numbers)}.log", env)
        try:
            until(lambda: READY in child.log(), child, WAIT, READY)
            yield child
            assert child.stop(grace=WAIT) == code, child.log()
        finally:
            child.end()

    return operating


def status(obj: dict[str, Any]) -> dict[str, Any]:
    return dict(obj.get("status", {}))


def created(obj: dict[str, Any]) -> bool:
    """Whether all handlers of its creation are done, and what they returned is there."""
    return HANDLED in obj["metadata"].get("annotations", {}) and "create_fn" in status(obj)


def changed(obj: dict[str, Any]) -> bool:
    """The same of a change of one of its fields."""
    return "update_fn" in status(obj) and status(obj).get("field_fn/spec.field", {}).get("new") == "other"


# -- an object's life -------------------------------------------------------------------------


def test_an_operator_handles_creation_change_and_deletion(
    admin: client.ApiClient, examples: Examples, namespace: str, operate: Callable[..., Any]
) -> None:
    core = client.CoreV1Api(admin)
    with operate("handlers", "--standalone") as operator:
        made = examples.create("kopf-example-1", duration="1m", field="value", items=["item1", "item2"])
        found = examples.until(created, "created")
        assert found["status"]["create_fn"]["message"] == "hello world"
        assert found["metadata"]["finalizers"] == [FINALIZER]
        (child,) = [
            each
            for each in core.list_namespaced_config_map(namespace).items
            if each.metadata.uid in found["status"]["create_fn"]["children"]
        ]
        assert child.data == {"field": "value"}
        assert [(each.kind, each.uid) for each in child.metadata.owner_references] == [
            ("KopfExample", made["metadata"]["uid"])
        ]
        examples.patch("kopf-example-1", {"spec": {"field": "other", "more": True}})
        found = examples.until(changed, "changed")
        assert sorted(found["status"]["update_fn"]["changed"]) == ["spec.field", "spec.more"]
        assert found["status"]["field_fn/spec.field"] == {"old": "value", "new": "other"}
        assert examples.delete("kopf-example-1")["metadata"]["deletionTimestamp"]
        reasons = dict.fromkeys(("Logging", "Noticed", "Goodbye"), False)
        for event in watch.Watch().stream(core.list_namespaced_event, namespace, timeout_seconds=WAIT):
            if event["object"].involved_object.uid == made["metadata"]["uid"]:
                reasons[event["object"].reason] = True
            if all(reasons.values()):
                break
        assert all(reasons.values()), reasons
        assert "Traceback" not in operator.log(), operator.log()


def test_an_operator_that_was_killed_sees_what_changed_meanwhile(
    examples: Examples, operate: Callable[..., Any]
) -> None:
    examples.create("kopf-example-1", field="value")
    with operate("handlers", "--standalone", code=-9) as operator:
        examples.until(created, "created")
        operator.end()
    examples.patch("kopf-example-1", {"spec": {"field": "other"}})
    with operate("handlers", "--standalone"):
        found = examples.until(changed, "changed")
        assert found["status"]["update_fn"] == {"changed": ["spec.field"]}
        assert found["status"]["field_fn/spec.field"] == {"old": "value", "new": "other"}
        examples.delete("kopf-example-1")


def test_timers_daemons_and_retries_work(examples: Examples, operate: Callable[..., Any]) -> None:
    with operate("background", "--standalone") as operator:
        examples.create("kopf-example-1", field="value")
        found = examples.until(
            lambda each: status(each).get("ticks", 0) >= 3 and "eventual_success" in status(each), "ticked"
        )
        assert found["status"]["eventual_success"] == {"retries": 2}
        assert "instant_failure" not in found["status"]
        assert "Fail once and for all." in operator.log()
        assert examples.delete("kopf-example-1")["metadata"]["deletionTimestamp"]
        assert "Daemon 'beside' is cancelled" in operator.log()


def test_an_operator_needs_no_more_rights_than_kopf_says(
    plane: Any,
    admin: client.ApiClient,
    examples: Examples,
    namespace: str,
    operate: Callable[..., Any],
    tmp_path: Path,
) -> None:
    rights, core = client.RbacAuthorizationV1Api(admin), client.CoreV1Api(admin)
    rules = [
        {
            "apiGroups": ["kopf.dev"],
            "resources": ["kopfexamples", "kopfexamples/status"],
            "verbs": ["list", "watch", "patch"],
        },
        {"apiGroups": [""], "resources": ["events", "configmaps"], "verbs": ["create"]},
    ]
    watching = [
        {
            "apiGroups": ["apiextensions.k8s.io"],
            "resources": ["customresourcedefinitions"],
            "verbs": ["list", "watch"],
        },
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["list", "watch"]},
    ]
    subject = [{"kind": "ServiceAccount", "name": "default", "namespace": namespace}]
    of = {"apiGroup": "rbac.authorization.k8s.io"}
    meta = {"metadata": {"name": f"kopf-{namespace}"}}
    rights.create_namespaced_role(namespace, {**meta, "rules": rules})
    rights.create_namespaced_role_binding(
        namespace,
        {**meta, "subjects": subject, "roleRef": {**of, "kind": "Role", "name": f"kopf-{namespace}"}},
    )
    rights.create_cluster_role({**meta, "rules": watching})
    rights.create_cluster_role_binding(
        {**meta, "subjects": subject, "roleRef": {**of, "kind": "ClusterRole", "name": f"kopf-{namespace}"}}
    )
    request = {"spec": {"audiences": [], "expirationSeconds": 3600}}
    token = core.create_namespaced_service_account_token("default", namespace, request).status.token
    document = yaml.safe_load(plane.kubeconfig.read_text())
    document["users"][0]["user"] = {"token": token}
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(document))
    with operate("handlers", "--standalone", kubeconfig=kubeconfig) as operator:
        examples.create("kopf-example-1", field="value")
        examples.until(created, "created")
        examples.delete("kopf-example-1")
        assert "forbidden" not in operator.log(), operator.log()


# -- several operators ------------------------------------------------------------------------


def test_of_two_operators_the_more_important_one_works(
    admin: client.ApiClient, examples: Examples, namespace: str, operate: Callable[..., Any]
) -> None:
    peers = Examples(admin, namespace, "kopfpeerings")
    peers.create("example", "KopfPeering")
    with operate("handlers", "--peering=example", "--priority=1") as lesser:
        peers.until(lambda each: len(status(each)) == 1, "one peer")
        with operate("handlers", "--peering=example", "--priority=2") as greater:
            until(lambda: "Pausing operations in favour of" in lesser.log(), lesser, WAIT, "paused")
            examples.create("kopf-example-1", field="value")
            found = examples.until(created, "created")
            assert found["status"]["create_fn"]["message"] == "hello world"
            assert "Creation is in progress" in greater.log()
            assert "Creation is in progress" not in lesser.log()
        peers.until(lambda each: len(status(each)) == 1, "one peer again")
        until(lambda: "Resuming operations" in lesser.log(), lesser, WAIT, "resumed")
        examples.delete("kopf-example-1")


# -- in a test --------------------------------------------------------------------------------


def test_an_operator_runs_beside_a_test(
    plane: Any, examples: Examples, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(plane.kubeconfig))
    registry = kopf.OperatorRegistry()
    seen: list[str] = []

    @kopf.on.login(registry=registry)
    def login_fn(**options: Any) -> Any:
        return kopf.login_with_kubeconfig(**options)

    @kopf.on.create("kopfexamples", registry=registry, id="create_fn")
    def create_fn(name: str, **_: Any) -> Any:
        seen.append(name)
        return {"message": "hello test"}

    settings = kopf.OperatorSettings()
    settings.watching.server_timeout = 10
    command = ["run", "--standalone", f"--namespace={namespace}"]
    with KopfRunner(command, timeout=WAIT, registry=registry, settings=settings) as runner:
        examples.create("kopf-example-1")
        found = examples.until(created, "created")
    assert runner.exit_code == 0, runner.output
    assert found["status"] == {"create_fn": {"message": "hello test"}}
    assert seen == ["kopf-example-1"]
