"""Stuck situations as people ask about them, to be set up on any cluster: objects, what is done to them, and the answer.

Each names where it comes from: a repository and number, or the title of a page. ``{ns}`` in a text is the namespace, which is
the test's own, and ``{node}`` a node that it may break.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from steersman.api.scheme import Kind
from steersman.client.api import Api
from steersman.explain.collect import KINDS_BY_NAME

Document: TypeAlias = dict[str, Any]
SIM = "sim.steersman.dev/"


def _kind(group: str, version: str, name: str, plural: str, namespaced: bool = True) -> Kind[dict[str, Any]]:
    return Kind(group, version, name, plural, namespaced, dict)


KINDS = {
    **KINDS_BY_NAME,
    "ConfigMap": _kind("", "v1", "ConfigMap", "configmaps"),
    "LimitRange": _kind("", "v1", "LimitRange", "limitranges"),
}


class Place(NamedTuple):
    """Where a situation is set up."""

    api: Api
    namespace: str
    node: str
    """The name for a node of the situation's own."""
    wait: Callable[[str, str, Callable[[Document], bool]], Awaitable[None]]
    """Waits until the object of a kind and name satisfies something."""

    async def create(self, *documents: Document) -> None:
        for document in documents:
            kind = KINDS[document["kind"]]
            await self.api.create(kind, self.namespace if kind.namespaced else "", document)

    async def patch(self, kind: str, name: str, body: Mapping[str, Any]) -> None:
        found = KINDS[kind]
        await self.api.patch(
            found,
            self.namespace if found.namespaced else "",
            name,
            body,
            content_type="application/merge-patch+json",
        )

    async def delete(self, kind: str, name: str) -> None:
        found = KINDS[kind]
        await self.api.delete(found, self.namespace if found.namespaced else "", name)


Stage: TypeAlias = Callable[[Place], Awaitable[None]]


class Stuck(NamedTuple):
    """A situation."""

    name: str
    question: str
    """As people ask it."""
    source: str
    subject: str
    """What to ask about: ``deployment/web``."""
    stage: Stage
    answer: str
    """A regular expression of the first sentence, all of it."""
    seconds: float = 30.0
    """How long to wait in a simulated cluster."""
    outside: bool = True
    """Whether a cluster that another manager steers gets into it, and shows it from outside."""


STUCK: list[Stuck] = []


def stuck(
    question: str, source: str, subject: str, answer: str, *, seconds: float = 30.0, outside: bool = True
) -> Callable[[Stage], Stage]:
    """Enter a situation; its name is the function's."""

    def enter(stage: Stage) -> Stage:
        name = getattr(stage, "__name__", "")
        STUCK.append(Stuck(name, question, source, subject, stage, answer, seconds, outside))
        return stage

    return enter


# -- objects ----------------------------------------------------------------------------------


def template(
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    *,
    container: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Document:
    """A pod template with one container."""
    main = {"name": "main", "image": "app:1", **(container or {})}
    meta: Document = {"labels": dict(labels or {"app": "web"})}
    if annotations:
        meta["annotations"] = dict(annotations)
    return {"metadata": meta, "spec": {"containers": [main], "automountServiceAccountToken": False, **spec}}


def deployment(pod: Document | None = None, replicas: int = 1, **spec: Any) -> Document:
    """A Deployment called web."""
    pod = pod or template()
    selector = {"matchLabels": pod["metadata"]["labels"]}
    body = {"replicas": replicas, "selector": selector, "template": pod, **spec}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": body}


def statefulset(pod: Document | None = None, replicas: int = 2) -> Document:
    """A StatefulSet called db."""
    pod = pod or template({"app": "db"})
    selector = {"matchLabels": pod["metadata"]["labels"]}
    body = {"replicas": replicas, "serviceName": "db", "selector": selector, "template": pod}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": body}


def job(name: str = "task", command: tuple[str, ...] = ("sleep", "infinity"), **spec: Any) -> Document:
    pod = template({"job": name}, container={"command": list(command)}, restartPolicy="Never")
    body = {"template": pod, **spec}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": body}


def claim(name: str = "data", class_: str | None = "fast", **meta: Any) -> Document:
    spec: Document = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    if class_ is not None:
        spec["storageClassName"] = class_
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, **meta},
        "spec": spec,
    }


def storage_class(name: str, mode: str, provisioner: str = "kubernetes.io/no-provisioner") -> Document:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": mode,
    }


def service(**spec: Any) -> Document:
    body = {"selector": {"app": "web"}, "ports": [{"port": 80}], **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": body}


def quota(name: str, **hard: str) -> Document:
    limits = {key.replace("_", "."): value for key, value in hard.items()}
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name},
        "spec": {"hard": limits},
    }


