"""More stuck situations of every day on the embedded plane: the first sentence names the true cause, and the advice fits it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest
import yaml

from steersman.explain.asking import Question, ask, parse_subject
from steersman.explain.model import Explanation
from steersman.explain.render import text
from steersman.testing import Cluster

NAMESPACE = "shop"


def why(cluster: Cluster, subject: str) -> Explanation:
    kind, name = parse_subject([subject])
    return cluster.run(ask(cluster.client, Question(kind, name, NAMESPACE), cluster.now))


@contextmanager
def staged(
    *stages: str, dra: bool = False, csi: bool = False, gates: dict[str, bool] | None = None
) -> Iterator[Cluster]:
    """A cluster two minutes after manifests were applied to it, one set after the other."""
    with Cluster(seed=3, nodes=3, dra=dra, csi=csi, gates=gates or {}) as cluster:
        cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        cluster.settle()
        for stage in stages:
            for document in yaml.safe_load_all(stage):
                cluster.apply(document, NAMESPACE)
            cluster.advance(seconds=20)
        cluster.advance(seconds=120)
        yield cluster


def deployment(pod: str = "", replicas: int = 1, name: str = "web") -> str:
    return f"""
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec: {{{pod + ", " if pod else ""}containers: [{{name: main, image: "web:v1"}}]}}
"""


def daemonset(pod: str = "", image: str = "agent:v1", strategy: str = "RollingUpdate") -> str:
    return f"""
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: agent}}
spec:
  updateStrategy: {{type: {strategy}}}
  selector: {{matchLabels: {{app: agent}}}}
  template:
    metadata: {{labels: {{app: agent}}}}
    spec: {{{pod + ", " if pod else ""}containers: [{{name: main, image: "{image}"}}]}}
"""


def statefulset(image: str = "db:v1", **spec: Any) -> str:
    return yaml.safe_dump(
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {"name": "db"},
            "spec": {
                "serviceName": "db",
                "replicas": 2,
                "selector": {"matchLabels": {"app": "db"}},
                "template": {
                    "metadata": {"labels": {"app": "db"}},
                    "spec": {"containers": [{"name": "main", "image": image}]},
                },
                **spec,
            },
        }
    )


def quota(hard: str) -> str:
    return f"{{apiVersion: v1, kind: ResourceQuota, metadata: {{name: tight}}, spec: {{hard: {{{hard}}}}}}}"


def budget(name: str, rule: str, app: str = "web") -> str:
    selector = f"{{matchLabels: {{app: {app}}}}}"
    return f"{{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {{name: {name}}}, spec: {{{rule}, selector: {selector}}}}}"


def volume(more: str = "", mode: str = "ReadWriteOnce") -> str:
    spec = (
        f"storageClassName: manual, capacity: {{storage: 1Gi}}, accessModes: [{mode}], hostPath: {{path: /x}}"
    )
    return f"{{apiVersion: v1, kind: PersistentVolume, metadata: {{name: disk}}, spec: {{{spec}{more}}}}}"


def claim(more: str = "", mode: str = "ReadWriteOnce", size: str = "1Gi") -> str:
    spec = f"storageClassName: manual, accessModes: [{mode}], resources: {{requests: {{storage: {size}}}}}"
    return (
        f"{{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {{name: data}}, spec: {{{spec}{more}}}}}"
    )


def ephemeral() -> str:
    """A pod with an ephemeral volume."""
    spec = "{storageClassName: manual, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}"
    data = f"{{name: data, ephemeral: {{volumeClaimTemplate: {{spec: {spec}}}}}}}"
    main = "{name: main, image: 'web:v1', volumeMounts: [{name: data, mountPath: /data}]}"
    return f"{{apiVersion: v1, kind: Pod, metadata: {{name: web}}, spec: {{containers: [{main}], volumes: [{data}]}}}}"


def cronjob(schedule: str = "* * * * *") -> str:
    return f"""
