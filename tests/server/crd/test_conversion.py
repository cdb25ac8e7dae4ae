"""Conversion webhooks: a Widget has ``spec.size: "3x4"`` in v1, and ``spec.width`` and ``spec.height`` in v2, which is stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from steersman.api.errors import NotFound, ServerError
from steersman.api.scheme import Kind
from steersman.testing import Cluster

V1 = Kind("example.com", "v1", "Widget", "widgets", True, dict)
V2 = Kind("example.com", "v2", "Widget", "widgets", True, dict)


def definition(storage: str = "v2", **more: Any) -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    sizes = {
        "v1": {"size": {"type": "string"}},
        "v2": {
            "width": {"type": "integer"},
            "height": {"type": "integer"},
            "depth": {"type": "integer", "default": 1},
        },
    }
    versions = [
        {
            "name": name,
            "served": True,
            "storage": name == storage,
            "subresources": {"status": {}},
            "schema": {
                "openAPIV3Schema": {
                    "type": "object",
                    "properties": {"spec": {"type": "object", "properties": fields}, "status": schema},
                }
            },
        }
        for name, fields in sizes.items()
    ]
    client = {"service": {"namespace": "default", "name": "hook", "path": "/convert"}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "scope": "Namespaced",
            "versions": versions,
            "conversion": {
                "strategy": "Webhook",
                "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]},
            },
            **more,
        },
    }


def converted(document: dict[str, Any], desired: str) -> dict[str, Any]:
    spec = dict(document.get("spec", {}))
    if desired.endswith("v2") and "size" in spec:
        width, _, height = spec.pop("size").partition("x")
        spec |= {"width": int(width), "height": int(height)}
    elif desired.endswith("v1") and "width" in spec:
        spec = {"size": f"{spec['width']}x{spec['height']}"}
    return {**document, "apiVersion": desired, "spec": spec}


class Webhook:
    """Converts Widgets, and remembers what it was asked; `spoil` changes what it answers."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []
        """The desired version and the number of objects of each call."""
        self.spoil: Callable[[dict[str, Any]], Any] = lambda response: response

    def __call__(self, review: dict[str, Any]) -> Any:
        request = review["request"]
        desired = request["desiredAPIVersion"]
        self.asked.append((desired.partition("/")[2], len(request["objects"])))
        objects = [converted(each, desired) for each in request["objects"]]
        return self.spoil({"result": {"status": "Success"}, "convertedObjects": objects})


class Widgets:
    def __init__(self) -> None:
        self.webhook = Webhook()
        self.cluster = Cluster(
            nodes=0,
            controllers=("storage-version-migrator-controller",),
            webhooks={"default/hook/convert": self.webhook},
        )
        self.cluster.apply(definition())

    def create(self, name: str, version: str = "v1", **spec: Any) -> Any:
        kind = {"v1": V1, "v2": V2}[version]
        body = {
            "apiVersion": f"example.com/{version}",
            "kind": "Widget",
            "metadata": {"name": name, "namespace": "default"},
            "spec": spec or {"size": "3x4"},
        }
        return self.run(self.cluster.client.create(kind, "default", body))

    def get(self, name: str, version: str) -> Any:
        return self.run(self.cluster.client.get({"v1": V1, "v2": V2}[version], "default", name))

    def run(self, coroutine: Any) -> Any:
        return self.cluster.run(coroutine)


@pytest.fixture
def widgets() -> Iterator[Widgets]:
    made = Widgets()
    with made.cluster:
        yield made


def test_an_object_is_written_in_one_version_stored_in_another_and_read_in_both(widgets: Widgets) -> None:
    made = widgets.create("w")
    assert (made["apiVersion"], made["spec"]) == ("example.com/v1", {"size": "3x4"})
    # To the stored version and back, as upstream; both before anything is written.
    assert widgets.webhook.asked == [("v2", 1), ("v1", 1)]
    assert widgets.get("w", "v2")["spec"] == {"width": 3, "height": 4, "depth": 1}
    assert widgets.get("w", "v1") == made
    # The stored version needs no webhook, and what it reads as in the other is known.
    assert len(widgets.webhook.asked) == 2


