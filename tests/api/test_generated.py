"""The generated structs: what goes in comes out, the views fit, the merge keys are there."""

from __future__ import annotations

import importlib
import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType, NoneType, UnionType
from typing import Any, Union, get_args, get_origin

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.api import kinds
from steersman.api.generated import Resource, gated_resources, load, resource, resources
from steersman.api.generated.merge import Field, Merge, atomic, field_type, fields_of, merge_of
from steersman.api.kinds import Struct
from steersman.api.kinds.storage import PERSISTENTVOLUMECLAIMS, PERSISTENTVOLUMES, VOLUMEATTRIBUTESCLASSES
from steersman.api.scheme import Key, Kind, encode, kind_of

ROOT = Path(__file__).parents[2]
KNOWN = (*resources(), *gated_resources())
MODULES = sorted({each.module for each in KNOWN} | {"meta_v1"})
META = {"name": "web", "namespace": "shop", "uid": "ad185eac", "creationTimestamp": "2026-11-15T20:34:29Z"}
CONTAINER = {
    "name": "web",
    "image": "web:1",
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "imagePullPolicy": "IfNotPresent",
}
TEMPLATE = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {
        "containers": [CONTAINER],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
    },
}

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        **META,
        "generateName": "web-",
        "resourceVersion": "564",
        "generation": 1,
        "labels": {"app": "web"},
        "annotations": {"note": ""},
        "deletionTimestamp": "2026-11-15T20:40:00Z",
        "deletionGracePeriodSeconds": 0,
        "finalizers": ["example.com/hold"],
        "ownerReferences": [
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": "web",
                "uid": "1",
                "controller": True,
                "blockOwnerDeletion": False,
            }
        ],
        "managedFields": [
            {
                "manager": "kubectl",
                "operation": "Update",
                "apiVersion": "v1",
                "time": "2026-11-15T20:34:29Z",
                "fieldsType": "FieldsV1",
                "fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:app": {}}}},
            }
        ],
    },
    "spec": {
        "volumes": [
            {"name": "data", "emptyDir": {}},
            {
                "name": "settings",
                "configMap": {
                    "name": "settings",
                    "items": [{"key": "a", "path": "b", "mode": 256}],
                    "defaultMode": 0,
                },
            },
            {"name": "host", "hostPath": {"path": "/var", "type": ""}},
            {
                "name": "labels",
                "downwardAPI": {
                    "items": [
                        {
                            "path": "cpu",
                            "resourceFieldRef": {
                                "containerName": "web",
                                "resource": "limits.cpu",
                                "divisor": "0",
                            },
                        }
                    ],
                    "defaultMode": 420,
                },
            },
            {"name": "nothing", "projected": {"sources": None, "defaultMode": 420}},
        ],
        "initContainers": [
            {
                **CONTAINER,
                "name": "proxy",
                "restartPolicy": "Always",
                "envFrom": [{"prefix": "A_", "configMapRef": {"name": "settings", "optional": False}}],
            }
        ],
        "containers": [
            {
                **CONTAINER,
                "args": ["-v"],
                "ports": [
                    {"name": "http", "containerPort": 80, "protocol": "TCP"},
                    {"containerPort": 53, "protocol": "UDP"},
                ],
                "env": [
                    {"name": "EMPTY"},
                    {
                        "name": "IP",
                        "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}},
                    },
                    {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
                ],
                "resources": {"limits": {"cpu": "1", "memory": "64Mi"}, "requests": {"cpu": "100m"}},
                "volumeMounts": [
                    {"name": "settings", "readOnly": True, "mountPath": "/etc/x", "subPath": "a"}
                ],
                "livenessProbe": {
                    "httpGet": {"path": "/", "port": "http", "scheme": "HTTP"},
                    "initialDelaySeconds": 3,
                    "timeoutSeconds": 1,
                    "periodSeconds": 10,
                    "successThreshold": 1,
                    "failureThreshold": 3,
                },
                "readinessProbe": {"tcpSocket": {"port": 80}, "terminationGracePeriodSeconds": 0},
                "startupProbe": {"grpc": {"port": 80, "service": ""}},
                "lifecycle": {"preStop": {"sleep": {"seconds": 0}}},
                "securityContext": {
                    "capabilities": {"drop": ["ALL"]},
                    "runAsUser": 0,
                    "runAsNonRoot": True,
                    "allowPrivilegeEscalation": False,
                },
            }
        ],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 0,
        "nodeSelector": {"disk": "ssd"},
        "nodeName": "node-1",
        "hostNetwork": True,
        "automountServiceAccountToken": False,
        "shareProcessNamespace": False,
        "securityContext": {"fsGroup": 0, "sysctls": [{"name": "kernel.shm_rmid_forced", "value": "0"}]},
        "imagePullSecrets": [{"name": "registry"}],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]
                }
            },
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 1,
                        "podAffinityTerm": {
                            "labelSelector": {"matchLabels": {"app": "web"}},
                            "topologyKey": "zone",
                            "namespaceSelector": {},
                        },
                    }
                ]
            },
        },
        "tolerations": [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}],
        "hostAliases": [{"ip": "1.2.3.4", "hostnames": ["a"]}],
        "priority": 0,
        "enableServiceLinks": False,
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 1}
        ],
        "overhead": {"cpu": "10m"},
    },
    "status": {
        "phase": "Running",
        "observedGeneration": 1,
        "conditions": [
            {
                "type": "Ready",
                "status": "False",
                "lastProbeTime": None,
                "lastTransitionTime": "2026-11-15T20:34:49Z",
                "reason": "ContainersNotReady",
            }
        ],
        "podIP": "10.0.0.1",
        "podIPs": [{"ip": "10.0.0.1"}],
        "startTime": "2026-11-15T20:34:29Z",
        "containerStatuses": [
            {
                "name": "web",
                "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                "lastState": {
                    "terminated": {
                        "exitCode": 0,
                        "startedAt": "2026-11-15T20:34:30Z",
                        "finishedAt": "2026-11-15T20:34:31Z",
                    }
                },
                "ready": False,
                "restartCount": 0,
                "image": "web:1",
                "imageID": "",
                "started": False,
            }
        ],
        "qosClass": "Burstable",
    },
}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": META,
    "spec": {
        "replicas": 0,
        "selector": {"matchLabels": {"app": "web"}},
        "template": TEMPLATE,
        "strategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": 0},
        },
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
    },
    "status": {},
}
STATEFULSET = {
    "apiVersion": "apps/v1",
    "kind": "StatefulSet",
    "metadata": META,
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "web"}},
        "template": TEMPLATE,
        "volumeClaimTemplates": [
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": "data"},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1Gi"}},
                    "storageClassName": "",
                    "volumeMode": "Filesystem",
                },
                "status": {"phase": "Pending"},
            }
        ],
        "serviceName": "",
        "podManagementPolicy": "OrderedReady",
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
    },
    "status": {"replicas": 0, "availableReplicas": 0},
}
JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": META,
    "spec": {
        "parallelism": 1,
        "completions": 0,
        "backoffLimit": 0,
        "podFailurePolicy": {"rules": None},
        "manualSelector": False,
        "template": TEMPLATE,
        "completionMode": "NonIndexed",
        "suspend": False,
        "ttlSecondsAfterFinished": 0,
    },
    "status": {
        "conditions": [
            {
                "type": "Complete",
                "status": "True",
                "lastProbeTime": "2026-11-15T20:34:29Z",
                "lastTransitionTime": None,
            }
        ],
        "ready": 0,
        "uncountedTerminatedPods": {},
    },
}
SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": META,
    "spec": {
        "ports": [
            {"protocol": "TCP", "port": 80, "targetPort": 0},
            {"protocol": "TCP", "port": 81, "targetPort": "http"},
        ],
        "selector": {"app": "web"},
        "clusterIP": "None",
        "clusterIPs": ["None"],
        "type": "ClusterIP",
        "sessionAffinity": "None",
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "internalTrafficPolicy": "Cluster",
    },
    "status": {"loadBalancer": {}},
}
AUTOSCALER = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": META,
    "spec": {
        "scaleTargetRef": {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"},
        "minReplicas": 0,
        "maxReplicas": 3,
        "metrics": [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
            },
            {
                "type": "Pods",
                "pods": {
                    "metric": {"name": "queue"},
                    "target": {"type": "AverageValue", "averageValue": "1500m"},
                },
            },
        ],
        "behavior": {
            "scaleDown": {
                "stabilizationWindowSeconds": 0,
                "selectPolicy": "Max",
                "policies": [{"type": "Pods", "value": 1, "periodSeconds": 15}],
            }
        },
    },
    "status": {"desiredReplicas": 0, "currentMetrics": None},
}
POLICY = {
    "apiVersion": "networking.k8s.io/v1",
    "kind": "NetworkPolicy",
    "metadata": META,
    "spec": {
        "podSelector": {},
        "ingress": [
            {},
            {
                "ports": [
                    {"protocol": "TCP", "port": "http"},
                    {"protocol": "TCP", "port": 80, "endPort": 90},
                ],
                "from": [
                    {"podSelector": {}},
                    {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}},
                ],
            },
        ],
        "policyTypes": ["Ingress"],
    },
}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": False,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "$schema": "x",
                        "properties": {
                            "count": {"type": "integer", "default": 0, "maximum": 10, "minimum": 0.5},
                            "either": {
                                "anyOf": [{"type": "integer"}, {"type": "string"}],
                                "not": {"enum": ["z", None, {"a": 1}]},
                                "x-kubernetes-int-or-string": True,
                            },
                            "list": {
                                "type": "array",
                                "items": {"type": "object", "required": ["a"]},
                                "x-kubernetes-list-map-keys": ["a"],
                                "x-kubernetes-list-type": "map",
                            },
                            "map": {"type": "object", "additionalProperties": {"type": "string"}},
                            "closed": {"type": "object", "additionalProperties": False},
                            "pair": {"type": "array", "items": [{"type": "string"}, {}]},
                            "needs": {"dependencies": {"a": ["b"], "c": {"type": "string"}}},
                            "free": {"x-kubernetes-preserve-unknown-fields": True, "nullable": True},
                        },
                    }
                },
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"},
                },
            }
        ],
        "conversion": {"strategy": "None"},
    },
    "status": {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": []},
}
EVENT = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": META,
    "involvedObject": {"apiVersion": "v1", "kind": "Pod", "namespace": "shop", "name": "web"},
    "reason": "Pulled",
    "source": {},
    "firstTimestamp": None,
    "lastTimestamp": None,
    "type": "Normal",
    "eventTime": "2026-11-15T20:34:29.123456Z",
    "reportingComponent": "",
    "reportingInstance": "",
}
SLICE = {
    "apiVersion": "discovery.k8s.io/v1",
    "kind": "EndpointSlice",
    "metadata": META,
    "addressType": "IPv4",
    "endpoints": None,
    "ports": None,
}
ROLE = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": META, "rules": None}
DEVICES = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "slice"},
    "spec": {
        "driver": "example.com",
        "nodeName": "node-1",
        "pool": {"name": "p", "generation": 0, "resourceSliceCount": 1},
        "devices": [
            {
                "name": "d",
                "attributes": {"a": {"bool": False}, "b": {"int": 0}, "c": {"string": ""}},
                "capacity": {"memory": {"value": "1Gi"}},
            }
        ],
    },
}
STATUS = {
    "apiVersion": "v1",
    "kind": "Status",
    "metadata": {},
    "status": "Failure",
    "message": 'pods "web" not found',
    "reason": "NotFound",
    "details": {"name": "web", "kind": "pods"},
    "code": 404,
}
SCALE = {
    "apiVersion": "autoscaling/v1",
    "kind": "Scale",
    "metadata": META,
    "spec": {},
    "status": {"replicas": 0, "selector": "app=web"},
}
DOCUMENTS: list[dict[str, Any]] = [
    *(POD, DEPLOYMENT, STATEFULSET, JOB, SERVICE, AUTOSCALER, POLICY, DEFINITION),
    *(EVENT, SLICE, ROLE, DEVICES, STATUS, SCALE),
]