apiVersion: batch/v1
kind: CronJob
metadata: {{name: nightly}}
spec:
  schedule: "{schedule}"
  jobTemplate: {{spec: {{template: {{spec: {{restartPolicy: Never, containers: [{{name: main, image: "task:v1"}}]}}}}}}}}
"""


def job(more: str, command: str = "exit 1") -> str:
    pod = f'{{restartPolicy: Never, containers: [{{name: main, image: "task:v1", command: [sh, -c, "{command}"]}}]}}'
    return f"{{apiVersion: batch/v1, kind: Job, metadata: {{name: task}}, spec: {{{more}, template: {{spec: {pod}}}}}}}"


def device_claim(device_class: str, count: int = 1) -> str:
    exactly = f"{{deviceClassName: {device_class}, count: {count}}}"
    return (
        "{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: gpu}, "
        f"spec: {{devices: {{requests: [{{name: gpu, exactly: {exactly}}}]}}}}}}"
    )


def device_template(count: int = 1) -> str:
    exactly = f"{{deviceClassName: simulated, count: {count}}}"
    return (
        "{apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, metadata: {name: gpu}, "
        f"spec: {{spec: {{devices: {{requests: [{{name: gpu, exactly: {exactly}}}]}}}}}}}}"
    )


AUTOSCALER = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: %s}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: %s, name: %s}
  maxReplicas: 3
  metrics: [%s]
"""
CPU = "{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}"
QUEUE = "{type: External, external: {metric: {name: queue}, target: {type: Value, value: 5}}}"
SERVICE = "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {%s}}"
INGRESS = """
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec: {ingressClassName: fast, defaultBackend: {service: {name: web, port: {number: 80}}}}
"""
BARE = "{apiVersion: v1, kind: Pod, metadata: {name: bare, labels: {app: web}}, spec: {containers: [{name: main, image: 'web:v1'}]}}"
RATIO = "{apiVersion: v1, kind: LimitRange, metadata: {name: ratio}, spec: {limits: [{type: Container, maxLimitRequestRatio: {cpu: 2}}]}}"
RATIO_POD = """
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: "web:v1", resources: {requests: {cpu: 100m}, limits: {cpu: 1}}}]}
"""
DEVICES = "resourceClaims: [{name: gpu, resourceClaimName: gpu}]"
TEMPLATE = "resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]"
TEMPLATES = "resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}, {name: net, resourceClaimTemplateName: nets}]"
GPU_NODE = (
    "{apiVersion: v1, kind: Node, metadata: {name: node-1, labels: {role: gpu}}, "
    "spec: {taints: [{key: gpu, effect: NoSchedule}]}}"
)


class Row(NamedTuple):
    """A situation: manifests, the object in question, the first sentence, and words of the advice."""

    subject: str
    stages: tuple[str, ...]
    first: str
    advice: str = ""
    dra: bool = False