def test_a_list_is_converted_with_one_call(widgets: Widgets) -> None:
    for number in range(5):
        widgets.create(f"w{number}", "v2", width=number, height=1)
    page = widgets.run(widgets.cluster.client.list(V1, "default"))
    assert [each["spec"]["size"] for each in page.items] == [f"{n}x1" for n in range(5)]
    assert widgets.webhook.asked == [("v1", 5)]
    widgets.run(widgets.cluster.client.list(V1, "default"))
    assert len(widgets.webhook.asked) == 1


def test_a_watch_shows_the_version_it_asks_for(widgets: Widgets) -> None:
    client = widgets.cluster.client

    async def watched() -> list[Any]:
        stream = client.watch(V1, "default", send_initial_events=True)
        seen = []
        async for event in stream:
            if event.obj is not None:
                seen.append((event.type.value, event.obj["apiVersion"], event.obj["spec"]))
            if len(seen) == 1 and event.obj is not None:
                await client.patch(V2, "default", "w", {"spec": {"width": 7}})
            elif len(seen) == 2:
                await client.delete(V1, "default", "w")
            elif len(seen) == 3:
                break
        return seen

    widgets.create("w", "v2", width=1, height=2)
    assert widgets.run(watched()) == [
        ("ADDED", "example.com/v1", {"size": "1x2"}),
        ("MODIFIED", "example.com/v1", {"size": "7x2"}),
        ("DELETED", "example.com/v1", {"size": "7x2"}),
    ]


def test_patches_status_and_finalizers_in_the_version_that_is_not_stored(widgets: Widgets) -> None:
    widgets.create("w")
    client = widgets.cluster.client
    made = widgets.run(client.patch(V1, "default", "w", {"spec": {"size": "5x6"}}))
    assert (made["spec"], made["metadata"]["generation"]) == ({"size": "5x6"}, 2)
    made = widgets.run(client.patch(V1, "default", "w", {"status": {"ok": True}}, subresource="status"))
    assert (made["spec"], made["status"]) == ({"size": "5x6"}, {"ok": True})
    widgets.run(client.patch(V1, "default", "w", {"metadata": {"finalizers": ["example.com/x"]}}))
    widgets.run(client.delete(V1, "default", "w"))
    assert widgets.get("w", "v2")["metadata"]["deletionTimestamp"]
    assert widgets.get("w", "v2")["spec"] == {"width": 5, "height": 6, "depth": 1}
    widgets.run(client.patch(V1, "default", "w", {"metadata": {"finalizers": None}}))
    with pytest.raises(NotFound):
        widgets.get("w", "v1")


def test_labels_and_annotations_may_change_and_no_other_metadata(widgets: Widgets) -> None:
    def relabel(response: dict[str, Any]) -> Any:
        for each in response["convertedObjects"]:
            each["metadata"] = {
                **each["metadata"],
                "labels": {"version": each["apiVersion"].rpartition("/")[2]},
                "finalizers": ["example.com/smuggled"],
                "resourceVersion": "1",
            }
        return response

    widgets.webhook.spoil = relabel
    made = widgets.create("w")
    assert made["metadata"]["labels"] == {"version": "v1"}
    assert "finalizers" not in made["metadata"]
    stored = widgets.get("w", "v2")
    assert stored["metadata"]["labels"] == {"version": "v2"}
    assert stored["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"] != "1"


def objects(change: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], Any]:
    def spoil(response: dict[str, Any]) -> Any:
        return {**response, "convertedObjects": [change(each) for each in response["convertedObjects"]]}

    return spoil