def of(document: dict[str, Any]) -> Kind[Any]:
    group, _, version = document["apiVersion"].rpartition("/")
    return load(group, version, document["kind"])


def decode(document: dict[str, Any]) -> Any:
    return msgspec.json.decode(json.dumps(document), type=of(document).type)


def struct(module: str, name: str) -> type[Struct]:
    found: type[Struct] = getattr(importlib.import_module(f"steersman.api.generated.{module}"), name)
    return found


def structs() -> Iterator[type[Struct]]:
    """Every generated struct, once."""
    for module in MODULES:
        for value in vars(importlib.import_module(f"steersman.api.generated.{module}")).values():
            if isinstance(value, type) and issubclass(value, Struct) and value.__module__.endswith(module):
                yield value


# -- round trips --------------------------------------------------------------------------------


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document["kind"])
def test_what_a_server_sends_is_sent_back_as_it_was(document: dict[str, Any]) -> None:
    back = json.loads(encode(of(document), decode(document)))
    # As text, because to Python 1, 1.0 and True are equal.
    assert json.dumps(back, sort_keys=True) == json.dumps(document, sort_keys=True)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document["kind"])
def test_an_object_survives_the_wire(document: dict[str, Any]) -> None:
    obj = decode(document)
    assert msgspec.json.decode(encode(of(document), obj), type=type(obj)) == obj


