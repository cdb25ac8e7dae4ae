"""A cluster, as a test uses it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from steersman.api.errors import Forbidden, NotFound
from steersman.api.generated import apps_v1, core_v1
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.api.kinds import DEPLOYMENTS
from steersman.api.kinds.config import CONFIGMAPS
from steersman.intent.actions import Create
from steersman.intent.controller import Controller, Watch
from steersman.intent.verdict import Rest, Verdict
from steersman.sim.faults.requests import ErrorResponse
from steersman.sim.faults.watches import FrozenWatch
from steersman.sim.kubelet import KubeletSettings
from steersman.testing import Cluster, WaitTimeout

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:v1"}]}
"""
CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.stable.example.com}
spec:
  group: stable.example.com
  scope: Namespaced
  names: {kind: CronTab, plural: crontabs, singular: crontab, shortNames: [ct]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
TAB = {
    "apiVersion": "stable.example.com/v1",
    "kind": "CronTab",
    "metadata": {"name": "a"},
    "spec": {"every": 5},
}


@pytest.fixture
def web(cluster: Cluster) -> Cluster:
    """A cluster in which a Deployment of three is up."""
    cluster.apply(WEB)
    cluster.wait_until(lambda: cluster.get("Deployment", "web").status.readyReplicas == 3)
    return cluster


def image(cluster: Cluster, name: str) -> None:
    container = {"name": "web", "image": name}
    cluster.patch("deploy", "web", {"spec": {"template": {"spec": {"containers": [container]}}}})


# -- time -------------------------------------------------------------------------------------


def test_reading_and_writing_take_no_time_and_move_nobody(cluster: Cluster) -> None:
    before = cluster.now
    cluster.apply(WEB)
    cluster.scale("deploy", "web", 5)
    cluster.get("deploy", "web")
    assert cluster.now == before
    assert cluster.list("ReplicaSet") == [], "no controller has had its turn"


def test_time_passes_as_much_as_is_asked_for(cluster: Cluster) -> None:
    before = cluster.now
    cluster.advance(days=1, hours=2, minutes=3, seconds=4.5)
    assert cluster.now - before == timedelta(days=1, hours=2, minutes=3, seconds=4.5)


def test_a_settled_cluster_stands_still(web: Cluster) -> None:
    web.settle()
    assert web.settle() == 0.0


def test_waiting_ends_right_after_the_write_that_was_waited_for(cluster: Cluster) -> None:
    cluster.apply(WEB)
    for count in (1, 2, 3):
        cluster.wait_until(lambda count=count: len(cluster.list("pods")) >= count)  # type: ignore[misc]
        assert len(cluster.list("pods")) == count


def test_waiting_notices_what_happens_outside_of_the_cluster_in_the_instant_it_does(cluster: Cluster) -> None:
    seen: list[datetime] = []

    async def operator() -> None:
        for _ in range(3):
            await asyncio.sleep(60)
            seen.append(cluster.now)

    cluster.spawn(operator())
    before = cluster.now
    for minutes in (1, 2, 3):
        cluster.wait_until(lambda minutes=minutes: len(seen) == minutes)  # type: ignore[misc]
        assert cluster.now - before == timedelta(minutes=minutes)


def test_waiting_answers_with_what_the_predicate_said(web: Cluster) -> None:
    assert web.wait_until(lambda: [pod.metadata.name for pod in web.list("pods")]) == [
        pod.metadata.name for pod in web.list("pods")
    ]


def test_a_predicate_that_fails_is_not_met_yet(cluster: Cluster) -> None:
    cluster.apply(WEB)

    def ready() -> bool:
        (found,) = cluster.list("ReplicaSet")
        return bool(found.status.readyReplicas == 3)

    assert cluster.wait_until(ready)


def test_a_wait_in_vain_says_what_it_saw_who_waits_and_what_happened(web: Cluster) -> None:
    image(web, "web:bad")
    with pytest.raises(WaitTimeout) as caught:
        web.wait_until(lambda: web.get("deploy", "web").status.readyReplicas == 7, timeout=900)
    text = str(caught.value)
    assert 'web.get("deploy", "web").status.readyReplicas == 7' in text
    assert "condition not met within 15 min" in text
    assert "last result: False" in text
    assert "deployments default/web: availableReplicas 3" in text
    assert "ProgressDeadlineExceeded" in text
    assert "deployment-controller default/web rests: rollout made no progress" in text
    assert "containerStatuses[web].state.waiting.reason: ErrImagePull -> ImagePullBackOff" in text


def test_a_wait_in_vain_passes_on_what_the_predicate_raised(cluster: Cluster) -> None:
    before = cluster.now
    with pytest.raises(WaitTimeout, match="last error: NotFound") as caught:
        cluster.wait_until(lambda: cluster.get("deploy", "web"), timeout=60)
    assert isinstance(caught.value.__cause__, NotFound)
    assert cluster.now - before == timedelta(seconds=60)


# -- coroutines -------------------------------------------------------------------------------


async def test_a_coroutine_lives_in_the_clusters_time(cluster: Cluster) -> None:
    before = cluster.now
    cluster.apply(WEB)
    await cluster.aio.wait_until(lambda: cluster.get("deploy", "web").status.readyReplicas == 3)
    await asyncio.sleep(3600)
    await cluster.aio.advance(hours=1)
    await cluster.aio.settle()
    assert cluster.now - before == timedelta(hours=2, seconds=1)


async def test_a_predicate_may_be_a_coroutine_function(cluster: Cluster) -> None:
    async def there() -> bool:
        return len((await cluster.client.list(DEPLOYMENTS)).items) == 1

    async def later() -> None:
        await asyncio.sleep(10)
        cluster.apply(WEB)

    cluster.spawn(later())
    await cluster.aio.wait_until(there)
    with pytest.raises(WaitTimeout, match="last error: LookupError"):
        await cluster.aio.wait_until(failing, timeout=5)


async def test_a_coroutine_notices_what_happens_outside_in_the_instant_it_does(cluster: Cluster) -> None:
    before, done = cluster.now, asyncio.Event()

    async def operator() -> None:
        await asyncio.sleep(60)
        done.set()

    cluster.spawn(operator())
    await cluster.aio.wait_until(done.is_set)
    assert cluster.now - before == timedelta(minutes=1)


async def failing() -> bool:
    raise LookupError("no")


async def test_a_coroutine_that_forgets_to_await_is_told(cluster: Cluster) -> None:
    for passes in (
        cluster.settle,
        lambda: cluster.advance(hours=1),
        lambda: cluster.wait_until(lambda: False),
    ):
        with pytest.raises(RuntimeError, match=r"await cluster\.aio"):
            passes()
    with pytest.raises(RuntimeError, match="plain test function"):
        cluster.serve()


def test_what_is_spawned_goes_on_as_time_passes_and_fails_the_test_if_it_fails(cluster: Cluster) -> None:
    async def operator() -> None:
        await asyncio.sleep(60)
        raise ZeroDivisionError

    cluster.spawn(operator())
    cluster.advance(seconds=59)
    with pytest.raises(ZeroDivisionError):
        cluster.advance(seconds=2)


# -- objects ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind",
    [
        "Deployment",
        "deployment",
        "deployments",
        "deploy",
        "deployments.apps",
        "deployments.v1.apps",
        DEPLOYMENTS,
        apps_v1.Deployment,
        DEPLOYMENTS.type,
    ],
    ids=str,
)
def test_a_kind_goes_by_any_of_its_names(cluster: Cluster, kind: Any) -> None:
    cluster.apply(WEB)
    assert cluster.get(kind, "web").spec.replicas == 3
    assert [found.metadata.name for found in cluster.list(kind)] == ["web"]


