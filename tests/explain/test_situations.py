"""Twenty-five and more stuck situations on the embedded plane: the first sentence names the true cause."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from steersman.api.errors import Forbidden
from steersman.explain.asking import Question, ask, parse_subject
from steersman.explain.model import Explanation
from steersman.explain.render import document, text
from steersman.testing import Cluster
from tests.harness.stuck import KINDS, STUCK, Place, Stuck, deployment

NAMESPACE = "shop"
NODE = "edge"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(seed=3, nodes=3) as cluster:
        cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        cluster.settle()
        yield cluster


def place(cluster: Cluster) -> Place:
    async def wait(kind: str, name: str, ready: Callable[[dict[str, Any]], bool]) -> None:
        found = KINDS[kind]

        async def satisfied() -> bool:
            return ready(await cluster.client.get(found, NAMESPACE if found.namespaced else "", name))

        for _ in range(120):
            try:
                if await satisfied():
                    return
            except Exception as error:
                last: object = error
            else:
                last = "not yet"
            await cluster.aio.advance(seconds=1)
        raise AssertionError(f"{kind} {name} never came: {last}")

    return Place(cluster.client, NAMESPACE, NODE, wait)


def why(cluster: Cluster, subject: str) -> Explanation:
    kind, name = parse_subject([subject.format(ns=NAMESPACE, node=NODE)])
    return cluster.run(ask(cluster.client, Question(kind, name, NAMESPACE), cluster.now))


@pytest.mark.parametrize("stuck", STUCK, ids=lambda each: each.name)
def test_the_first_sentence_names_the_cause(cluster: Cluster, stuck: Stuck) -> None:
    cluster.run(stuck.stage(place(cluster)))  # type: ignore[arg-type]
    cluster.advance(seconds=stuck.seconds)
    told = why(cluster, stuck.subject)
    expected = stuck.answer.replace("{ns}", NAMESPACE).replace("{node}", NODE)
    assert re.fullmatch(expected, told.first), text(told)
    assert not told.well
    assert told.findings[0].controller
    assert document(told)["first"] == told.first


def test_there_are_twenty_five_situations_with_their_sources() -> None:
    assert len(STUCK) >= 25
    assert all(each.source and each.question.endswith("?") for each in STUCK)


def test_a_healthy_deployment_has_no_cause(cluster: Cluster) -> None:
    cluster.create(deployment(replicas=2), NAMESPACE)
    cluster.settle()
    told = why(cluster, "deployment/web")
    assert told.well
    assert told.findings == ()
    assert told.first == "Deployment shop/web wants 2 replicas: 2 of 2 ready."
    assert "All is as it should be." in text(told)


def refusing(cluster: Cluster, message: str) -> None:
    """Lets admission refuse every pod with a message of a webhook or a policy."""
    server = cluster.world.server
    behind = server.admission
    assert behind is not None

    class Refusing:
        def mutate(self, request: Any) -> Any:
            return behind.mutate(request)

        def validate(self, request: Any) -> Any:
            if request.resource.plural == "pods" and request.operation == "CREATE":
                raise Forbidden(message)
            return behind.validate(request)

        def warnings(self, request: Any) -> tuple[str, ...]:
            return behind.warnings(request)

    server.admission = Refusing()


REFUSED = [
    (
        'admission webhook "tags.example.com" denied the request: the tag latest is not allowed',
        "admission webhook tags.example.com denies these pods: the tag latest is not allowed",
    ),
    (
        'Internal error occurred: failed calling webhook "inject.example.com": failed to call webhook: Post '
        '"https://inject.mesh.svc:443/?timeout=10s": dial tcp 10.0.0.7:443: connect: connection refused',
        "admission webhook inject.example.com does not answer, and nothing is admitted without it: failed to call webhook: "
        'Post "https://inject.mesh.svc:443/?timeout=10s": dial tcp 10.0.0.7:443: connect: connection refused',
    ),
    (
        "pods \"web-x\" is forbidden: ValidatingAdmissionPolicy 'replicas' with binding 'all' denied request: too many",
        "ValidatingAdmissionPolicy replicas (binding all) denies these pods: too many",
    ),
    ("the moon is full", "the API server refuses its pods: the moon is full"),
]


@pytest.mark.parametrize(("message", "cause"), REFUSED, ids=["webhook", "webhook-down", "policy", "unknown"])
def test_a_refusal_names_the_webhook_or_policy(cluster: Cluster, message: str, cause: str) -> None:
    refusing(cluster, message)
    cluster.create(deployment(replicas=2), NAMESPACE)
    cluster.advance(seconds=30)
    told = why(cluster, "deployment/web")
    assert told.findings[0].cause == cause, text(told)
    assert told.findings[0].controller == "replicaset-controller"


def test_without_a_manager_the_loop_that_does_not_act_is_named(cluster: Cluster) -> None:
    cluster.crash_manager()
    cluster.create(deployment(), NAMESPACE)
    cluster.advance(seconds=60)
    told = why(cluster, "deployment/web")
    assert told.first == (
        "Deployment web: deployment-controller has not looked at it, and no controller manager holds the lease "
        "kube-system/kube-controller-manager."
    )
    (decision,) = told.decisions
    assert decision.would[0].startswith("create replicaset shop/web-"), "what it would do if it ran"


def test_a_drained_node_names_the_budget_and_the_pods(cluster: Cluster) -> None:
    stage = next(each.stage for each in STUCK if each.name == "disruption_budget")
    cluster.run(stage(place(cluster)))  # type: ignore[arg-type]
    (pod,) = cluster.list("Pod", NAMESPACE)
    cluster.node(pod.spec.nodeName).drain()
    cluster.advance(seconds=30)
    told = why(cluster, f"node/{pod.spec.nodeName}")
    assert told.first == (
        f"Node {pod.spec.nodeName}: it is cordoned, but PodDisruptionBudget web allows no eviction of its 1 pod "
        f"{pod.metadata.name}."
    )


def test_the_page_fits_a_screen_and_names_the_loop_the_next_step_and_the_remedy(cluster: Cluster) -> None:
    stage = next(each.stage for each in STUCK if each.name == "storage_class_missing")
    cluster.run(stage(place(cluster)))  # type: ignore[arg-type]
    cluster.advance(seconds=30)
    page = text(why(cluster, "deploy/web")).splitlines()
    assert page[0] == "Deployment shop/web wants 1 replica: 0 of 1 ready."
    assert len(page) < 30
    assert page[3] == "  loop:  persistentvolume-binder-controller"
    assert any(line.strip().startswith("-- mounts PersistentVolumeClaim data: Pending") for line in page)
    assert any(line.strip().startswith("deployment-controller, Deployment web: ") for line in page)


def test_asking_writes_nothing(cluster: Cluster) -> None:
    stage = next(each.stage for each in STUCK if each.name == "quota_used_up")
    cluster.run(stage(place(cluster)))  # type: ignore[arg-type]
    cluster.advance(seconds=30)
    before = cluster.world.server.store.revision
    why(cluster, "deployment/web")
    assert cluster.world.server.store.revision == before


def test_the_same_seed_gives_the_same_explanation() -> None:
    pages = []
    for _ in range(2):
        with Cluster(seed=3, nodes=3) as cluster:
            cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
            stage = next(each.stage for each in STUCK if each.name == "crash_loop")
            cluster.run(stage(place(cluster)))  # type: ignore[arg-type]
            cluster.advance(seconds=60)
            pages.append(text(why(cluster, "deployment/web")))
    assert pages[0] == pages[1]


def test_the_guide_lists_every_situation_with_its_source() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "why.md").read_text()
    for each in STUCK:
        assert each.question.replace("<unknown>", "`<unknown>`") in guide
        assert all(part in guide for part in each.source.split("; "))


def test_a_healthy_pod_is_well_whatever_is_wrong_with_its_owner(cluster: Cluster) -> None:
    stage = next(each.stage for each in STUCK if each.name == "quota_used_up")
    cluster.run(stage(place(cluster)))  # type: ignore[arg-type]
    cluster.advance(seconds=30)
    (pod,) = cluster.list("Pod", NAMESPACE)
    told = why(cluster, f"pod/{pod.metadata.name}")
    assert told.well
    assert told.first == f"Pod shop/{pod.metadata.name} wants to run and be ready: Running, ready."
    assert "ResourceQuota small is used up" in text(told), "it is mentioned, though"
