"""The names of built-in kinds, as kubectl takes them. Written by tools/generate_typed_kinds.py."""

from typing import Literal, TypeAlias

ComponentStatus: TypeAlias = Literal["ComponentStatus", "componentstatuses", "componentstatus", "cs"]
ConfigMap: TypeAlias = Literal["ConfigMap", "configmaps", "configmap", "cm"]
Endpoints: TypeAlias = Literal["Endpoints", "endpoints", "ep"]
Event: TypeAlias = Literal["Event", "events", "event", "ev"]
LimitRange: TypeAlias = Literal["LimitRange", "limitranges", "limitrange", "limits"]
Namespace: TypeAlias = Literal["Namespace", "namespaces", "namespace", "ns"]
Node: TypeAlias = Literal["Node", "nodes", "node", "no"]
PersistentVolumeClaim: TypeAlias = Literal[
    "PersistentVolumeClaim", "persistentvolumeclaims", "persistentvolumeclaim", "pvc"
]
PersistentVolume: TypeAlias = Literal["PersistentVolume", "persistentvolumes", "persistentvolume", "pv"]
Pod: TypeAlias = Literal["Pod", "pods", "pod", "po"]
PodTemplate: TypeAlias = Literal["PodTemplate", "podtemplates", "podtemplate"]
ReplicationController: TypeAlias = Literal[
    "ReplicationController", "replicationcontrollers", "replicationcontroller", "rc"
]
ResourceQuota: TypeAlias = Literal["ResourceQuota", "resourcequotas", "resourcequota", "quota"]
Secret: TypeAlias = Literal["Secret", "secrets", "secret"]
ServiceAccount: TypeAlias = Literal["ServiceAccount", "serviceaccounts", "serviceaccount", "sa"]
Service: TypeAlias = Literal["Service", "services", "service", "svc"]
APIService: TypeAlias = Literal[
    "APIService", "apiservices", "apiservice", "apiservices.apiregistration.k8s.io"
]
ControllerRevision: TypeAlias = Literal[
    "ControllerRevision", "controllerrevisions", "controllerrevision", "controllerrevisions.apps"
]
DaemonSet: TypeAlias = Literal["DaemonSet", "daemonsets", "daemonset", "ds", "daemonsets.apps"]
Deployment: TypeAlias = Literal["Deployment", "deployments", "deployment", "deploy", "deployments.apps"]
ReplicaSet: TypeAlias = Literal["ReplicaSet", "replicasets", "replicaset", "rs", "replicasets.apps"]
StatefulSet: TypeAlias = Literal["StatefulSet", "statefulsets", "statefulset", "sts", "statefulsets.apps"]
EventV1Events: TypeAlias = Literal["events.events.k8s.io"]
HorizontalPodAutoscaler: TypeAlias = Literal[
    "HorizontalPodAutoscaler",
    "horizontalpodautoscalers",
    "horizontalpodautoscaler",
    "hpa",
    "horizontalpodautoscalers.autoscaling",
]
CronJob: TypeAlias = Literal["CronJob", "cronjobs", "cronjob", "cj", "cronjobs.batch"]
Job: TypeAlias = Literal["Job", "jobs", "job", "jobs.batch"]
CertificateSigningRequest: TypeAlias = Literal[
    "CertificateSigningRequest",
    "certificatesigningrequests",
    "certificatesigningrequest",
    "csr",
    "certificatesigningrequests.certificates.k8s.io",
]
IngressClass: TypeAlias = Literal[
    "IngressClass", "ingressclasses", "ingressclass", "ingressclasses.networking.k8s.io"
]
Ingress: TypeAlias = Literal["Ingress", "ingresses", "ingress", "ing", "ingresses.networking.k8s.io"]
IPAddress: TypeAlias = Literal["IPAddress", "ipaddresses", "ipaddress", "ip", "ipaddresses.networking.k8s.io"]
NetworkPolicy: TypeAlias = Literal[
    "NetworkPolicy", "networkpolicies", "networkpolicy", "netpol", "networkpolicies.networking.k8s.io"
]
ServiceCIDR: TypeAlias = Literal[
    "ServiceCIDR", "servicecidrs", "servicecidr", "servicecidrs.networking.k8s.io"
]
PodDisruptionBudget: TypeAlias = Literal[
    "PodDisruptionBudget", "poddisruptionbudgets", "poddisruptionbudget", "pdb", "poddisruptionbudgets.policy"
]
ClusterRoleBinding: TypeAlias = Literal[
    "ClusterRoleBinding",
    "clusterrolebindings",
    "clusterrolebinding",
    "clusterrolebindings.rbac.authorization.k8s.io",
]
ClusterRole: TypeAlias = Literal[
    "ClusterRole", "clusterroles", "clusterrole", "clusterroles.rbac.authorization.k8s.io"
]
RoleBinding: TypeAlias = Literal[
    "RoleBinding", "rolebindings", "rolebinding", "rolebindings.rbac.authorization.k8s.io"
]
Role: TypeAlias = Literal["Role", "roles", "role", "roles.rbac.authorization.k8s.io"]
CSIDriver: TypeAlias = Literal["CSIDriver", "csidrivers", "csidriver", "csidrivers.storage.k8s.io"]
CSINode: TypeAlias = Literal["CSINode", "csinodes", "csinode", "csinodes.storage.k8s.io"]
CSIStorageCapacity: TypeAlias = Literal[
    "CSIStorageCapacity", "csistoragecapacities", "csistoragecapacity", "csistoragecapacities.storage.k8s.io"
]
StorageClass: TypeAlias = Literal[
    "StorageClass", "storageclasses", "storageclass", "sc", "storageclasses.storage.k8s.io"
]
VolumeAttachment: TypeAlias = Literal[
    "VolumeAttachment", "volumeattachments", "volumeattachment", "volumeattachments.storage.k8s.io"
]
VolumeAttributesClass: TypeAlias = Literal[
    "VolumeAttributesClass",
    "volumeattributesclasses",
    "volumeattributesclass",
    "vac",
    "volumeattributesclasses.storage.k8s.io",
]
MutatingAdmissionPolicy: TypeAlias = Literal[
    "MutatingAdmissionPolicy",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicy",
    "mutatingadmissionpolicies.admissionregistration.k8s.io",
]
MutatingAdmissionPolicyBinding: TypeAlias = Literal[
    "MutatingAdmissionPolicyBinding",
    "mutatingadmissionpolicybindings",
    "mutatingadmissionpolicybinding",
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
]
MutatingWebhookConfiguration: TypeAlias = Literal[
    "MutatingWebhookConfiguration",
    "mutatingwebhookconfigurations",
    "mutatingwebhookconfiguration",
    "mutatingwebhookconfigurations.admissionregistration.k8s.io",
]
ValidatingAdmissionPolicy: TypeAlias = Literal[
    "ValidatingAdmissionPolicy",
    "validatingadmissionpolicies",
    "validatingadmissionpolicy",
    "validatingadmissionpolicies.admissionregistration.k8s.io",
]
ValidatingAdmissionPolicyBinding: TypeAlias = Literal[
    "ValidatingAdmissionPolicyBinding",
    "validatingadmissionpolicybindings",
    "validatingadmissionpolicybinding",
    "validatingadmissionpolicybindings.admissionregistration.k8s.io",
]
ValidatingWebhookConfiguration: TypeAlias = Literal[
    "ValidatingWebhookConfiguration",
    "validatingwebhookconfigurations",
    "validatingwebhookconfiguration",
    "validatingwebhookconfigurations.admissionregistration.k8s.io",
]
CustomResourceDefinition: TypeAlias = Literal[
    "CustomResourceDefinition",
    "customresourcedefinitions",
    "customresourcedefinition",
    "crd",
    "crds",
    "customresourcedefinitions.apiextensions.k8s.io",
]
PriorityClass: TypeAlias = Literal[
    "PriorityClass", "priorityclasses", "priorityclass", "pc", "priorityclasses.scheduling.k8s.io"
]
Lease: TypeAlias = Literal["Lease", "leases", "lease", "leases.coordination.k8s.io"]
RuntimeClass: TypeAlias = Literal[
    "RuntimeClass", "runtimeclasses", "runtimeclass", "runtimeclasses.node.k8s.io"
]
EndpointSlice: TypeAlias = Literal[
    "EndpointSlice", "endpointslices", "endpointslice", "endpointslices.discovery.k8s.io"
]
DeviceClass: TypeAlias = Literal[
    "DeviceClass", "deviceclasses", "deviceclass", "deviceclasses.resource.k8s.io"
]
ResourceClaim: TypeAlias = Literal[
    "ResourceClaim", "resourceclaims", "resourceclaim", "resourceclaims.resource.k8s.io"
]
ResourceClaimTemplate: TypeAlias = Literal[
    "ResourceClaimTemplate",
    "resourceclaimtemplates",
    "resourceclaimtemplate",
    "resourceclaimtemplates.resource.k8s.io",
]
ResourceSlice: TypeAlias = Literal[
    "ResourceSlice", "resourceslices", "resourceslice", "resourceslices.resource.k8s.io"
]
FlowSchema: TypeAlias = Literal[
    "FlowSchema", "flowschemas", "flowschema", "flowschemas.flowcontrol.apiserver.k8s.io"
]
PriorityLevelConfiguration: TypeAlias = Literal[
    "PriorityLevelConfiguration",
    "prioritylevelconfigurations",
    "prioritylevelconfiguration",
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
]