MOUNTS = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]


def node(name: str, **more: Any) -> Document:
    """A node without a kubelet."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": more,
    }


# -- refused pods -----------------------------------------------------------------------------


async def _quota(place: Place, *quotas: Document) -> None:
    await place.create(*quotas)
    for each in quotas:
        # Pods are counted from then on.
        await place.wait(
            "ResourceQuota", each["metadata"]["name"], lambda found: bool(found.get("status", {}).get("hard"))
        )


@stuck(
    "Why does my Deployment update only one of three replicas?",
    "ministryofjustice/cloud-platform#590",
    "deployment/web",
    r"ReplicaSet web-\w+: ResourceQuota small is used up \(pods=1 used of pods=1\), so no more pods may be created\.",
)
async def quota_used_up(place: Place) -> None:
    await _quota(place, quota("small", pods="1"))
    await place.create(deployment(replicas=3))


@stuck(
    "Why are there no pods of my Deployment, and no error either?",
    "kubernetes/kubernetes#96634",
    "deployment/web",
    r"ReplicaSet web-\w+: ResourceQuota compute demands that every pod sets requests\.cpu, and these do not\.",
)
async def quota_demands_requests(place: Place) -> None:
    await _quota(place, quota("compute", requests_cpu="4"))
    await place.create(deployment())


@stuck(
    "Why are the pods of my Deployment forbidden by a LimitRange?",
    "harn3ss/open-infra#9; zalando-incubator/kubernetes-on-aws#278",
    "deployment/web",
    r"ReplicaSet web-\w+: a LimitRange of the namespace forbids these pods: maximum cpu usage per Container is 100m, but limit is 1\.",
)
async def limit_range(place: Place) -> None:
    limit = {"type": "Container", "max": {"cpu": "100m"}}
    await place.create(
        {
            "apiVersion": "v1",
            "kind": "LimitRange",
            "metadata": {"name": "small"},
            "spec": {"limits": [limit]},
        },
        deployment(template(container={"resources": {"limits": {"cpu": "1"}}})),
    )


@stuck(
    "Why is my Deployment at 0/1 after the namespace was hardened?",
    "kubernetes/kubernetes#125507; SREGym/SREGym#887",
    "deployment/web",
    r"ReplicaSet web-\w+: Pod Security restricted:latest forbids these pods: allowPrivilegeEscalation != false .*\.",
)
async def pod_security(place: Place) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    await place.patch("Namespace", place.namespace, {"metadata": {"labels": labels}})
    await place.create(deployment())


@stuck(
    "Why does the ReplicaSet say that my service account is not found?",
    "kubesphere/ks-installer#1920; giantswarm/kube-stresscheck#7",
    "deployment/web",
    r"ReplicaSet web-\w+: ServiceAccount robot does not exist, and the pods name it\.",
)
async def service_account_missing(place: Place) -> None:
    await place.create(deployment(template(serviceAccountName="robot")))


# -- scheduling -------------------------------------------------------------------------------


@stuck(
    "Why is my pod Pending: 0/3 nodes are available, Insufficient cpu?",
    "Kubernetes Error Guide: '0/3 nodes are available: Insufficient cpu' (devopsaitoolkit.com)",
    "deployment/web",
    r"Pod web-\w+-\w+: no node of \d+ fits: .*\d+ ha(ve|s) too little cpu.*\.",
)
async def insufficient_cpu(place: Place) -> None:
    await place.create(deployment(template(container={"resources": {"requests": {"cpu": "1000"}}})))


@stuck(
    "Why is my pod Pending: node(s) had untolerated taint?",
    "kubernetes/kubernetes#116133; kubernetes/kubernetes#127380",
    "deployment/web",
    r"Pod web-\w+-\w+: no node of \d+ fits: .*\d+ ha(ve|s) a taint that the pod does not tolerate \(.*dedicated=gpu:NoSchedule.*\).*\.",
)
async def untolerated_taint(place: Place) -> None:
    taint = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}
    await place.create(node(place.node, taints=[taint]))
    await place.create(deployment(template(nodeSelector={"kubernetes.io/hostname": place.node})))


@stuck(
    "Why is my pod Pending although all nodes are idle?",
    "Why Is Your Kubernetes Pod Stuck in Pending? (koti.dev)",
    "deployment/web",
    r"Pod web-\w+-\w+: no node of \d+ fits: .*\d+ do(es)? not match its nodeSelector or node affinity.*\.",
)
async def node_selector(place: Place) -> None:
    await place.create(deployment(template(nodeSelector={"disktype": "ssd"})))


@stuck(
    "Why is my pod SchedulingGated?",
    "keptn/lifecycle-toolkit#3296",
    "deployment/web",
    r"Pod web-\w+-\w+: held back by the scheduling gate example\.com/capacity\.",
)
async def scheduling_gate(place: Place) -> None:
    await place.create(deployment(template(schedulingGates=[{"name": "example.com/capacity"}])))


# -- containers -------------------------------------------------------------------------------


@stuck(
    "Why is my pod in ImagePullBackOff?",
    "Pod Not Starting: Pending, CrashLoopBackOff, ImagePullBackOff (mikepietsch.com)",
    "deployment/web",
    r"Pod web-\w+-\w+ and 1 more: the image app:typo of container main cannot be pulled \((ErrImagePull|ImagePullBackOff)\).*\.",
    seconds=60,
)
async def image_never_comes(place: Place) -> None:
    pod = template(annotations={SIM + "never-ready": "true"}, container={"image": "app:typo"})
    await place.create(deployment(pod, replicas=2))


@stuck(
    "Why does my container restart again and again?",
    "GKE CrashLoopBackOff: Logs, Exit Codes, Causes, and Fixes (cloudwebschool.com)",
    "deployment/web",
    r"Pod web-\w+-\w+: container main keeps ending with exit code 1 \(CrashLoopBackOff\), \d+ restarts? so far\.",
    seconds=60,
)
async def crash_loop(place: Place) -> None:
    await place.create(deployment(template(container={"command": ["false"]})))


@stuck(
    "Why is my pod Running but 0/1 ready?",
    "Running but 0/1 READY (shivam2003.com/posts/debug-pod-failures)",
    "deployment/web",
    r"Pod web-\w+-\w+: container main runs but fails its readiness probe.*\.",
    seconds=60,
)
async def readiness_probe(place: Place) -> None:
    probe = {"readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}}}
    await place.create(deployment(template(annotations={SIM + "ready": "false"}, container=probe)))


@stuck(
    "Why is my pod stuck in Init:0/1?",
    "kubernetes/kubernetes#73347; orbstack/orbstack#1520",
    "deployment/web",
    r"Pod web-\w+-\w+: init container wait has been running for .+ and does not end \(0 of 1 done\)\.",
    seconds=60,
)
async def init_container(place: Place) -> None:
    waiting = {"name": "wait", "image": "app:1", "command": ["sleep", "infinity"]}
    await place.create(deployment(template(initContainers=[waiting])))


@stuck(
    "Why is my pod stuck in ContainerCreating?",
    "Consensys-Incorporated/quorum-kubernetes#240; deliveryhero/helm-charts#182",
    "deployment/web",
    r"Pod web-\w+-\w+: ConfigMap settings, which it mounts, does not exist\.",
    seconds=60,
)
async def config_map_missing(place: Place) -> None:
    volume = {"name": "settings", "configMap": {"name": "settings"}}
    mount = {"volumeMounts": [{"name": "settings", "mountPath": "/etc/settings"}]}
    await place.create(deployment(template(volumes=[volume], container=mount)))


# -- storage ----------------------------------------------------------------------------------


@stuck(
    "Why is my pod Pending: pod has unbound immediate PersistentVolumeClaims?",
    "brigadecore/brigade#293; hashicorp/consul-helm#237",
    "deployment/web",
    r"PersistentVolumeClaim data: StorageClass fast does not exist, and no volume of that class matches\.",
)
async def storage_class_missing(place: Place) -> None:
    await place.create(claim(), deployment(template(volumes=MOUNTS)))


@stuck(
    "Why does my claim stay Pending right after I created it?",
    "Kubernetes PV volumeBindingMode WaitForFirstConsumer: when and why (netdata.cloud)",
    "pvc/data",
    r"PersistentVolumeClaim data: StorageClass late-{ns} waits for the first pod that uses the claim \(WaitForFirstConsumer\), and there is none\.",
)
async def first_consumer(place: Place) -> None:
    name = f"late-{place.namespace}"
    await place.create(storage_class(name, "WaitForFirstConsumer"), claim(class_=name))


@stuck(
    "Why is no volume bound to my claim of a local StorageClass?",
    "jupyterhub/zero-to-jupyterhub-k8s#182",
    "pvc/data",
    r"PersistentVolumeClaim data: it needs a PersistentVolume of StorageClass local-{ns}, which provisions none with 1Gi and ReadWriteOnce: there is none\.",
)
async def no_volume(place: Place) -> None:
    name = f"local-{place.namespace}"
    await place.create(storage_class(name, "Immediate"), claim(class_=name))


@stuck(
    "Why is my pod Pending: persistentvolumeclaim not found?",
    "Storage Has Gravity: Debugging PVCs & AZ Lock-in (rack2cloud.com)",
    "deployment/web",
    r"Pod web-\w+-\w+: it mounts PersistentVolumeClaim data, which does not exist\.",
)
async def claim_missing(place: Place) -> None:
    await place.create(deployment(template(volumes=MOUNTS)))


@stuck(
    "Why is my claim stuck in Terminating?",
    "runwhen-contrib/runwhen-local#226; kubernetes/kubernetes#92598",
    "pvc/data",
    r"PersistentVolumeClaim data: it is deleted, but Pod reader still uses it \(finalizer kubernetes\.io/pvc-protection\)\.",
)
async def claim_in_use(place: Place) -> None:
    # A claim is in use from when its pod has a node.
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "reader"}}
    await place.create(claim(), node(place.node))
    await place.create({**pod, "spec": template(volumes=MOUNTS, nodeName=place.node)["spec"]})
    await place.wait("PersistentVolumeClaim", "data", lambda found: bool(found["metadata"].get("finalizers")))
    await place.delete("PersistentVolumeClaim", "data")


# -- deletion ---------------------------------------------------------------------------------


@stuck(
    "Why is an object not gone after I deleted it?",
    "arangodb/kube-arangodb#157; rgeraskin/remove-empty-ns-operator#5",
    "configmap/held",
    r"ConfigMap held: deleted .+ ago, and waits for the finalizer example\.com/hold, which the controller of example\.com has not removed\.",
)
async def finalizer(place: Place) -> None:
    meta = {"name": "held", "finalizers": ["example.com/hold"]}
    await place.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})
    await place.delete("ConfigMap", "held")


@stuck(
    "Why is my namespace stuck in Terminating?",
    "kubernetes/kubernetes#60807; kubernetes/kubernetes#73186",
    "namespace/{ns}",
    r"Namespace {ns}: deleted .+ ago, and objects in it wait for their finalizers, held by the controller of example\.com: example\.com/hold in 1 resource instances\.",
    seconds=60,
)
async def namespace_terminating(place: Place) -> None:
    meta = {"name": "held", "finalizers": ["example.com/hold"]}
    await place.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})
    await place.delete("Namespace", place.namespace)


@stuck(
    "Why is my pod stuck in Terminating after its node was lost?",
    "kubernetes/kubernetes#72226; kubernetes/kubernetes#80309",
    "pod/lost",
    r"Node {node}: its kubelet has (never reported|not reported.* \(\w+\))\.",
    seconds=120,
)
async def node_lost(place: Place) -> None:
    pod = template(nodeName=place.node, terminationGracePeriodSeconds=1)
    await place.create(node(place.node))
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "lost"}, "spec": pod["spec"]}
    await place.create(body)
    await place.delete("Pod", "lost")


@stuck(
    "Why is my node NotReady?",
    "kubernetes/kubernetes#48920",
    "node/{node}",
    r"Node {node}: its kubelet has (never reported|not reported.* \(\w+\))\.",
    seconds=120,
)
async def node_silent(place: Place) -> None:
    await place.create(node(place.node))


# -- rollouts ---------------------------------------------------------------------------------


@stuck(
    "Why is my new image not rolled out?",
    "How to Pause and Resume Kubernetes Deployments (oneuptime.com)",
    "deployment/web",
    r"Deployment web: its rollout is paused, so changes of the pod template are not rolled out\.",
)
async def paused(place: Place) -> None:
    await place.create(deployment())
    await place.wait("Deployment", "web", lambda found: found.get("status", {}).get("readyReplicas") == 1)
    new = [{"name": "main", "image": "app:2"}]
    body = {"spec": {"paused": True, "template": {"spec": {"containers": new}}}}
    await place.patch("Deployment", "web", body)


@stuck(
    "Why does my StatefulSet have one pod and not two?",
    "kubernetes/kubernetes#60164",
    "statefulset/db",
    r"Pod db-0: container main runs but does not report ready\.",
    seconds=60,
)
async def ordered_pods(place: Place) -> None:
    await place.create(statefulset(template({"app": "db"}, {SIM + "ready": "false"})))


@stuck(
    "Why is my corrected StatefulSet not rolled out?",
    "kubernetes/kubernetes#67250; kubernetes/kubernetes#141095",
    "statefulset/db",
    r"StatefulSet db: db-0 has an older template and is not ready, and the update waits until it is\.",
    seconds=60,
)
async def broken_revision(place: Place) -> None:
    broken = template({"app": "db"}, {SIM + "never-ready": "true"}, container={"image": "app:typo"})
    await place.create(statefulset(broken))
    await place.wait("Pod", "db-0", lambda found: bool(found.get("status", {}).get("containerStatuses")))
    corrected = template({"app": "db"}, {SIM + "never-ready": "false"})
    await place.patch("StatefulSet", "db", {"spec": {"template": corrected}})


@stuck(
    "Why does my DaemonSet have 0 desired pods?",
    "kubernetes/kubernetes#51785; kubernetes/kubernetes#72017",
    "daemonset/agent",
    r"DaemonSet agent: no node of \d+ has the labels of its nodeSelector \(accelerator=gpu\)\.",
)
async def daemonset_without_nodes(place: Place) -> None:
    pod = template({"app": "agent"}, nodeSelector={"accelerator": "gpu"})
    spec = {"selector": {"matchLabels": {"app": "agent"}}, "template": pod}
    await place.create(
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent"}, "spec": spec}
    )


# -- jobs -------------------------------------------------------------------------------------


@stuck(
    "Why has my Job stopped without a result?",
    "pieterlange/kube-backup#71; kubernetes/kubernetes#92245",
    "job/task",
    r"Job task: it has given up after 1 failed pod \(backoffLimit 0\)\.",
)
async def job_failed(place: Place) -> None:
    await place.create(job(command=("false",), backoffLimit=0))


@stuck(
    "Why were the pods of my Job killed?",
    "kubernetes/website#14899",
    "job/task",
    r"Job task: it ran longer than its activeDeadlineSeconds of 2 s, and its pods were stopped\.",
)
async def job_deadline(place: Place) -> None:
    await place.create(job(activeDeadlineSeconds=2))


@stuck(
    "Why does my Job not start?",
    "k8sgpt-ai/k8sgpt#1673",
    "job/task",
    r"Job task: it is suspended \(spec\.suspend\), so it has no pods\.",
)
async def job_suspended(place: Place) -> None:
    await place.create(job(suspend=True))


@stuck(
    "Why does my CronJob skip its times?",
    "kubernetes/website#44796; kubernetes/kubernetes#58748",
    "cronjob/nightly",
    r"CronJob nightly: its Job nightly-\d+ still runs, and concurrencyPolicy Forbid skips the times until it ends\.",
    seconds=90,
)
async def cronjob_forbidden(place: Place) -> None:
    spec = {
        "schedule": "* * * * *",
        "concurrencyPolicy": "Forbid",
        "jobTemplate": {"spec": job()["spec"]},
    }
    await place.create(
        {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly"}, "spec": spec}
    )


# -- services, budgets, autoscalers -----------------------------------------------------------


@stuck(
    "Why does my Service have no endpoints?",
    "Incident Replay: Service Has No Endpoints (grokdatum.github.io)",
    "service/web",
    r"Service web: no pod in namespace {ns} has the labels of its selector \(app=api-svc\)\.",
)
async def service_selects_nothing(place: Place) -> None:
    await place.create(deployment(), service(selector={"app": "api-svc"}))


@stuck(
    "Why does my Service have no endpoints although its pods are ready?",
    "Services and Networking: debug checklist (blog-dl5.pages.dev)",
    "service/web",
    r"Service web: its targetPort http is the name of no port of its pods, so it has no endpoint for it\.",
)
async def target_port(place: Place) -> None:
    await place.create(deployment(), service(ports=[{"port": 80, "targetPort": "http"}]))


@stuck(
    "Why does kubectl drain hang?",
    "kubernetes/kubernetes#66811; kubernetes/kubectl#172",
    "pdb/web",
    r"PodDisruptionBudget web: it allows no eviction at all: minAvailable 1 with 1 pod\.",
    seconds=60,
)
async def disruption_budget(place: Place) -> None:
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    await place.create(
        {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"}, "spec": spec},
        deployment(),
    )
    await place.wait("Deployment", "web", lambda found: found.get("status", {}).get("readyReplicas") == 1)


def autoscaler() -> Document:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    metric = {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
    }
    spec = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 5, "metrics": [metric]}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": spec,
    }


@stuck(
    "Why does my autoscaler show <unknown>/50%?",
    "kubernetes/kubernetes#79365; kubernetes/kubernetes#78846",
    "hpa/web",
    r"HorizontalPodAutoscaler web: (containers have no request to compare the usage with|there are no metrics|its metrics cannot be read \(\w+\)): .+\.",
    seconds=90,
)
async def no_metrics(place: Place) -> None:
    await place.create(deployment(), autoscaler())
