"""Plans of every kind of change, on clusters that are snapshots of simulated ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from steersman.api.manifest_annotations import LAST_APPLIED
from steersman.plan.assumptions import Assumptions, Load
from steersman.plan.change import Apply, ChangeError, Delete, Drain, Fail, Scale, SetImage, Step
from steersman.plan.model import Report
from steersman.plan.rehearsal import Rehearsal
from steersman.plan.render import markdown, text
from steersman.sim.kubelet import Shape
from steersman.snapshot.loading import StoreBuilder
from steersman.snapshot.model import LoadedSnapshot
from steersman.snapshot.read_cluster import read_cluster
from steersman.snapshot.redaction import Redactor
from steersman.testing import Cluster
from tests.harness.custom_resources import DEFINITION, WIDGET


def deployment(name: str = "web", replicas: int = 3, image: str = "web:v1", **pod: Any) -> dict[str, Any]:
    container = {"name": "main", "image": image, **pod}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}},
        },
    }


def copy_of(prepare: Callable[[Cluster], None], **options: Any) -> LoadedSnapshot:
    with Cluster(seed=5, **options) as cluster:
        prepare(cluster)
        cluster.settle()
        builder = StoreBuilder()
        found = cluster.run(read_cluster(cluster.world.api(), builder, redactor=Redactor(b"k")))
        return LoadedSnapshot(real(builder), cluster.now, "v1.36.4", found.unread, builder.unknown)


def real(builder: StoreBuilder) -> Any:
    """The store of a cluster whose kubelets are real: no id says that a container is simulated."""
    store = builder.build()
    raw = {
        key: msgspec.json.decode(
            msgspec.json.encode(store.table("pods").get(key)).replace(b'"sim://', b'"containerd://'),
            type=type(store.table("pods").get(key)),
        )
        for key in store.table("pods").keys()  # noqa: SIM118
    }
    store.table("pods").load(raw)
    return store


def plan(loaded: LoadedSnapshot, *steps: Step, minutes: float = 30, **options: Any) -> Report:
    with Rehearsal(loaded, steps, seconds=minutes * 60, **options) as rehearsal:
        return rehearsal.run()


def web(cluster: Cluster) -> None:
    cluster.apply(deployment())


def verbs(report: Report, kind: str) -> list[str]:
    return [each.verb for each in report.timeline if each.object.kind == kind and each.verb != "change"]


def test_a_cluster_at_rest_is_left_as_it_is() -> None:
    report = plan(copy_of(web), Apply(deployment()))
    assert report.converged
    assert [(each.actor, each.verb) for each in report.timeline] in ([], [("you", "change")])
    assert not [each for each in report.anyway if each.verb != "change"], report.anyway
    assert not report.refusals


def test_a_roll_replaces_pods_in_order_and_says_why() -> None:
    report = plan(copy_of(web), Apply(deployment(image="web:v2")))
    assert report.converged
    assert verbs(report, "ReplicaSet") == ["create"]
    assert verbs(report, "Pod").count("create") == 3
    assert verbs(report, "Pod").count("delete") == 3
    created = next(each for each in report.timeline if each.verb == "create" and each.object.kind == "Pod")
    assert created.cause is not None
    assert created.cause.controller == "replicaset-controller"
    by_number = {each.number: each for each in report.timeline}
    chain = [by_number[created.cause.entry]]
    while chain[-1].cause is not None and chain[-1].cause.entry:
        chain.append(by_number[chain[-1].cause.entry])
    assert [each.object.kind for each in chain] == ["ReplicaSet", "Deployment"]
    assert chain[-1].actor == "you"
    assert "spec.template.spec.containers[main].image: web:v1 -> web:v2" in chain[-1].fields


def test_a_bad_roll_never_converges_and_the_image_is_the_cause() -> None:
    report = plan(
        copy_of(web),
        SetImage("deploy", "web", "web:v9"),
        assumptions=Assumptions(missing_images=("web:v9",)),
    )
    assert report.exit_code == 2
    stuck = {each.object.kind: each for each in report.not_converged}
    assert "web:v9" in stuck["Deployment"].causes[0]
    assert "can be pulled" not in " ".join(report.assumptions).replace("cannot be pulled", "")


def test_the_cascade_of_a_deletion_is_told_before_it_is_made() -> None:
    report = plan(copy_of(web), Delete("deploy", "web"))
    assert report.converged
    assert verbs(report, "Deployment") == ["delete"]
    assert verbs(report, "ReplicaSet")[-1] == "delete"
    assert verbs(report, "Pod").count("delete") == 3


def test_a_drain_waits_for_a_disruption_budget() -> None:
    def prepare(cluster: Cluster) -> None:
        cluster.apply(deployment(replicas=4))
        cluster.apply(
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": "web", "namespace": "default"},
                "spec": {"minAvailable": 4, "selector": {"matchLabels": {"app": "web"}}},
            }
        )

    report = plan(copy_of(prepare), Drain("node-1"), minutes=5)
    assert report.exit_code == 2
    refused = [each for each in report.refusals if each.by == "PodDisruptionBudget"]
    assert refused
    assert refused[0].count > 10
    assert not refused[0].resolved
    assert "The disruption budget web needs 4 healthy pods and has 4 currently" in refused[0].message
    assert any(
        each.object.kind == "Node" and "spec.unschedulable = true" in each.fields for each in report.timeline
    )


def one_at_a_time(cluster: Cluster) -> None:
    cluster.apply(deployment(replicas=6))
    cluster.apply(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}},
        }
    )


def test_a_drain_that_has_to_wait_a_moment_converges() -> None:
    report = plan(copy_of(one_at_a_time), Drain("node-1"), minutes=5, assumptions=Assumptions(ready=20))
    assert report.converged, report.not_converged
    assert all(each.resolved for each in report.refusals)
    assert report.refusals
    assert verbs(report, "Pod").count("delete") == 2


def test_a_workload_that_is_scaled_to_zero_converges() -> None:
    report = plan(copy_of(web), Scale("deployment", "web", 0))
    assert verbs(report, "Pod").count("delete") == 3
    assert report.converged
    assert report.exit_code == 0


def test_a_quota_refuses_and_is_named() -> None:
    def prepare(cluster: Cluster) -> None:
        web(cluster)
        cluster.apply(
            {
                "apiVersion": "v1",
                "kind": "ResourceQuota",
                "metadata": {"name": "few", "namespace": "default"},
                "spec": {"hard": {"pods": "4"}},
            }
        )

    report = plan(copy_of(prepare), Scale("deployment", "web", 6))
    assert report.exit_code == 2
    assert {each.by for each in report.refusals} == {"ResourceQuota"}
    assert {each.actor for each in report.refusals} == {"replicaset-controller"}
    assert [each.object.name for each in report.not_converged if each.object.kind == "Deployment"] == ["web"]


def test_capacity_that_is_missing_is_summed_up() -> None:
    shape = Shape(capacity={"cpu": "2", "memory": "4Gi", "pods": "110", "ephemeral-storage": "1Ti"})
    loaded = copy_of(
        lambda cluster: cluster.apply(deployment(resources={"requests": {"cpu": "500m"}})), shape=shape
    )
    report = plan(loaded, Scale("deploy", "web", 20))
    assert report.exit_code == 2
    (missing,) = report.capacity
    assert len(missing.pods) == 8
    assert missing.requests == {"cpu": "4"}
    assert "Insufficient cpu" in missing.reason


def test_a_custom_resource_definition_goes_with_its_objects() -> None:
    def prepare(cluster: Cluster) -> None:
        cluster.apply(DEFINITION)
        cluster.apply(WIDGET)
        cluster.apply({**WIDGET, "metadata": {"name": "held", "finalizers": ["example.com/hold"]}})

    loaded = copy_of(prepare)
    report = plan(loaded, Delete("crd", "widgets.example.com"))
    gone = [each.object.name for each in report.timeline if each.verb == "delete"]
    assert "one" in gone
    assert report.exit_code == 2
    assert any("example.com/hold" in " ".join(each.causes) for each in report.not_converged)
    empty = copy_of(lambda cluster: None)
    both = plan(empty, Apply(WIDGET), Apply(DEFINITION))
    assert both.converged, (both.refusals, both.not_converged)
    assert verbs(both, "Widget") == ["create"]


def test_a_namespace_is_emptied_and_deleted() -> None:
    def prepare(cluster: Cluster) -> None:
        cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "old"}})
        cluster.settle()
        document = deployment()
        document["metadata"]["namespace"] = "old"
        cluster.apply(document)
        cluster.apply(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "old"}}
        )

    report = plan(copy_of(prepare), Delete("ns", "old"))
    assert report.converged, report.not_converged
    for page in (text(report), markdown(report)):
        assert "sees Namespace old" not in page
        assert "terminate Namespace old" in page.replace("terminates", "terminate")
    assert {each.object.kind for each in report.timeline if each.verb == "delete"} >= {
        "Namespace",
        "Deployment",
        "ConfigMap",
        "Pod",
    }


SCALER = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 2,
        "maxReplicas": 8,
        "metrics": [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
            }
        ],
    },
}


def test_an_autoscaler_scales_under_the_load_of_a_file() -> None:
    def prepare(cluster: Cluster) -> None:
        cluster.apply(deployment(replicas=2, resources={"requests": {"cpu": "200m"}}))

    loads = (Load("default", "web", cpu=600, shared=True),)
    report = plan(copy_of(prepare), Apply(SCALER), assumptions=Assumptions(loads=loads))
    scaled = [field for each in report.timeline if each.object.kind == "Deployment" for field in each.fields]
    assert "spec.replicas: 2 -> 4" in scaled
    assert "spec.replicas: 4 -> 6" in scaled
    assert report.converged, report.not_converged


def test_without_a_file_the_load_stays_as_the_autoscaler_saw_it() -> None:
    def prepare(cluster: Cluster) -> None:
        cluster.apply(deployment(replicas=4, resources={"requests": {"cpu": "200m"}}))
        cluster.apply(SCALER)
        cluster.advance(minutes=2)

    report = plan(copy_of(prepare), SetImage("deploy", "web", "web:v2"))
    assert report.converged
    assert not any(
        "spec.replicas" in field
        for each in report.timeline
        if each.object.kind == "Deployment"
        for field in each.fields
    )
    assert any("autoscalers" in each for each in report.unknown)


def test_a_cronjob_fires_at_its_new_time_and_the_old_one_is_told_apart() -> None:
    def cron(schedule: str, name: str) -> dict[str, Any]:
        return {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "schedule": schedule,
                "jobTemplate": {
                    "spec": {
                        "template": {
                            "spec": {
                                "restartPolicy": "Never",
                                "containers": [{"name": "main", "image": "job:v1"}],
                            }
                        }
                    }
                },
            },
        }

    def prepare(cluster: Cluster) -> None:
        cluster.apply(cron("0 3 * * *", "night"))
        cluster.apply(cron("*/10 * * * *", "often"))

    report = plan(copy_of(prepare), Apply(cron("*/10 * * * *", "night")), minutes=31)
    assert report.converged
    jobs = [each for each in report.timeline if each.object.kind == "Job" and each.verb == "create"]
    assert [each.object.name.partition("-")[0] for each in jobs] == ["night"] * 3
    anyway = [each for each in report.anyway if each.object.kind == "Job" and each.verb == "create"]
    assert [each.object.name.partition("-")[0] for each in anyway] == ["often"] * 3


def test_a_failed_node_loses_its_pods_after_their_tolerations() -> None:
    report = plan(copy_of(web), Fail("node-2"), minutes=10)
    unready = next(each for each in report.timeline if each.object.kind == "Node")
    assert 40 <= unready.at <= 60
    evicted = next(each for each in report.timeline if each.object.kind == "Pod" and each.verb == "terminate")
    assert 330 <= evicted.at <= 370
    created = [each for each in report.timeline if each.object.kind == "Pod" and each.verb == "create"]
    assert len(created) == 1


def test_an_object_that_is_written_twice_at_once_is_told_as_one() -> None:
    """The taints of a drained node that fails begin alike: those that are new are told."""
    report = plan(copy_of(web), Drain("node-1"), Fail("node-1"))
    page = text(report)
    assert "(node-1, node-1)" not in page
    for effect in ("NoSchedule", "NoExecute"):
        assert f'spec.taints with {{"effect":"{effect}","key":"node.kubernetes.io/unreachab' in page
    assert "+0 µs" not in page


def test_a_statefulset_rolls_one_by_one_and_keeps_its_claims() -> None:
    stateful = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db", "namespace": "default"},
        "spec": {
            "replicas": 3,
            "serviceName": "db",
            "selector": {"matchLabels": {"app": "db"}},
            "template": {
                "metadata": {"labels": {"app": "db"}},
                "spec": {
                    "containers": [
                        {
                            "name": "main",
                            "image": "db:v1",
                            "volumeMounts": [{"name": "data", "mountPath": "/d"}],
                        }
                    ]
                },
            },
            "volumeClaimTemplates": [
                {
                    "metadata": {"name": "data"},
                    "spec": {
                        "accessModes": ["ReadWriteOnce"],
                        "resources": {"requests": {"storage": "1Gi"}},
                    },
                }
            ],
        },
    }
    report = plan(copy_of(lambda cluster: cluster.apply(stateful)), SetImage("sts", "db", "db:v2"))
    assert report.converged, report.not_converged
    created = [
        each.object.name for each in report.timeline if each.object.kind == "Pod" and each.verb == "create"
    ]
    assert created == ["db-2", "db-1", "db-0"]
    assert not verbs(report, "PersistentVolumeClaim")


def test_claims_of_provisioners_that_are_not_here_get_volumes_and_lose_them() -> None:
    fast = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "fast"},
        "provisioner": "ebs.csi.example.com",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {
            "storageClassName": "fast",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    user = deployment(replicas=1)
    user["spec"]["template"]["spec"]["volumes"] = [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    ]
    loaded = copy_of(lambda cluster: cluster.apply(fast))
    report = plan(loaded, Apply(claim), Apply(user))
    assert report.converged, report.not_converged
    assert verbs(report, "PersistentVolume") == ["create"]
    assert any("provisioners" in each for each in report.unknown)


def test_a_field_that_the_change_leaves_out_is_removed_as_kubectl_does() -> None:
    before = deployment()
    before["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "A", "value": "1"}]
    before["spec"]["minReadySeconds"] = 5
    before["metadata"]["annotations"] = {LAST_APPLIED: json.dumps(before)}
    report = plan(copy_of(lambda cluster: cluster.create(before)), Apply(deployment()))
    mine = next(each for each in report.timeline if each.actor == "you")
    assert "spec.minReadySeconds removed" in mine.fields or "spec.minReadySeconds: 5 -> 0" in mine.fields
    assert any("env" in field for field in mine.fields)


def test_the_same_manifest_again_changes_nothing() -> None:
    """kubectl records `annotations: {}` for a manifest without annotations; those of others stay."""
    before = deployment()
    recorded = {**before, "metadata": {"annotations": {}, **before["metadata"]}}
    before["metadata"]["annotations"] = {LAST_APPLIED: json.dumps(recorded), "example.com/owner": "shop"}
    report = plan(copy_of(lambda cluster: cluster.create(before)), Apply(deployment()))
    assert [each.fields for each in report.timeline if each.actor == "you" and each.fields] == []
    assert "What the change causes" not in text(report)


def test_an_invalid_change_is_refused_by_validation() -> None:
    report = plan(copy_of(web), Apply(deployment(replicas=-1)))
    assert report.exit_code == 2
    (refused,) = report.refusals
    assert (refused.actor, refused.by) == ("you", "validation")
    unknown = deployment()
    unknown["spec"]["replicaz"] = 3
    report = plan(copy_of(web), Apply(unknown))
    assert [each.by for each in report.refusals] == ["validation"]


def test_admission_policies_refuse_and_webhooks_are_not_called() -> None:
    hook = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "checker"},
        "webhooks": [
            {
                "name": "checker.example.com",
                "clientConfig": {"url": "https://checker.example.com/check"},
                "rules": [
                    {
                        "apiGroups": ["apps"],
                        "apiVersions": ["v1"],
                        "resources": ["deployments"],
                        "operations": ["*"],
                    }
                ],
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }
        ],
    }
    report = plan(copy_of(lambda cluster: cluster.apply([deployment(), hook])), Scale("deploy", "web", 4))
    assert report.converged
    report = plan(copy_of(lambda cluster: cluster.apply([deployment(), hook])), Apply(deployment(replicas=4)))
    assert report.converged
    assert any("https://checker.example.com/check" in each for each in report.unknown)
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "few"},
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": ["apps"],
                        "apiVersions": ["v1"],
                        "resources": ["deployments"],
                        "operations": ["*"],
                    }
                ]
            },
            "validations": [{"expression": "object.spec.replicas <= 5", "message": "too many"}],
        },
    }
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "few"},
        "spec": {"policyName": "few", "validationActions": ["Deny"]},
    }
    loaded = copy_of(lambda cluster: cluster.apply([deployment(), policy, binding]))
    report = plan(loaded, Apply(deployment(replicas=6)))
    assert report.exit_code == 2
    assert [(each.by, "too many" in each.message) for each in report.refusals] == [
        ("ValidatingAdmissionPolicy", True)
    ]


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (Delete("deploy", "wen"), "did you mean 'web'"),
        (Delete("deploymint", "web"), "did you mean"),
        (Drain("node-9"), "no node 'node-9'; did you mean"),
        (Fail("nope"), "no node 'nope'"),
        (Scale("deploy", "nothing-like-it", 1), "there are: web"),
        (SetImage("deploy", "web", "x", "mian"), "no container 'mian'; did you mean 'main'"),
        (SetImage("cm", "kube-root-ca.crt", "x"), "has no containers"),
        (
            Apply({"apiVersion": "apps/v1", "kind": "Deploymint", "metadata": {"name": "x"}}, "a.yaml"),
            "a.yaml: Deploymint x",
        ),
        (
            Apply({"apiVersion": "apps/v2", "kind": "Deployment", "metadata": {"name": "x"}}, "a.yaml"),
            "apiVersion 'apps/v1'",
        ),
    ],
)
def test_what_does_not_exist_is_one_clear_error(step: Step, message: str) -> None:
    with pytest.raises(ChangeError, match=message) as raised:
        plan(copy_of(web), step)
    assert "\n" not in str(raised.value)


def test_the_data_of_secrets_reach_no_output(tmp_path: Path) -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s"},
        "stringData": {"word": "hunter2"},
    }
    changed = {**secret, "stringData": {"word": "correct horse"}}
    settings = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c"},
        "data": {"word": "battery"},
    }
    loaded = copy_of(lambda cluster: cluster.apply(secret))
    report = plan(loaded, Apply(changed), Apply(settings))
    assert report.converged
    shown = text(report) + markdown(report) + msgspec.json.encode(report.document()).decode()
    for word in ("hunter2", "correct horse", "battery", "Y29ycmVjdCBob3JzZQ=="):
        assert word not in shown
    assert "Secret default/s" in shown


def test_the_same_plan_twice_is_the_same() -> None:
    loaded = copy_of(web)
    step = SetImage("deploy", "web", "web:v2")
    assert plan(loaded, step).document() == plan(loaded, step).document()


def test_text_and_markdown_tell_the_change_and_the_verdict() -> None:
    report = plan(copy_of(web), SetImage("deploy", "web", "web:v2"))
    page = text(report)
    assert "Plan: set the image of deploy/web to web:v2" in page
    assert "you change Deployment default/web" in page
    assert "Converges within" in page
    assert "| replicaset-controller | creates" in markdown(report)
    assert report.document()["converged"] is True


def config(kind: str = "ConfigMap", **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "c", "namespace": "default"}, **fields}


def test_a_value_of_a_secret_is_not_in_the_words_that_refuse_it() -> None:
    report = plan(
        copy_of(web), Apply(config("Secret", data={"a": 12345678, "b": {"c": "hunter2"}})), minutes=1
    )
    assert report.exit_code == 2
    told = text(report) + markdown(report) + json.dumps(report.document(), default=str)
    assert "12345678" not in told
    assert "hunter2" not in told


def test_a_label_that_the_change_sets_is_told_and_unknown_data_are_said_to_be_so() -> None:
    labelled = deployment()
    labelled["metadata"]["labels"] = {"team": "shop"}
    report = plan(copy_of(web), Apply(labelled), minutes=1)
    assert "you change Deployment default/web" in text(report)
    assert "team" in text(report)
    assert "causes nothing" not in text(report)
    loaded = copy_of(lambda cluster: cluster.apply(config(data={"a": "b"})))
    assert "read as hashes: ConfigMap c" in text(plan(loaded, Apply(config(data={"a": "b"})), minutes=1))


def test_objects_of_a_definition_that_is_refused_are_refused_with_it() -> None:
    broken = {**DEFINITION, "metadata": {"name": "other.example.com"}}
    report = plan(copy_of(web), Apply(WIDGET), Apply(broken), minutes=1)
    assert report.exit_code == 2
    assert [each.action for each in report.refusals] == [
        "apply CustomResourceDefinition other.example.com",
        "apply Widget one",
    ]
    odd = {**DEFINITION, "spec": {"names": [1], "group": "example.com"}}
    assert plan(copy_of(web), Apply(odd), minutes=1).exit_code == 2


def quota(pods: int) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "few", "namespace": "default"},
        "spec": {"hard": {"pods": str(pods)}},
    }


def test_a_pod_that_a_quota_lets_in_later_converges() -> None:
    def prepare(cluster: Cluster) -> None:
        web(cluster)
        cluster.settle()
        cluster.apply(quota(3))

    rolled = deployment(image="web:v2")
    rolled["spec"]["strategy"] = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}
    report = plan(copy_of(prepare), Apply(rolled))
    assert report.refusals
    assert report.converged, (report.refusals, report.not_converged)
    assert "accepted later" in text(report)


def test_what_is_refused_without_the_change_too_is_not_held_against_it() -> None:
    def prepare(cluster: Cluster) -> None:
        cluster.apply(quota(2))
        cluster.settle()
        web(cluster)

    report = plan(copy_of(prepare), Apply(config(data={"a": "b"})))
    assert all(each.anyway for each in report.refusals)
    assert report.converged, (report.refusals, report.not_converged)


def test_an_object_of_a_kind_that_could_not_be_read_is_not_said_to_be_missing() -> None:
    loaded = copy_of(web)._replace(unread={"statefulsets.apps": "no right to list them", "nodes": "no right"})
    with pytest.raises(ChangeError, match=r"statefulsets\.apps could not be read: no right to list them"):
        plan(loaded, Scale("sts", "db", 3))
    with pytest.raises(ChangeError, match="nodes could not be read"):
        plan(loaded, Drain("node-1"))