ROWS = {
    "a_claim_of_devices_that_does_not_exist": Row(
        "deploy/web",
        (deployment(DEVICES),),
        "Pod web-…: ResourceClaim gpu, which it uses, does not exist.",
        "create ResourceClaim gpu",
        dra=True,
    ),
    "a_template_of_claims_that_does_not_exist": Row(
        "deploy/web",
        (deployment(TEMPLATE),),
        'Pod web-…: a ResourceClaim that it uses cannot be created: PodResourceClaim gpu: resource claim template "gpu": '
        'resourceclaimtemplate.resource.k8s.io "gpu" not found.',
        "create ResourceClaimTemplate gpu",
        dra=True,
    ),
    "the_second_of_two_templates_of_claims_does_not_exist": Row(
        "deploy/web",
        (device_template(), deployment(TEMPLATES)),
        'Pod web-…: a ResourceClaim that it uses cannot be created: PodResourceClaim net: resource claim template "nets": '
        'resourceclaimtemplate.resource.k8s.io "nets" not found.',
        "create ResourceClaimTemplate nets",
        dra=True,
    ),
    "a_template_of_claims_that_came_late_asks_for_too_much": Row(
        "deploy/web",
        (deployment(TEMPLATE), device_template(20)),
        "Pod web-…: no node of 3 fits: 3 lack the devices that its ResourceClaims ask for.",
        dra=True,
    ),
    "a_quota_of_claims_of_devices": Row(
        "deploy/web",
        (device_template(), quota("count/resourceclaims.resource.k8s.io: 0"), deployment(TEMPLATE)),
        "Pod web-…: a ResourceClaim that it uses cannot be created: ResourceQuota tight is used up "
        "(count/resourceclaims.resource.k8s.io=0 used of count/resourceclaims.resource.k8s.io=0), so no more "
        "resourceclaims may be created.",
        "raise the quota",
        dra=True,
    ),
    "a_class_of_devices_that_does_not_exist": Row(
        "deploy/web",
        (device_claim("fast"), deployment(DEVICES)),
        "Pod web-…: no node of 3 fits: request gpu: device class fast does not exist.",
        dra=True,
    ),
    "devices_that_no_node_has": Row(
        "resourceclaim/gpu",
        (device_claim("simulated", 20), deployment(DEVICES)),
        "Pod web-…: no node of 3 fits: 3 lack the devices that its ResourceClaims ask for.",
        "kubectl get resourceslices",
        dra=True,
    ),
    "taints_of_nodes_that_the_pod_does_not_select": Row(
        "deploy/web",
        (GPU_NODE, deployment("nodeSelector: {disk: ssd}")),
        "Pod web-…: no node of 3 fits: 1 has a taint that the pod does not tolerate (gpu:NoSchedule), "
        "2 do not match its nodeSelector or node affinity.",
    ),
    "a_volume_for_one_pod_that_two_pods_want": Row(
        "deploy/web",
        (
            volume(mode="ReadWriteOncePod"),
            claim(mode="ReadWriteOncePod"),
            deployment("volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]", replicas=2),
        ),
        "Pod web-…: no node of 3 fits: its ReadWriteOncePod volume is used by another pod.",
        "run one replica",
    ),
    "an_ephemeral_volume_whose_claim_is_another_one": Row(
        "pod/web",
        (claim().replace("name: data", "name: web-data"), ephemeral()),
        "Pod web: PersistentVolumeClaim web-data is not its own, and its ephemeral volume needs a claim of that name.",
        "rename the pod or its volume",
    ),
    "an_ephemeral_volume_whose_claim_a_quota_refuses": Row(
        "pod/web",
        (quota("persistentvolumeclaims: 0"), ephemeral()),
        "Pod web: PersistentVolumeClaim web-data of its ephemeral volume cannot be created: "
        'persistentvolumeclaims "web-data" is forbidden: exceeded quota: tight, requested: persistentvolumeclaims=1, '
        "used: persistentvolumeclaims=0, limited: persistentvolumeclaims=0.",
    ),
    "a_quota_of_replicasets": Row(
        "deploy/web",
        (quota("count/replicasets.apps: 0"), deployment()),
        "Deployment web: ResourceQuota tight is used up (count/replicasets.apps=0 used of count/replicasets.apps=0), "
        "so no more replicasets may be created.",
    ),
    "a_quota_of_jobs": Row(
        "cronjob/nightly",
        (quota("count/jobs.batch: 0"), cronjob()),
        "CronJob nightly: ResourceQuota tight is used up (count/jobs.batch=0 used of count/jobs.batch=0), so no more jobs may be created.",
    ),
    "a_quota_of_claims": Row(
        "sts/db",
        (
            quota("persistentvolumeclaims: 0"),
            statefulset(
                volumeClaimTemplates=[
                    {
                        "metadata": {"name": "data"},
                        "spec": {
                            "storageClassName": "manual",
                            "accessModes": ["ReadWriteOnce"],
                            "resources": {"requests": {"storage": "1Gi"}},
                        },
                    }
                ]
            ),
        ),
        "StatefulSet db: ResourceQuota tight is used up (persistentvolumeclaims=0 used of persistentvolumeclaims=0), "
        "so no more persistentvolumeclaims may be created.",
    ),
    "a_ratio_of_a_limit_range": Row(
        "rs/web",
        (RATIO, RATIO_POD),
        "ReplicaSet web: a LimitRange of the namespace forbids these pods: cpu max limit to request ratio per Container is 2, "
        "but provided ratio is 10.000000.",
        "the LimitRange",
    ),
    "a_runtime_class_that_does_not_exist": Row(
        "deploy/web",
        (deployment("runtimeClassName: kata"),),
        "ReplicaSet web-…: RuntimeClass kata does not exist, and the pods name it.",
        "create the RuntimeClass",
    ),
    "an_autoscaler_without_an_adapter_for_external_metrics": Row(
        "hpa/web",
        (deployment(), AUTOSCALER % ("web", "Deployment", "web", QUEUE)),
        "HorizontalPodAutoscaler web: there are no metrics: .*external metrics API.*",
        "install an adapter that serves external.metrics.k8s.io",
    ),
    "two_autoscalers_of_one_deployment": Row(
        "hpa/web",
        (
            deployment(),
            AUTOSCALER % ("web", "Deployment", "web", CPU),
            AUTOSCALER % ("other", "Deployment", "web", CPU),
        ),
        "HorizontalPodAutoscaler web: several autoscalers scale the same pods, so none of them acts: pods by selector app=web are "
        "controlled by multiple HPAs: [shop/other shop/web].",
        "delete all but one of them",
    ),
    "an_autoscaler_whose_target_is_missing": Row(
        "hpa/web",
        (AUTOSCALER % ("web", "Deployment", "gone", CPU),),
        "HorizontalPodAutoscaler web: its target Deployment gone does not exist.",
        "correct spec.scaleTargetRef",
    ),
    "an_autoscaler_of_a_daemonset": Row(
        "hpa/web",
        (daemonset(), AUTOSCALER % ("web", "DaemonSet", "agent", CPU)),
        "HorizontalPodAutoscaler web: its target DaemonSet agent cannot be scaled: the kind DaemonSet has no scale subresource.",
        "delete the autoscaler: the nodes decide",
    ),
    "an_autoscaler_of_an_unknown_kind": Row(
        "hpa/web",
        (AUTOSCALER % ("web", "Rollout", "web", CPU),),
        "HorizontalPodAutoscaler web: the API server does not know the kind of its target Rollout web: .*no matches for kind.*",
        "install the definition of the kind",
    ),
    "a_budget_without_pods": Row(
        "pdb/web",
        (deployment(), budget("web", "minAvailable: 1", app="api")),
        "PodDisruptionBudget web: no pod in namespace shop has the labels of its selector, so it protects nothing.",
        "correct spec.selector",
    ),
    "a_budget_of_pods_without_a_controller": Row(
        "pdb/web",
        (BARE, budget("web", "maxUnavailable: 30%")),
        "PodDisruptionBudget web: it cannot be computed, so no pod may be evicted: Pod bare has no controller.",
        "use minAvailable with a number",
    ),
    "two_budgets_of_one_pod": Row(
        "pdb/one",
        (deployment(replicas=2), budget("one", "minAvailable: 1"), budget("two", "maxUnavailable: 1")),
        "PodDisruptionBudget one: PodDisruptionBudget two selects the same pods, and a pod with several budgets cannot be evicted.",
        "leave each pod to one budget",
    ),
    "a_volume_that_does_not_fit": Row(
        "pvc/data",
        (volume(), claim(mode="ReadWriteMany", size="5Gi")),
        "PersistentVolumeClaim data: StorageClass manual does not exist, and no volume of that class fits: "
        "disk has 1Gi and ReadWriteOnce.",
    ),
    "a_volume_of_another_claim": Row(
        "pvc/data",
        (volume(", claimRef: {namespace: shop, name: other}"), claim(", volumeName: disk")),
        "PersistentVolumeClaim data: it asks for PersistentVolume disk, which belongs to claim shop/other.",
    ),
    "a_volume_that_does_not_exist": Row(
        "pvc/data",
        (claim(", volumeName: gone"),),
        "PersistentVolumeClaim data: it asks for PersistentVolume gone, which does not exist.",
    ),
    "a_daemonset_whose_only_node_is_tainted": Row(
        "ds/agent",
        (GPU_NODE, daemonset("nodeSelector: {role: gpu}")),
        "DaemonSet agent: the node that it selects has a taint that it does not tolerate (gpu:NoSchedule).",
        "toleration",
    ),
    "a_daemonset_whose_affinity_fits_no_node": Row(
        "ds/agent",
        (
            daemonset(
                "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
                "[{matchExpressions: [{key: gpu, operator: Exists}]}]}}}"
            ),
        ),
        "DaemonSet agent: no node of 3 matches its node affinity.",
        "label the nodes",
    ),
    "a_daemonset_that_is_updated_by_hand": Row(
        "ds/agent",
        (daemonset(strategy="OnDelete"), daemonset(image="agent:v2", strategy="OnDelete")),
        "DaemonSet agent: its update strategy is OnDelete, so pods keep the old template until they are deleted.",
    ),
    "a_parallel_statefulset_that_is_updated_by_hand": Row(
        "sts/db",
        (
            statefulset(podManagementPolicy="Parallel", updateStrategy={"type": "OnDelete"}),
            statefulset("db:v2", podManagementPolicy="Parallel", updateStrategy={"type": "OnDelete"}),
        ),
        "StatefulSet db: its update strategy is OnDelete, so pods keep the old template until they are deleted.",
    ),
    "a_job_of_another_controller": Row(
        "job/task",
        (job("managedBy: example.com/queue"),),
        "Job task: it is left to example.com/queue (spec.managedBy), and job-controller does nothing about it.",
    ),
    "the_indexes_that_failed": Row(
        "job/task",
        (job("completionMode: Indexed, completions: 3, parallelism: 3, backoffLimitPerIndex: 0"),),
        "Job task: indexes 0-2 have failed (backoffLimitPerIndex 0).",
    ),
    "restarts_of_a_job_whose_pods_are_restarted": Row(
        "job/task",
        (job("backoffLimit: 1").replace("Never", "OnFailure"),),
        "Job task: it has given up after its containers were restarted (restartPolicy OnFailure, backoffLimit 1).",
        "restartPolicy: Never",
    ),
    "a_container_that_ends_without_an_error": Row(
        "pod/bare",
        (BARE.replace("'web:v1'", "'web:v1', command: [sh, -c, 'exit 0']"),),
        r"Pod bare: container main keeps ending with exit code 0 \(CrashLoopBackOff\).*",
        "or use a Job",
    ),
    "a_daemonset_without_room": Row(
        "ds/agent",
        (daemonset().replace('"agent:v1"', '"agent:v1", resources: {requests: {cpu: 999}}'),),
        r"Pod agent-.*: no node of 3 fits: 1 has too little cpu, 2 do not match its nodeSelector or node affinity\.",
    ),
    "a_claim_whose_first_pod_cannot_be_scheduled": Row(
        "pvc/data",
        (
            "{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: manual}, provisioner: example.com/csi, "
            "volumeBindingMode: WaitForFirstConsumer}",
            claim(),
            BARE.replace(
                "spec: {",
                "spec: {nodeSelector: {disk: ssd}, volumes: [{name: data, persistentVolumeClaim: {claimName: data}}], ",
            ),
        ),
        "Pod bare: no node of 3 fits: 3 do not match its nodeSelector or node affinity.",
    ),
    "a_schedule_that_never_comes": Row(
        "cronjob/nightly",
        (cronjob("0 0 31 2 *"),),
        "CronJob nightly: its schedule '0 0 31 2 *' has no time in the next five years.",
        "correct spec.schedule",
    ),
    "a_service_without_a_selector": Row(
        "svc/web",
        (SERVICE % "ports: [{port: 80}]",),
        "Service web: it has no selector, and no EndpointSlice names endpoints of it.",
        "create an EndpointSlice",
    ),
    "a_load_balancer_of_a_class": Row(
        "svc/web",
        (
            deployment(),
            SERVICE
            % "type: LoadBalancer, loadBalancerClass: example.com/lb, selector: {app: web}, ports: [{port: 80}]",
        ),
        "Service web: no controller of loadBalancerClass example.com/lb has picked it up, so it gets no external address.",
    ),
    "an_ingress_class_that_does_not_exist": Row(
        "ing/web",
        (deployment(), SERVICE % "selector: {app: web}, ports: [{port: 80}]", INGRESS),
        "Ingress web: IngressClass fast does not exist, so no ingress controller serves it.",
        "kubectl get ingressclasses",
    ),
}