@cache
def values(type_: Any, depth: int) -> st.SearchStrategy[Any]:
    """Values of a field's type; structs get a few of their fields."""
    origin, args = get_origin(type_), get_args(type_)
    if origin in (Union, UnionType):
        return st.one_of([values(arm, depth) for arm in args])
    if origin is tuple:
        return st.lists(values(args[0], depth - 1), max_size=2 if depth > 0 else 0).map(tuple)
    if origin is not None and issubclass(origin, Mapping):
        return st.dictionaries(st.sampled_from("ab"), values(args[1], depth - 1), max_size=2)
    if isinstance(type_, type) and issubclass(type_, Struct):
        return some(type_, depth - 1)
    return {
        str: st.sampled_from(["", "a", 'ü"']),
        int: st.sampled_from([0, 1, -1, 2**62]),
        bool: st.booleans(),
        float: st.sampled_from([0.5, 1.5]),
        NoneType: st.none(),
        datetime: st.datetimes(timezones=st.just(UTC)),
        Any: st.sampled_from([None, 0, "", [], {"a": [None, 1.5]}]),
    }[type_]


def some(type_: type[Struct], depth: int) -> st.SearchStrategy[Struct]:
    fields = list(fields_of(type_).values()) if depth > 0 else []

    @st.composite
    def make(draw: st.DrawFn) -> Struct:
        chosen: list[Field] = (
            draw(st.lists(st.sampled_from(fields), max_size=4, unique_by=lambda each: each.name))
            if fields
            else []
        )
        return type_(**{each.attribute: draw(values(each.type, depth)) for each in chosen})

    return make()


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_any_object_of_any_kind_survives_the_wire(data: st.DataObject) -> None:
    found = data.draw(st.sampled_from(KNOWN))
    kind = load(found.group, found.version, found.kind)
    obj = data.draw(some(kind.type, 5))
    first = encode(kind, obj)
    again = msgspec.json.decode(first, type=kind.type)
    assert again == obj
    assert encode(kind, again) == first