@pytest.mark.parametrize("kind", ["CronTab", "crontabs", "ct", "crontabs.stable.example.com"])
def test_custom_resources_are_plain_documents(cluster: Cluster, kind: str) -> None:
    cluster.apply([CRD, TAB])
    assert cluster.get(kind, "a")["spec"] == {"every": 5}
    cluster.patch(kind, "a", {"spec": {"every": 6}})
    cluster.patch(kind, "a", {"status": {"ran": 1}}, subresource="status")
    (found,) = cluster.list(kind)
    assert (found["spec"], found["status"]) == ({"every": 6}, {"ran": 1})
    cluster.delete(found)
    assert cluster.list(kind) == []


def test_a_kind_nobody_serves_is_named(cluster: Cluster) -> None:
    with pytest.raises(LookupError, match="no kind 'CronTab'"):
        cluster.list("CronTab")
    with pytest.raises(LookupError, match=r"no CronTab of stable\.example\.com/v1"):
        cluster.apply(TAB)
    with pytest.raises(LookupError, match="not a registered Kubernetes type"):
        cluster.list(Path)


def manifests(folder: Path) -> Iterator[tuple[str, Any, int]]:
    file = folder / "web.yaml"
    file.write_text(WEB)
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}}
    typed = core_v1.ConfigMap(metadata=ObjectMeta(name="web"), data={"a": "b"})
    yield "text", WEB, 1
    yield "path", file, 1
    yield "name of a file", str(file), 1
    yield "folder", folder, 1
    yield "document", document, 1
    yield "object", typed, 1
    yield "many", [WEB, document], 2
    yield "stream", f"{WEB}\n---\n{CRD}\n---\n", 2
    yield "list", {"apiVersion": "v1", "kind": "List", "items": [document]}, 1
    yield "nothing", [], 0