def meta(**more: Any) -> Callable[[dict[str, Any]], Any]:
    return objects(lambda each: {**each, "metadata": {**each["metadata"], **more}})


HEAD = "conversion webhook for example.com/v2, Kind=Widget"
BROKEN: list[tuple[Callable[[dict[str, Any]], Any], str]] = [
    (meta(name="other"), f"{HEAD} returned invalid object: must have the same name: w != other"),
    (meta(namespace="x"), f"{HEAD} returned invalid object: must have the same namespace: default != x"),
    (
        meta(labels={"a": 1}),
        f"{HEAD} returned invalid metadata: metadata.labels[a] must be a string, but is int64 in",
    ),
    (meta(labels={"a b": "c"}), f"{HEAD} returned invalid metadata: metadata.labels: Invalid value: "),
    (meta(annotations=3), f"{HEAD} returned invalid metadata: invalid metadata.annotations of type int64 in"),
    (
        lambda response: {**response, "convertedObjects": []},
        f"{HEAD} returned 0 objects, expected 1",
    ),
    (
        lambda response: {"result": {"status": "Failure", "message": "cannot"}},
        f"{HEAD} failed: cannot",
    ),
    (lambda response: {"result": {}}, f"{HEAD} failed: response.result.status was '', not 'Success'"),
    (lambda response: {**response, "uid": "x"}, f"{HEAD} failed: expected response.uid="),
    (
        lambda response: b"nothing",
        f"{HEAD} failed: couldn't get version/kind; json parse error: invalid char",
    ),
    (
        objects(lambda each: {**each, "apiVersion": "example.com/v9"}),
        f"{HEAD} returned invalid object at index 0: invalid groupVersion (expected example.com/v1, received exam",
    ),
    (
        objects(lambda each: {**each, "kind": "Gadget"}),
        f"{HEAD} returned invalid object at index 0: invalid kind (expected Widget, received Gadget)",
    ),
]


@pytest.mark.parametrize(("spoil", "told"), BROKEN, ids=[str(n) for n in range(len(BROKEN))])
def test_a_conversion_that_loses_what_it_was_given_is_an_error_and_nothing_is_lost(
    widgets: Widgets, spoil: Callable[[dict[str, Any]], Any], told: str
) -> None:
    widgets.create("w", "v2", width=1, height=2)
    widgets.webhook.spoil = spoil
    with pytest.raises(ServerError) as error:
        widgets.get("w", "v1")
    assert error.value.message.startswith(told)
    with pytest.raises(ServerError):
        widgets.create("another")
    with pytest.raises(ServerError):
        widgets.run(widgets.cluster.client.patch(V1, "default", "w", {"spec": {"size": "9x9"}}))
    widgets.webhook.spoil = lambda response: response
    assert widgets.get("w", "v1")["spec"] == {"size": "1x2"}
    with pytest.raises(NotFound):
        widgets.get("another", "v2")


def test_after_a_change_of_the_storage_version_objects_are_migrated_by_the_webhook(widgets: Widgets) -> None:
    for number in range(3):
        widgets.create(f"w{number}")
    cluster = widgets.cluster
    cluster.apply(definition(storage="v1"))
    server = cluster.world.server
    table = server.store.table("widgets.example.com")
    assert {table.get(key).stored_in for key in table.keys()} == {"v2"}  # noqa: SIM118
    assert widgets.get("w0", "v1")["spec"] == {"size": "3x4"}
    for name in ("w0", "w1", "w2"):
        # As the migrator does: a write without a change.
        widgets.run(cluster.client.patch(V1, "default", name, {}))
    assert {table.get(key).stored_in for key in table.keys()} == {"v1"}  # noqa: SIM118
    assert [dict(table.get(key).content["spec"]) for key in table.keys()] == [{"size": "3x4"}] * 3  # noqa: SIM118
    assert widgets.get("w1", "v2")["spec"] == {"width": 3, "height": 4, "depth": 1}