@pytest.mark.parametrize(
    ("module", "name", "document", "written"),
    [
        ("apps_v1", "ReplicaSetStatus", {}, {"replicas": 0}),
        ("apps_v1", "ReplicaSetStatus", {"replicas": 0, "readyReplicas": 0}, {"replicas": 0}),
        ("apps_v1", "DeploymentSpec", {"replicas": 0, "paused": False}, {"replicas": 0, "selector": None}),
        ("core_v1", "SecretKeySelector", {}, {"key": ""}),
        ("core_v1", "ResourceFieldSelector", {}, {"resource": "", "divisor": "0"}),
        ("core_v1", "HTTPGetAction", {}, {"port": 0}),
        ("core_v1", "NodeSelector", {}, {"nodeSelectorTerms": []}),
        ("core_v1", "HostPathVolumeSource", {"path": "/", "type": ""}, {"path": "/", "type": ""}),
        ("meta_v1", "ObjectMeta", {"generation": 0, "name": "", "finalizers": []}, {}),
        ("storage_v1", "CSINodeSpec", {}, {"drivers": None}),
        ("storage_v1", "CSINodeSpec", {"drivers": []}, {"drivers": []}),
    ],
)
def test_zero_and_null_are_written_where_the_api_writes_them(
    module: str, name: str, document: dict[str, Any], written: dict[str, Any]
) -> None:
    type_ = struct(module, name)
    encoded = json.loads(msgspec.json.encode(msgspec.convert(document, type_)))
    template_and_strategy = {"template", "strategy"}
    assert {key: value for key, value in encoded.items() if key not in template_and_strategy} == written