def test_manifests_come_in_any_form(cluster: Cluster, tmp_path: Path) -> None:
    for form, given, count in manifests(tmp_path):
        fork = cluster.fork()
        made = fork.apply(given)
        assert len(made if isinstance(made, list) else [made]) == count, form


def test_what_is_no_manifest_is_refused(cluster: Cluster) -> None:
    with pytest.raises(FileNotFoundError, match=r"'nowhere\.yaml' is neither a file"):
        cluster.apply("nowhere.yaml")
    with pytest.raises(TypeError, match="not int"):
        cluster.apply(7)


def test_applying_again_takes_back_what_is_not_said_any_more(cluster: Cluster) -> None:
    cluster.apply(WEB.replace("name: web}", "name: web, labels: {a: b}}", 1))
    assert cluster.get("deploy", "web").metadata.labels == {"a": "b"}
    cluster.apply(WEB)
    assert not cluster.get("deploy", "web").metadata.labels


def test_an_object_that_was_read_can_be_applied_elsewhere(cluster: Cluster) -> None:
    cluster.apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: other}")
    cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"b": "c"}})
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"b": "d"}}
    cluster.apply(document, "other")
    assert cluster.get("cm", "a", "other").data == {"b": "d"}
    assert cluster.get("cm", "a").data == {"b": "c"}
    assert len(cluster.list("cm", "other")) == 1
    found = [each for each in cluster.list("cm") if each.metadata.name == "a"]
    assert len(found) == 2


def test_without_server_side_apply_objects_are_created_and_replaced(cluster: Cluster) -> None:
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"b": "c"}}
    cluster.apply(document, server_side=False)
    made = cluster.apply({**document, "data": {"x": "y"}}, server_side=False)
    assert made.data == {"x": "y"}


def test_names_are_generated_from_the_seed(cluster: Cluster) -> None:
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-"}}
    first, second = cluster.apply([document, document])
    assert first.metadata.name != second.metadata.name


def test_patches_merge_lists_by_name_or_do_as_they_are_told(web: Cluster) -> None:
    image(web, "web:v2")
    assert [each.image for each in web.get("deploy", "web").spec.template.spec.containers] == ["web:v2"]
    web.patch("deploy", "web", [{"op": "replace", "path": "/spec/replicas", "value": 4}])
    assert web.get("deploy", "web").spec.replicas == 4


def test_objects_go_by_name_or_as_they_are(web: Cluster) -> None:
    web.delete("deploy", "web", propagation="Orphan")
    (owned,) = web.list("ReplicaSet")
    web.delete(owned, propagation="Orphan")
    web.settle()
    assert web.list("deploy") == []
    assert web.list("rs") == []
    assert len(web.list("pods")) == 3
    assert web.list("pods", selector="app!=web") == []


def test_a_namespace_of_ones_own_has_all_that_pods_need(cluster: Cluster) -> None:
    cluster.apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: own}")
    with pytest.raises(Forbidden, match="serviceaccount"):
        cluster.apply({"apiVersion": "v1", "kind": "Pod", **POD}, "own")
    cluster.settle()
    cluster.apply({"apiVersion": "v1", "kind": "Pod", **POD}, "own")
    cluster.wait_until(lambda: cluster.get("pod", "one", "own").status.phase == "Running")


