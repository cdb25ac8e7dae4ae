"""A shadow that cannot read all: what it may not list, a server that does not answer, informers that come and go."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeVar

from steersman.api.errors import ApiError, Forbidden, Unreachable
from steersman.api.kinds import REPLICASETS
from steersman.client.api import Api, WatchEvent
from steersman.client.middleware import ApiCall, Middleware
from steersman.controllers import CONTROLLERS
from steersman.intent.controller import Controller
from steersman.shadow import shadow as shadows
from steersman.shadow.report import Difference
from steersman.shadow.shadow import Shadow
from steersman.testing import credentials
from steersman.testing.cluster import Cluster
from tests.harness.stuck import deployment

T = TypeVar("T")


class Refusing(Middleware):
    """A client some of whose requests fail."""

    def __init__(self, api: Api, refuse: Callable[[ApiCall], ApiError | None]) -> None:
        super().__init__(api)
        self.refuse = refuse

    def _handle(self, request: ApiCall, send: Callable[[], Coroutine[Any, Any, T]]) -> Coroutine[Any, Any, T]:
        error = self.refuse(request)
        if error is not None:
            raise error
        return send()

    def _handle_watch(
        self,
        request: ApiCall,
        send_initial_events: bool,
        watch: Callable[[], AsyncIterator[WatchEvent[T]]],
    ) -> AsyncIterator[WatchEvent[T]]:
        error = self.refuse(request)
        if error is not None:
            raise error
        return watch()


def deployment_controller() -> Controller[Any]:
    (found,) = (each for each in CONTROLLERS if each.name == "deployment-controller")
    return found


def start(cluster: Cluster, refuse: Callable[[ApiCall], ApiError | None]) -> tuple[Shadow, Refusing]:
    """A shadow of the deployment controller whose client is refused some requests."""
    api = Refusing(cluster.world.api("shadow"), refuse)
    shadow = Shadow((deployment_controller(),), api, cluster.world, files=credentials.read)
    cluster.world.spawn(shadow.run(), name="shadow")
    return shadow, api


def test_a_shadow_that_may_not_list_events_does_not_say_that_it_agrees() -> None:
    with Cluster(seed=1) as cluster:
        shadow, _ = start(cluster, lambda call: Forbidden("no") if call.kind.resource == "events" else None)
        cluster.advance(minutes=2)
        report = shadow.report()
    assert report.exit_code == 1
    assert [(each.where, each.error) for each in report.errors] == [
        ("events", "may not be listed with these credentials, so nothing is compared")
    ]
    assert report.excluded == ()


def test_a_watch_that_is_refused_is_an_error() -> None:
    with Cluster(seed=1) as cluster:
        shadow, _ = start(
            cluster,
            lambda call: (
                Forbidden("pods is forbidden")
                if (call.verb, call.kind.resource) == ("watch", "pods")
                else None
            ),
        )
        cluster.advance(minutes=2)
        report = shadow.report()
    assert report.exit_code == 1
    assert [(each.where, each.error) for each in report.errors] == [
        ("pods", "its watch fails: pods is forbidden")
    ]


def test_a_server_that_does_not_answer_makes_no_difference() -> None:
    with Cluster(seed=1, controllers=()) as cluster:
        shadow, api = start(
            cluster, lambda call: Unreachable("connection refused") if call.verb == "get" else None
        )
        cluster.advance(seconds=1)
        cluster.apply(deployment())
        cluster.advance(minutes=5)
        assert shadow.report().differences == ()
        api.refuse = lambda call: None
        cluster.advance(minutes=1)
        found = shadow.report().differences
    assert "no such object was created" in [each.theirs for each in found]


def test_late_differences_are_bounded() -> None:
    with Cluster(seed=1) as cluster:
        shadow, _ = start(cluster, lambda call: None)
        for number in range(shadows.MAX_DIFFERENCES + 10):
            shadow.late.append(Difference("missing", "c", f"Pod {number}", "", "", "", ""))
        assert len(shadow.report().late) == shadows.MAX_DIFFERENCES
        assert shadow.report().late[-1].object == f"Pod {shadows.MAX_DIFFERENCES + 9}"


def test_the_store_of_a_resource_that_came_back_is_the_new_one() -> None:
    with Cluster(seed=1) as cluster:
        shadow, _ = start(cluster, lambda call: None)
        cluster.advance(seconds=1)
        old = shadow.view.store(REPLICASETS.resource)
        shadow.group.informers.drop(REPLICASETS)
        assert shadow.view.store(REPLICASETS.resource) is None
        new = shadow.group.informers.informer(REPLICASETS).store
        assert new is not old
        assert shadow.view.store(REPLICASETS.resource) is new