def test_every_struct_can_be_made_of_nothing_and_is_frozen_and_untracked() -> None:
    seen = list(structs())
    assert len(seen) > 480
    for each in seen:
        config = each.__struct_config__
        assert (config.frozen, config.gc, config.omit_defaults) == (True, False, True), each
        nothing = msgspec.json.decode(b"{}", type=each)
        assert nothing == each()
        assert msgspec.json.decode(msgspec.json.encode(nothing), type=each) == nothing


def test_names_python_cannot_have_are_bent_and_the_wire_keeps_them() -> None:
    policy = decode(POLICY)
    assert policy.spec.ingress[1].from_[1].ipBlock.except_ == ("10.1.0.0/16",)
    schema = decode(DEFINITION).spec.versions[0].schema.openAPIV3Schema
    assert schema.schema == "x"
    assert schema.properties["either"].xKubernetesIntOrString is True
    assert schema.properties["either"].not_.enum == ("z", None, {"a": 1})
    assert fields_of(struct("networking_v1", "NetworkPolicyIngressRule"))["from"].attribute == "from_"


# -- resources ----------------------------------------------------------------------------------


@pytest.mark.parametrize("found", KNOWN, ids=lambda found: f"{found.api_version}/{found.plural}")
def test_a_resource_loads_with_its_path_and_its_objects_know_their_kind(found: Resource) -> None:
    kind = load(found.group, found.version, found.kind)
    root = f"/apis/{found.api_version}" if found.group else f"/api/{found.version}"
    scope = "/namespaces/shop" if found.namespaced else ""
    assert kind.path("shop", "web") == f"{root}{scope}/{found.plural}/web"
    obj = msgspec.json.decode(b'{"metadata":{"name":"web","namespace":"shop"}}', type=kind.type)
    assert isinstance(obj, kinds.Object)
    assert obj.key == Key("shop", "web")
    assert kind_of(obj) is kind
    assert load(found.group, found.version, found.kind) is kind
    assert not {"apiVersion", "kind"} & fields_of(kind.type).keys()


def test_the_table_says_what_discovery_says() -> None:
    pods = resource("", "v1", "Pod")
    assert (pods.plural, pods.singular, pods.namespaced) == ("pods", "pod", True)
    assert (pods.short_names, pods.categories) == (("po",), ("all",))
    assert "deletecollection" in pods.verbs
    below = {each.name: each for each in pods.subresources}
    assert (below["eviction"].group, below["eviction"].kind) == ("policy", "Eviction")
    assert below["status"].verbs == ("get", "patch", "update")
    assert "deletecollection" not in resource("", "v1", "Namespace").verbs
    assert [each.version for each in resources() if each.group == "autoscaling"] == ["v2", "v1"]
    assert len({(each.group, each.version, each.plural) for each in resources()}) == len(resources()) == 68


def test_kinds_that_are_only_bodies_load_without_a_path() -> None:
    assert load("policy", "v1", "Eviction").plural == ""
    assert encode(load("autoscaling", "v1", "Scale"), decode(SCALE)).startswith(
        b'{"apiVersion":"autoscaling/v1","kind":"Scale"'
    )


def test_a_kind_that_is_not_served_is_a_lookup_error() -> None:
    with pytest.raises(LookupError, match="no resource Gadget in apps/v1"):
        load("apps", "v1", "Gadget")


def test_loading_a_full_struct_leaves_the_view_registered() -> None:
    assert load("", "v1", "Pod").type is not kinds.Pod
    assert kind_of(kinds.Pod()) is kinds.PODS