POD = {"metadata": {"name": "one"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


@pytest.mark.cluster(controllers=())
def test_without_controllers_pods_need_no_account_and_nobody_acts(cluster: Cluster) -> None:
    cluster.apply({"apiVersion": "v1", "kind": "Pod", **POD})
    cluster.apply(WEB)
    cluster.wait_until(lambda: cluster.get("pod", "one").status.phase == "Running")
    cluster.settle()
    assert cluster.list("ReplicaSet") == []


# -- what happened ----------------------------------------------------------------------------


def test_history_says_when_who_and_why(web: Cluster) -> None:
    image(web, "web:v2")
    web.settle()
    entries = web.history("deploy", "web")
    assert {entry.actor for entry in entries} == {"you", "deployment-controller"}
    assert {(entry.resource, str(entry.key)) for entry in entries} == {("deployments.apps", "default/web")}
    assert [entry.at for entry in entries] == sorted(entry.at for entry in entries)
    words = [entry.description for entry in entries]
    assert words[0] == "created"
    assert "spec.template.spec.containers[web].image: web:v1 -> web:v2" in words
    assert any(
        text.startswith("Normal event ScalingReplicaSet: Scaled up replica set web-") for text in words
    )
    assert words[-1].startswith("rests: 3 of 3 replicas updated and available (caused by ")
    assert web.history(web.get("deploy", "web")) == entries
    assert str(entries[0]) == "00:00:00.000 you: deployments default/web created"


def test_what_rests_is_left_alone_by_the_time_out_of_writes_long_since_seen(web: Cluster) -> None:
    web.advance(minutes=5, seconds=2)
    assert [str(entry) for entry in web.history() if entry.at > web.now - timedelta(minutes=5)] == []


def test_a_cache_that_never_shows_a_write_delays_its_key_for_five_minutes() -> None:
    with Cluster(faults=[FrozenWatch("replicasets", 1200)]) as cluster:
        begin = cluster.now
        cluster.apply(WEB)
        cluster.advance(minutes=6)
        rounds = [e for e in cluster.history("Deployment", "web") if "timed out waiting" in e.description]
        assert [round((each.at - begin).total_seconds()) for each in rounds] == [300]


def test_history_names_kubelets_and_scheduler(web: Cluster) -> None:
    (pod, *_) = web.list("pods")
    who = [entry.actor for entry in web.history(pod)]
    assert list(dict.fromkeys(who)) == ["replicaset-controller", "kube-scheduler", "kubelet"]


def test_a_round_that_brings_nothing_new_is_not_told_again(web: Cluster) -> None:
    web.patch("deploy", "web", {"metadata": {"labels": {"x": "y"}}})
    web.settle()
    verdicts = [
        entry.description
        for entry in web.history("deploy", "web")
        if "replicas updated and available" in entry.description
    ]
    assert len(verdicts) == 1


def test_what_is_gone_has_its_history(web: Cluster) -> None:
    (pod, *_) = web.list("pods")
    web.delete(pod)
    web.settle()
    assert web.history(pod)[-1].description == "deleted"


def test_secrets_are_kept(cluster: Cluster) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"p": "hunter2"}}
    cluster.apply(secret)
    cluster.apply({**secret, "stringData": {"p": "hunter3"}})
    told = "\n".join(map(str, cluster.history()))
    assert "secrets default/s changed" in told
    assert "hunter" not in told
    assert "aHVudGVy" not in told


def test_events_are_those_about_the_object(web: Cluster) -> None:
    web.settle()
    assert [event.reason for event in web.events("deploy", "web")] == ["ScalingReplicaSet"]
    others = [event for event in web.events() if event.reason != "RegisteredNode"]
    assert len([event for event in others if event.source.component != "kubelet"]) == 4
    pod = next(event.involvedObject.name for event in others if event.involvedObject.kind == "Pod")
    assert [event.reason for event in web.events("pod", pod)] == ["Pulling", "Pulled", "Created", "Started"]
    web.advance(hours=2)
    assert web.events() == [], "they last an hour"
    assert any("ScalingReplicaSet" in entry.description for entry in web.history("deploy", "web"))


# -- seeds ------------------------------------------------------------------------------------


def story(seed: int, **wants: Any) -> list[str]:
    with Cluster(seed, **wants) as cluster:
        cluster.apply(WEB)
        cluster.settle()
        image(cluster, "web:v2")
        cluster.settle()
        return [str(entry) for entry in cluster.history()]


@pytest.mark.parametrize("shuffle", [False, True])
def test_the_same_seed_is_the_same_story_and_another_is_another(shuffle: bool) -> None:
    first = story(3, shuffle=shuffle)
    story(5, shuffle=shuffle)
    assert story(3, shuffle=shuffle) == first
    assert story(4, shuffle=shuffle) != first


def test_a_journal_is_kept_where_it_is_asked_for() -> None:
    with Cluster(journal=True) as cluster:
        cluster.apply(WEB)
        assert "ADDED deployments.apps default/web" in cluster.world.journal[-1]


# -- fate -------------------------------------------------------------------------------------