def pattern(words: str) -> str:
    return words if ".*" in words else re.escape(words).replace("web\\-…", r"web-\w+(-\w+)?( and \d+ more)?")


@pytest.mark.parametrize("name", ROWS)
def test_the_first_sentence_names_the_cause(name: str) -> None:
    row = ROWS[name]
    with staged(*row.stages, dra=row.dra) as cluster:
        told = why(cluster, row.subject)
    assert re.fullmatch(pattern(row.first), told.first), text(told)
    assert not told.well
    assert row.advice in told.findings[0].remedy, text(told)
    assert told.findings[0].controller


def test_a_namespace_that_waits_for_a_pod_names_what_holds_the_pod() -> None:
    """While there are pods, the namespace-controller leaves the conditions of the namespace as they are."""
    held = BARE.replace("name: bare,", "name: bare, finalizers: [example.com/hold],", 1)
    with staged(held) as cluster:
        cluster.run(cluster.client.delete("namespaces", "", NAMESPACE))
        cluster.advance(seconds=120)
        told = why(cluster, f"ns/{NAMESPACE}")
    assert "waits for the finalizer example.com/hold" in told.first, text(told)
    assert told.findings[0].subject.kind == "Pod"


def test_a_namespace_whose_content_may_not_be_deleted_names_the_refusal() -> None:
    policy = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: keep}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [DELETE], resources: [configmaps]}]
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: shop}}
  validations: [{expression: "false", message: "it is kept"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: keep}
spec: {policyName: keep, validationActions: [Deny]}
"""
    with staged(policy) as cluster:
        cluster.run(cluster.client.delete("namespaces", "", NAMESPACE))
        cluster.advance(seconds=120)
        told = why(cluster, f"ns/{NAMESPACE}")
    assert "its content cannot be deleted: " in told.first, text(told)
    assert "ValidatingAdmissionPolicy 'keep' with binding 'keep' denied request: it is kept" in told.first


def test_a_statefulset_without_its_service_is_well_and_told_of_it() -> None:
    with staged(statefulset()) as cluster:
        told = why(cluster, "sts/db")
    assert told.well
    assert "Service db, which its serviceName names, does not exist, so its pods have no DNS names" in text(
        told
    )


def test_a_definition_that_cannot_go_names_the_object_that_holds_it() -> None:
    definition = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {kind: Widget, plural: widgets, singular: widget}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
"""
    held = "{apiVersion: example.com/v1, kind: Widget, metadata: {name: one, finalizers: [example.com/hold]}}"
    with staged(definition, held) as cluster:
        cluster.run(
            cluster.client.delete("customresourcedefinitions.apiextensions.k8s.io", "", "widgets.example.com")
        )
        cluster.advance(seconds=120)
        told = why(cluster, "crd/widgets.example.com")
    assert told.findings[0].subject == ("Widget", NAMESPACE, "one"), text(told)
    assert "waits for the finalizer example.com/hold" in told.first
    assert "customresourcecleanup" in told.findings[1].cause
    assert told.findings[1].controller == "kube-apiserver"


def test_a_cordoned_node_whose_pods_have_two_budgets_says_so() -> None:
    with staged(
        deployment(replicas=1), budget("one", "minAvailable: 0"), budget("two", "maxUnavailable: 1")
    ) as cluster:
        (pod,) = cluster.list("Pod", NAMESPACE)
        cluster.node(pod.spec.nodeName).cordon()
        told = why(cluster, f"node/{pod.spec.nodeName}")
    assert told.first == (
        f"Node {pod.spec.nodeName}: it is cordoned, but several PodDisruptionBudgets (one, two) select its pod "
        f"{pod.metadata.name}, and a pod with several budgets cannot be evicted."
    ), text(told)


def test_a_lost_node_is_the_cause_and_not_the_pods_below_the_partition() -> None:
    partition = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    with staged(statefulset(), statefulset("db:v2", updateStrategy=partition)) as cluster:
        node = cluster.get("Pod", "db-0", NAMESPACE).spec.nodeName
        cluster.node(node).fail()
        cluster.advance(minutes=3)
        told = why(cluster, "sts/db")
    assert told.first.startswith(f"Node {node}: its kubelet has not reported"), text(told)


def test_a_volume_does_not_go_before_its_claim() -> None:
    with staged(volume(), claim()) as cluster:
        cluster.run(cluster.client.delete("persistentvolumes", "", "disk"))
        told = why(cluster, "pv/disk")
    assert told.first == (
        "PersistentVolume disk: it is deleted, but claim shop/data is still bound to it (finalizer kubernetes.io/pv-protection)."
    ), text(told)


def test_a_volume_that_was_released_is_named_to_the_next_claim() -> None:
    retained = ", persistentVolumeReclaimPolicy: Retain"
    with staged(volume(retained), claim()) as cluster:
        cluster.delete("PersistentVolumeClaim", "data", NAMESPACE)
        cluster.advance(seconds=20)
        cluster.apply(yaml.safe_load(claim()), NAMESPACE)
        cluster.advance(seconds=60)
        told = why(cluster, "pvc/data")
    assert told.first == (
        "PersistentVolumeClaim data: StorageClass manual does not exist, and no volume of that class fits: "
        "disk is kept for its deleted claim shop/data."
    ), text(told)


def test_a_service_that_only_renames_another_is_well() -> None:
    with staged(SERVICE % "type: ExternalName, externalName: db.example.com") as cluster:
        told = why(cluster, "svc/web")
    assert told.well
    assert told.first == "Service shop/web wants the name db.example.com: it exists."


def test_a_quota_tells_what_is_used_of_it() -> None:
    with staged(quota("pods: 1"), deployment(replicas=2)) as cluster:
        told = why(cluster, "quota/tight")
    assert told.first == "ResourceQuota shop/tight wants at most pods 1: pods 1 used."
    assert "ResourceQuota tight: pods is used up (1 of 1)." in text(told)


def test_a_claim_for_extended_resources_is_used_by_its_pod() -> None:
    mapping = {"containerName": "main", "resourceName": "example.com/gpu", "requestName": "gpu"}
    with staged(BARE, device_claim("simulated"), dra=True) as cluster:
        status = {"extendedResourceClaimStatus": {"resourceClaimName": "gpu", "requestMappings": [mapping]}}
        cluster.patch("pod", "bare", {"status": status}, subresource="status", namespace=NAMESPACE)
        told = why(cluster, "resourceclaim/gpu")
    assert "not allocated, used by 1 pod" in text(told)


GANG = """
apiVersion: scheduling.k8s.io/v1alpha2
kind: PodGroup
metadata: {name: gang}
spec: {schedulingPolicy: {basic: {}}, resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]}
"""


@pytest.mark.parametrize(
    ("stages", "cause", "remedy"),
    [
        (
            (GANG,),
            "a ResourceClaim that it uses cannot be created: PodGroupResourceClaim gpu: resource claim template "
            '"gpu": resourceclaimtemplate.resource.k8s.io "gpu" not found',
            "create ResourceClaimTemplate gpu, or correct its name",
        ),
        (
            (device_template(),),
            "the ResourceClaim that it uses has not been made from ResourceClaimTemplate gpu",
            "see whether PodGroup gang exists: kubectl describe podgroup gang -n shop",
        ),
    ],
)
def test_a_pod_waits_for_the_claim_of_its_group(stages: tuple[str, ...], cause: str, remedy: str) -> None:
    gates = {"GenericWorkload": True, "DRAWorkloadResourceClaims": True}
    member = deployment(f"{TEMPLATE}, schedulingGroup: {{podGroupName: gang}}")
    with staged(*stages, member, dra=True, gates=gates) as cluster:
        found = why(cluster, "deploy/web").findings[0]
    assert (found.cause, found.remedy) == (cause, remedy)


def test_a_pod_that_comes_after_the_deletion_of_its_claim_says_so() -> None:
    mounts = "spec: {volumes: [{name: data, persistentVolumeClaim: {claimName: data}}], "
    first = BARE.replace("spec: {", mounts)
    with staged(volume(), claim(), first) as cluster:
        cluster.run(cluster.client.delete("persistentvolumeclaims", NAMESPACE, "data"))
        cluster.apply(yaml.safe_load(first.replace("bare", "late")), NAMESPACE)
        cluster.advance(seconds=20)
        told = why(cluster, "pod/late")
    assert told.first == "Pod late: it mounts PersistentVolumeClaim data, which is being deleted.", text(told)


def csi_claim(error: str = "") -> str:
    """A claim of the simulated CSI driver; with an annotation that makes an operation fail."""
    spec = "{storageClassName: csi-sim, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}"
    meta = f"{{name: data, annotations: {{{error}}}}}"
    return f"{{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {meta}, spec: {spec}}}"


USER = BARE.replace("spec: {", "spec: {volumes: [{name: data, persistentVolumeClaim: {claimName: data}}], ")


@pytest.mark.parametrize("subject", ["pod/bare", "pvc/data"])
def test_a_volume_that_cannot_be_provisioned_is_the_cause_and_not_the_scheduler(subject: str) -> None:
    claimed = csi_claim("sim.steersman.dev/provision-error: the array is full")
    with staged(claimed, USER, csi=True) as cluster:
        told = why(cluster, subject)
    assert told.first == (
        "PersistentVolumeClaim data: csi.sim.steersman.dev of StorageClass csi-sim cannot provision a volume: failed to "
        'provision volume with StorageClass "csi-sim": the array is full.'
    ), text(told)
    assert "scheduler has looked" not in text(told)
    assert "until a pod that uses the claim is scheduled" not in text(told)


def test_a_claim_whose_expansion_fails_is_not_as_it_should_be() -> None:
    with staged(csi_claim("sim.steersman.dev/expand-error: the array is busy"), USER, csi=True) as cluster:
        larger = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
        cluster.patch("PersistentVolumeClaim", "data", larger, NAMESPACE)
        cluster.advance(seconds=20)
        told = why(cluster, "pvc/data")
        patch = {"metadata": {"annotations": {"sim.steersman.dev/expand-error": None}}}
        cluster.patch("PersistentVolumeClaim", "data", patch, NAMESPACE)
        cluster.advance(minutes=10)
        later = why(cluster, "pvc/data")
    assert told.first.startswith(
        "PersistentVolumeClaim data: its volume cannot be expanded from 1Gi to 2Gi: resize volume"
    ), text(told)
    assert told.first.endswith("failed: the array is busy.")
    assert "its volume is larger already" in later.first, text(later)


def test_a_volume_that_cannot_be_deleted_is_not_said_to_be_kept() -> None:
    with staged(csi_claim(), USER, csi=True) as cluster:
        (volume,) = cluster.list("PersistentVolume")
        patch = {"metadata": {"annotations": {"sim.steersman.dev/delete-error": "no answer"}}}
        cluster.patch("PersistentVolume", volume.metadata.name, patch)
        cluster.delete("Pod", "bare", NAMESPACE)
        cluster.delete("PersistentVolumeClaim", "data", NAMESPACE)
        cluster.advance(seconds=30)
        told = why(cluster, f"pv/{volume.metadata.name}")
    assert told.first == (
        f"PersistentVolume {volume.metadata.name}: its claim shop/data is deleted, and it cannot be deleted: no answer."
    ), text(told)
    assert told.findings[0].controller == "csi.sim.steersman.dev"