def test_no_module_is_imported_before_it_is_asked_for() -> None:
    code = (
        "import sys, steersman.api.kinds, steersman.api.generated as g; g.resources();"
        "print(*[m for m in sys.modules if m.startswith('steersman.api.generated.') and '_v' in m]);"
        "g.load('coordination.k8s.io', 'v1', 'Lease');"
        "print(*sorted(m.rpartition('.')[2] for m in sys.modules if '_v1' in m and 'generated' in m))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == ["", "coordination_v1 meta_v1"]


# -- views --------------------------------------------------------------------------------------


def views() -> list[Kind[Any]]:
    """The kinds of `steersman.api.kinds` that the server has."""
    served = {(each.group, each.version, each.kind) for each in resources()}
    families = [
        importlib.import_module(f"{kinds.__name__}.{each.name}") for each in iter_modules(kinds.__path__)
    ]
    found = dict.fromkeys(
        each for module in (kinds, *families) for each in vars(module).values() if isinstance(each, Kind)
    )
    return [each for each in found if (each.group, each.version, each.name) in served]


def accepts_none(type_: Any) -> bool:
    return type_ is Any or NoneType in get_args(type_)


def misfits(view: type[Struct], full: type[Struct], path: str, seen: set[tuple[type, type]]) -> Iterator[str]:
    """Where a full struct cannot stand in for a view."""
    if (view, full) in seen:
        return
    seen.add((view, full))
    whole = full()
    fields = fields_of(full)
    default = {info.name: info for info in msgspec.structs.fields(full)}
    for info in msgspec.structs.fields(view):
        here = f"{path}.{info.name}"
        if not hasattr(whole, info.name):
            yield f"{here}: the API has no such field"
            continue
        theirs = fields_of(view)[info.encode_name]
        if theirs.type is msgspec.Raw:
            continue  # opaque: a full struct stands there
        ours = fields.get(info.encode_name)
        if ours is None:
            continue  # another kind's field: reads as absent
        if theirs.struct and ours.struct:
            yield from misfits(theirs.struct, ours.struct, here, seen)
        if default[ours.attribute].default_factory is NoneType and not accepts_none(info.type):
            yield f"{here}: the API sends null here, and the view does not read it"
        if info.required or (theirs.struct and ours.struct and theirs.shape == ours.shape == "object"):
            continue
        mine = info.default if info.default is not msgspec.NODEFAULT else info.default_factory()
        other = getattr(whole, info.name)
        if mine != other or type(mine) is not type(other):
            yield f"{here}: absent reads as {mine!r} in the view, as {other!r} in full"


@pytest.mark.parametrize("kind", views(), ids=lambda kind: kind.type.__name__)
def test_a_full_struct_can_stand_in_for_a_view(kind: Kind[Any]) -> None:
    full = load(kind.group, kind.version, kind.name).type
    assert list(misfits(kind.type, full, kind.type.__name__, set())) == []


def missing(view: type[Struct], full: type[Struct], path: str) -> Iterator[str]:
    """The fields of a full struct that a view would lose."""
    for name, ours in fields_of(full).items():
        theirs = fields_of(view).get(name)
        here = f"{path}.{name}"
        if theirs is None:
            yield here
        elif theirs.struct and ours.struct:
            yield from missing(theirs.struct, ours.struct, here)


@pytest.mark.parametrize(
    "kind", [PERSISTENTVOLUMES, PERSISTENTVOLUMECLAIMS, VOLUMEATTRIBUTESCLASSES], ids=str
)
def test_a_view_that_is_put_back_whole_has_every_field(kind: Kind[Any]) -> None:
    full = load(kind.group, kind.version, kind.name).type
    # Managed fields that an update leaves out stay as they are; a server no longer sends selfLink.
    lost = {f"{kind.name}.metadata.{name}" for name in ("managedFields", "selfLink")}
    assert set(missing(kind.type, full, kind.name)) <= lost


def test_a_view_that_does_not_fit_is_found_out() -> None:
    class Spec(Struct, frozen=True):
        nodeName: str | None = None
        nodeNames: str = ""

    class Slice(Struct, frozen=True):
        endpoints: tuple[str, ...] = ()

    pod = list(misfits(Spec, struct("core_v1", "PodSpec"), "Spec", set()))
    assert pod == [
        "Spec.nodeName: absent reads as None in the view, as '' in full",
        "Spec.nodeNames: the API has no such field",
    ]
    assert len(list(misfits(Slice, struct("discovery_v1", "EndpointSlice"), "Slice", set()))) == 2


def test_every_condition_reads_like_the_view_of_conditions() -> None:
    conditions = [
        each for each in structs() if each.__name__.endswith("Condition") and hasattr(each(), "status")
    ]
    assert len(conditions) > 15
    for each in conditions:
        for name in kinds.Condition.__struct_fields__:
            assert getattr(each(), name) == getattr(kinds.Condition(), name), (each, name)


# -- merging ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "name", "field", "merge"),
    [
        ("core_v1", "PodSpec", "containers", Merge("merge", "name", "map", ("name",))),
        ("core_v1", "PodSpec", "volumes", Merge("merge,retainKeys", "name", "map", ("name",))),
        ("core_v1", "PodSpec", "tolerations", Merge(list_type="atomic")),
        ("core_v1", "PodSpec", "nodeSelector", Merge(map_type="atomic")),
        ("core_v1", "Container", "env", Merge("merge", "name", "map", ("name",))),
        (
            "core_v1",
            "Container",
            "ports",
            Merge(
                "merge",
                "containerPort",
                "map",
                ("containerPort", "protocol"),
                defaults=(("protocol", "TCP"),),
            ),
        ),
        ("meta_v1", "ObjectMeta", "ownerReferences", Merge("merge", "uid", "map", ("uid",))),
        ("meta_v1", "ObjectMeta", "finalizers", Merge("merge", list_type="set")),
        ("meta_v1", "ObjectMeta", "labels", None),
        ("apps_v1", "DeploymentSpec", "strategy", Merge("retainKeys")),
        ("apps_v1", "DeploymentSpec", "selector", Merge(map_type="atomic")),
        ("core_v1", "PersistentVolumeSpec", "claimRef", Merge(map_type="granular")),
        ("policy_v1", "PodDisruptionBudgetSpec", "selector", Merge("replace", map_type="atomic")),
        ("discovery_v1", "EndpointSlice", "endpoints", Merge(list_type="atomic")),
        ("core_v1", "PodSpec", "noSuchField", None),
    ],
)
def test_a_field_merges_as_upstream_says(module: str, name: str, field: str, merge: Merge | None) -> None:
    assert merge_of(struct(module, name), field) == merge