def test_a_manager_that_crashed_writes_nothing_more(cluster: Cluster) -> None:
    cluster.apply(WEB)
    cluster.wait_until(lambda: cluster.list("ReplicaSet"))
    cluster.crash_manager()
    cluster.advance(hours=1)
    assert cluster.list("pods") == []
    assert cluster.events() == [], "not even the events it had in hand"
    assert cluster.manager.alive is False


@pytest.mark.parametrize("write", range(1, 13))
def test_a_manager_may_die_after_any_write(cluster: Cluster, write: int) -> None:
    writes = 0

    def look(commit: Any) -> None:
        nonlocal writes
        if commit.resource in ("deployments.apps", "replicasets.apps", "pods"):
            writes += 1
            if writes == write + 1:
                cluster.crash_manager()

    cluster.world.server.store.commit_hooks.append(look)
    cluster.apply(WEB)
    cluster.advance(minutes=1)
    assert not cluster.manager.alive
    cluster.start_manager()
    cluster.settle()
    assert cluster.get("deploy", "web").status.readyReplicas == 3
    assert (len(cluster.list("ReplicaSet")), len(cluster.list("pods"))) == (1, 3)


def test_there_is_one_manager_at_a_time(cluster: Cluster) -> None:
    with pytest.raises(RuntimeError, match="the manager is running"):
        cluster.start_manager()
    old = cluster.manager
    cluster.restart_manager()
    assert (old.alive, cluster.manager.alive) == (False, True)


def test_faults_stand_between_controllers_and_server() -> None:
    with Cluster(faults=[ErrorResponse(500, "create", "pods", times=2)]) as cluster:
        cluster.apply(WEB)
        cluster.settle()
        assert cluster.get("deploy", "web").status.readyReplicas == 3
        told = list(cluster.history("rs", cluster.list("rs")[0].metadata.name))
        assert any("FailedCreate" in entry.description for entry in told)


def test_a_silent_node_says_nothing_of_its_pods_until_it_recovers(web: Cluster) -> None:
    node = web.node(web.list("pods")[0].spec.nodeName)
    pod = node.pods[0]
    node.fail()
    web.advance(seconds=1)
    web.delete(pod)
    web.advance(minutes=1)
    assert web.get("pod", pod.metadata.name).metadata.deletionTimestamp is not None
    node.recover()
    web.advance(seconds=1)
    with pytest.raises(NotFound):
        web.get("pod", pod.metadata.name)


def test_containers_are_started_again_after_a_reboot(web: Cluster) -> None:
    node = web.node("node-1")
    node.reboot()
    web.advance(minutes=2)
    assert [pod.status.containerStatuses[0].restartCount for pod in node.pods] == [1]


def test_no_pod_is_placed_on_a_cordoned_node(web: Cluster) -> None:
    web.node("node-2").cordon()
    web.scale("deploy", "web", 9)
    web.settle()
    assert len(web.node("node-2").pods) == 1
    web.node("node-2").uncordon()
    web.scale("deploy", "web", 12)
    web.settle()
    assert len(web.node("node-2").pods) > 1


def test_a_node_is_drained_as_fast_as_budgets_allow(web: Cluster) -> None:
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"}}
    web.apply({**budget, "spec": {"minAvailable": 3, "selector": {"matchLabels": {"app": "web"}}}})
    status = {"disruptionsAllowed": 0, "currentHealthy": 3, "desiredHealthy": 3, "expectedPods": 3}
    web.patch("pdb", "web", {"status": {"observedGeneration": 1, **status}}, subresource="status")
    web.node("node-1").drain()
    web.advance(minutes=1)
    assert len(web.node("node-1").pods) == 1
    web.delete("pdb", "web")
    web.advance(seconds=10)
    assert web.node("node-1").pods == []
    web.wait_until(lambda: web.get("deploy", "web").status.readyReplicas == 3)


@pytest.mark.cluster(nodes=["blue", "green"], settings=KubeletSettings(start_delay=30))
def test_nodes_have_the_names_and_the_pace_they_are_given(cluster: Cluster) -> None:
    assert [node.metadata.name for node in cluster.list("nodes")] == ["blue", "green"]
    cluster.apply(WEB)
    cluster.advance(seconds=29)
    assert not cluster.get("deploy", "web").status.readyReplicas
    cluster.advance(seconds=1)
    assert cluster.get("deploy", "web").status.readyReplicas == 3


