"""The official client for Python: watches, and what they are resumed from."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from kubernetes import client, watch
from kubernetes.informer import SharedInformer

WAIT = 60
"""Seconds after which a watch that did not see what it should has failed."""


@pytest.fixture
def core(admin: client.ApiClient) -> client.CoreV1Api:
    return client.CoreV1Api(admin)


def configmap(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels}}


def seen(event: dict[str, Any]) -> tuple[str, str]:
    return event["type"], event["object"].metadata.name


def take(stream: Iterator[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """The next few events of a watch."""
    return [next(stream) for _ in range(count)]


def test_a_watch_begins_with_what_is_there_and_goes_on_with_what_happens(
    core: client.CoreV1Api, namespace: str
) -> None:
    core.create_namespaced_config_map(namespace, configmap("a"))
    stream = watch.Watch().stream(
        core.list_namespaced_config_map, namespace, timeout_seconds=WAIT, field_selector="metadata.name=a"
    )
    first = next(stream)
    assert seen(first) == ("ADDED", "a")
    assert isinstance(first["object"], client.V1ConfigMap)
    core.patch_namespaced_config_map("a", namespace, {"data": {"k": "v"}})
    second = next(stream)
    assert (*seen(second), second["object"].data) == ("MODIFIED", "a", {"k": "v"})
    core.delete_namespaced_config_map("a", namespace)
    third = next(stream)
    assert seen(third) == ("DELETED", "a")
    versions = [int(each["object"].metadata.resource_version) for each in (first, second, third)]
    assert versions == sorted(set(versions)), "also the last state has a version of its own"
    stream.close()


def test_a_watch_from_the_version_of_a_list_tells_only_what_came_later(
    core: client.CoreV1Api, namespace: str
) -> None:
    core.create_namespaced_secret(namespace, configmap("old"))
    listed = core.list_namespaced_secret(namespace)
    core.create_namespaced_secret(namespace, configmap("new"))
    core.delete_namespaced_secret("old", namespace)
    stream = watch.Watch().stream(
        core.list_namespaced_secret,
        namespace,
        resource_version=listed.metadata.resource_version,
        timeout_seconds=WAIT,
    )
    assert [seen(each) for each in take(stream, 2)] == [("ADDED", "new"), ("DELETED", "old")]
    stream.close()


def test_a_watch_ends_when_its_time_is_up_and_can_be_resumed(core: client.CoreV1Api, namespace: str) -> None:
    core.create_namespaced_secret(namespace, configmap("a"))
    watcher = watch.Watch()
    before = [
        seen(each) for each in watcher.stream(core.list_namespaced_secret, namespace, timeout_seconds=1)
    ]
    assert before == [("ADDED", "a")]
    core.create_namespaced_secret(namespace, configmap("b"))
    version = watcher.resource_version
    stream = watcher.stream(
        core.list_namespaced_secret, namespace, resource_version=version, timeout_seconds=WAIT
    )
    assert seen(next(stream)) == ("ADDED", "b")
    stream.close()


def test_a_watch_the_server_ends_is_resumed_by_the_client_where_it_was(
    core: client.CoreV1Api, namespace: str
) -> None:
    listed = core.list_namespaced_secret(namespace)
    asked: list[str] = []

    def list_secrets(*arguments: Any, **options: Any) -> Any:
        """:rtype: V1SecretList"""
        asked.append(options["resource_version"])
        if len(asked) == 2:
            core.create_namespaced_secret(namespace, configmap("b"))
        # The client knows of no limit, and goes on for ever; the server ends each watch after a second.
        return core.list_namespaced_secret(*arguments, timeout_seconds=1, **options)

    made = core.create_namespaced_secret(namespace, configmap("a"))
    watcher = watch.Watch()
    stream = watcher.stream(list_secrets, namespace, resource_version=listed.metadata.resource_version)
    assert seen(next(stream)) == ("ADDED", "a")
    assert seen(next(stream)) == ("ADDED", "b")
    watcher.stop()
    stream.close()
    assert asked[1] == made.metadata.resource_version


def test_a_version_from_before_a_resource_was_defined_is_gone(
    admin: client.ApiClient, widgets: str, namespace: str
) -> None:
    custom = client.CustomObjectsApi(admin)

    def stream(version: str, **options: Any) -> Iterator[dict[str, Any]]:
        where = (widgets, "v1", namespace, "widgets")
        return watch.Watch().stream(
            custom.list_namespaced_custom_object, *where, resource_version=version, **options
        )

    with pytest.raises(client.ApiException) as refused:
        next(stream("1", timeout_seconds=WAIT))
    assert refused.value.status == 410
    assert refused.value.reason.startswith("Expired: too old resource version: 1 (")
    with pytest.raises(client.ApiException) as refused:
        next(stream("1"))
    assert refused.value.status == 410, "the client has tried it once again"


def test_a_version_of_the_future_is_waited_for_in_vain(core: client.CoreV1Api, namespace: str) -> None:
    now = int(core.list_namespaced_config_map(namespace).metadata.resource_version)
    with pytest.raises(client.ApiException) as refused:
        core.list_namespaced_config_map(
            namespace, resource_version=str(now + 1_000_000), resource_version_match="NotOlderThan"
        )
    assert refused.value.status == 504
    assert "Too large resource version" in refused.value.body


def test_a_list_that_is_streamed_ends_with_a_bookmark(core: client.CoreV1Api, namespace: str) -> None:
    for name in ("a", "b"):
        core.create_namespaced_secret(namespace, configmap(name))
    watcher = watch.Watch()
    stream = watcher.stream(
        core.list_namespaced_secret,
        namespace,
        send_initial_events=True,
        allow_watch_bookmarks=True,
        resource_version_match="NotOlderThan",
        timeout_seconds=WAIT,
    )
    events = take(stream, 3)
    assert [each["type"] for each in events] == ["ADDED", "ADDED", "BOOKMARK"]
    metadata = events[2]["raw_object"]["metadata"]
    assert metadata["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert watcher.resource_version == metadata["resourceVersion"]
    core.create_namespaced_secret(namespace, configmap("c"))
    assert seen(next(stream)) == ("ADDED", "c")
    stream.close()


def test_what_leaves_a_selection_is_told_as_deleted(core: client.CoreV1Api, namespace: str) -> None:
    core.create_namespaced_secret(namespace, configmap("a", tier="front"))
    stream = watch.Watch().stream(
        core.list_namespaced_secret, namespace, label_selector="tier in (front)", timeout_seconds=WAIT
    )
    assert seen(next(stream)) == ("ADDED", "a")
    core.patch_namespaced_secret("a", namespace, {"metadata": {"labels": {"tier": "back"}}})
    assert seen(next(stream)) == ("DELETED", "a")
    core.patch_namespaced_secret("a", namespace, {"metadata": {"labels": {"tier": "front"}}})
    assert seen(next(stream)) == ("ADDED", "a")
    stream.close()


def test_a_pod_is_followed_from_pending_to_running(core: client.CoreV1Api, namespace: str) -> None:
    core.create_namespaced_pod(
        namespace,
        {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "main", "image": "app:1"}]}},
    )
    phases: list[str] = []
    for event in watch.Watch().stream(core.list_namespaced_pod, namespace, timeout_seconds=WAIT):
        phases.append(event["object"].status.phase)
        if phases[-1] == "Running":
            break
    assert phases[0] == "Pending"
    assert phases[-1] == "Running"


@contextmanager
def running(informer: SharedInformer) -> Iterator[SharedInformer]:
    informer.start()
    try:
        yield informer
    finally:
        informer.stop()


def test_an_informer_keeps_what_there_is(core: client.CoreV1Api, namespace: str) -> None:
    core.create_namespaced_secret(namespace, configmap("a"))
    happened = threading.Condition()
    events: list[tuple[str, str]] = []

    def note(kind: str, obj: Any) -> None:
        with happened:
            events.append((kind, obj.metadata.name))
            happened.notify_all()

    def until(event: tuple[str, str]) -> None:
        with happened:
            assert happened.wait_for(lambda: event in events, WAIT), events

    informer = SharedInformer(core.list_namespaced_secret, namespace=namespace)
    for kind in ("ADDED", "MODIFIED", "DELETED"):
        informer.add_event_handler(kind, lambda obj, kind=kind: note(kind, obj))
    with running(informer):
        until(("ADDED", "a"))
        core.create_namespaced_secret(namespace, configmap("b"))
        until(("ADDED", "b"))
        core.patch_namespaced_secret("b", namespace, {"metadata": {"labels": {"x": "y"}}})
        until(("MODIFIED", "b"))
        core.delete_namespaced_secret("a", namespace)
        until(("DELETED", "a"))
        assert [each.metadata.name for each in informer.cache.list()] == ["b"]