def test_a_strategy_reads_as_questions() -> None:
    volumes = merge_of(struct("core_v1", "PodSpec"), "volumes")
    tolerations = merge_of(struct("core_v1", "PodSpec"), "tolerations")
    assert volumes is not None
    assert tolerations is not None
    assert (volumes.merges, volumes.retains_keys) == (True, True)
    assert (tolerations.merges, tolerations.retains_keys) == (False, False)


def test_a_walk_finds_the_struct_below_a_field() -> None:
    spec = struct("core_v1", "PodSpec")
    container = struct("core_v1", "Container")
    assert field_type(spec, "containers") == tuple[container, ...]  # type: ignore[valid-type]
    assert field_type(spec, "terminationGracePeriodSeconds") is int
    assert (fields_of(spec)["containers"].shape, fields_of(spec)["containers"].struct) == ("list", container)
    assert fields_of(spec)["nodeSelector"].shape == "map"
    assert fields_of(spec)["nodeName"].shape == "value"
    assert fields_of(spec)["securityContext"].struct is struct("core_v1", "PodSecurityContext")
    devices = fields_of(struct("resource_v1", "Device"))["attributes"]
    assert (devices.shape, devices.struct) == ("map", struct("resource_v1", "DeviceAttribute"))
    with pytest.raises(LookupError):
        field_type(spec, "noSuchField")


def test_some_structs_have_one_owner_wherever_they_stand() -> None:
    assert atomic(struct("core_v1", "LocalObjectReference"))
    assert atomic(struct("meta_v1", "OwnerReference"))
    assert not atomic(struct("core_v1", "Container"))


# -- the generator ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    pytest.importorskip(
        "kubernetes_validate", reason="kubernetes-validate, a dev dependency, is not installed"
    )
    spec = importlib.util.spec_from_file_location("generate_api", ROOT / "tools" / "generate_api.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_generating_again_gives_the_same_bytes(generator: ModuleType, tmp_path: Path) -> None:
    swagger = tmp_path / "swagger.json"
    swagger.write_text(json.dumps({"definitions": generator.packaged_definitions()}), encoding="utf-8")
    files = generator.generate(generator.server_definitions(str(swagger)))
    assert sorted(files) == sorted([*(f"{module}.py" for module in MODULES), "table.py"])
    for name, text in files.items():
        assert (generator.PACKAGE / name).read_text(encoding="utf-8") == text, name


def test_a_fact_about_a_field_that_does_not_exist_is_refused(
    generator: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = {**generator.read_presence(), ("core_v1.PodSpec", "noSuchField"): "value"}
    monkeypatch.setattr(generator, "read_presence", lambda: facts)
    with pytest.raises(SystemExit, match="noSuchField"):
        generator.generate(generator.packaged_definitions())