@pytest.mark.cluster(nodes=0)
def test_without_nodes_pods_wait_for_ever(cluster: Cluster) -> None:
    cluster.apply(WEB)
    cluster.advance(hours=1)
    assert {pod.status.phase for pod in cluster.list("pods")} == {"Pending"}


def test_a_controller_nobody_knows_is_named() -> None:
    with pytest.raises(LookupError, match="unknown controller 'deploymint'"):
        Cluster(controllers=["deploymint"])


# -- forks ------------------------------------------------------------------------------------


def test_forks_go_their_own_ways_from_the_same_place(web: Cluster) -> None:
    one, two = web.fork(), web.fork()
    one.scale("deploy", "web", 1)
    two.scale("deploy", "web", 5)
    for fork in (one, two):
        assert fork.now == web.now
        fork.settle()
    counts = [len(each.list("pods")) for each in (web, one, two)]
    assert counts == [3, 1, 5]
    assert next(entry.description for entry in one.history("deploy", "web")) == "created"


def test_forks_with_seeds_of_their_own_differ(web: Cluster) -> None:
    names = []
    for seed in (1, 1, 2):
        fork = web.fork(seed)
        fork.scale("deploy", "web", 4)
        fork.settle()
        names.append(sorted(pod.metadata.name for pod in fork.list("pods")))
    assert names[0] == names[1] != names[2]


def test_a_dead_manager_is_dead_in_a_fork(web: Cluster) -> None:
    web.crash_manager()
    fork = web.fork()
    fork.scale("deploy", "web", 5)
    fork.advance(hours=1)
    assert len(fork.list("pods")) == 3


def test_closing_twice_is_closing_once() -> None:
    cluster = Cluster()
    cluster.close()
    cluster.close()


# -- rights -----------------------------------------------------------------------------------

READER = """
apiVersion: v1
kind: ServiceAccount
metadata: {name: reader}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: read-maps}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: read-maps}
subjects: [{kind: ServiceAccount, name: reader}, {kind: User, name: jane}]
"""


def watcher() -> Controller[Any]:
    async def decide(seen: Any, now: datetime) -> Verdict:
        await Create(CONFIGMAPS, "default", {"metadata": {"name": "mine"}})
        return Rest("made one")

    return Controller("watcher", (Watch(CONFIGMAPS),), decide, workers=1)


async def test_accounts_and_users_have_the_rights_that_roles_give_them(cluster: Cluster) -> None:
    cluster.apply(READER)
    for client in (cluster.as_account("reader"), cluster.as_user("jane")):
        assert len((await client.list(CONFIGMAPS, "default")).items) == 1
        with pytest.raises(Forbidden, match="cannot list resource"):
            await client.list(CONFIGMAPS, "kube-system")
        with pytest.raises(Forbidden, match="cannot delete resource"):
            await client.delete(CONFIGMAPS, "default", "kube-root-ca.crt")
    with pytest.raises(NotFound):
        cluster.as_account("nobody")


def test_a_controller_that_acts_as_an_account_lacks_what_its_roles_lack(cluster: Cluster) -> None:
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "maps"}}
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch"]}
    cluster.apply([READER, {**role, "rules": [rule]}])
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "maps"}
    subjects = [{"kind": "ServiceAccount", "name": "reader", "namespace": "default"}]
    binding = {**role, "kind": "ClusterRoleBinding", "roleRef": ref, "subjects": subjects}
    cluster.apply(binding)
    cluster.run_controller(watcher(), account="default/reader")
    cluster.advance(seconds=1)
    told = [entry.description for entry in cluster.history("cm", "kube-root-ca.crt")]
    assert any("cannot create resource" in text for text in told)
    cluster.patch("clusterrole", "maps", {"rules": [{**rule, "verbs": ["list", "watch", "create"]}]})
    cluster.wait_until(lambda: cluster.get("cm", "mine"), timeout=60)


def test_a_controller_of_ones_own_has_all_rights_unless_it_says_whose(cluster: Cluster) -> None:
    cluster.run_controller(watcher())
    cluster.wait_until(lambda: cluster.get("cm", "mine"), timeout=60)
    assert cluster.history("cm", "mine")[0].actor == "watcher"


def test_the_clusters_own_controllers_have_the_rights_of_their_accounts(cluster: Cluster) -> None:
    cluster.delete("clusterrolebinding", "system:controller:replicaset-controller")
    cluster.apply(WEB)
    cluster.advance(minutes=1)
    assert cluster.list("pods") == []
    (owned,) = cluster.list("ReplicaSet")
    assert any("cannot create resource" in entry.description for entry in cluster.history(owned))
