"""Facts about fields that their Python types do not hold: required, int64, base64 and enum fields.

They are those of Kubernetes 1.36, by module and struct of `steersman.api.generated`. A test compares the
resulting definitions with those of a real API server.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

_REQUIRED = """
admissionregistration_v1.AuditAnnotation key valueExpression
admissionregistration_v1.ExpressionWarning fieldRef warning
admissionregistration_v1.MatchCondition name expression
admissionregistration_v1.MutatingWebhook name clientConfig sideEffects admissionReviewVersions
admissionregistration_v1.Mutation patchType
admissionregistration_v1.ServiceReference namespace name
admissionregistration_v1.ValidatingAdmissionPolicyBinding spec
admissionregistration_v1.ValidatingAdmissionPolicyBindingSpec policyName validationActions
admissionregistration_v1.ValidatingWebhook name clientConfig sideEffects admissionReviewVersions
admissionregistration_v1.Validation expression
admissionregistration_v1.Variable name expression
apps_v1.ControllerRevision revision
apps_v1.DaemonSetCondition type status
apps_v1.DaemonSetSpec selector template
apps_v1.DaemonSetStatus currentNumberScheduled numberMisscheduled desiredNumberScheduled numberReady
apps_v1.DeploymentCondition type status
apps_v1.DeploymentSpec selector template
apps_v1.ReplicaSetCondition type status
apps_v1.ReplicaSetSpec selector
apps_v1.ReplicaSetStatus replicas
apps_v1.StatefulSetCondition type status
apps_v1.StatefulSetSpec selector template
apps_v1.StatefulSetStatus replicas
authentication_v1.TokenReview spec
authentication_v1.TokenReviewSpec token
authorization_v1.LocalSubjectAccessReview spec
authorization_v1.NonResourceRule verbs
authorization_v1.ResourceRule verbs
authorization_v1.SelfSubjectAccessReview spec
authorization_v1.SelfSubjectRulesReview spec
authorization_v1.SubjectAccessReview spec
authorization_v1.SubjectAccessReviewStatus allowed
authorization_v1.SubjectRulesReviewStatus resourceRules nonResourceRules incomplete
autoscaling_v1.CrossVersionObjectReference kind name
autoscaling_v1.HorizontalPodAutoscaler spec
autoscaling_v1.HorizontalPodAutoscalerSpec scaleTargetRef maxReplicas
autoscaling_v1.HorizontalPodAutoscalerStatus currentReplicas desiredReplicas
autoscaling_v1.ScaleStatus replicas
autoscaling_v2.ContainerResourceMetricSource name target container
autoscaling_v2.ContainerResourceMetricStatus name current container
autoscaling_v2.CrossVersionObjectReference kind name
autoscaling_v2.ExternalMetricSource metric target
autoscaling_v2.ExternalMetricStatus metric current
autoscaling_v2.HPAScalingPolicy type value periodSeconds
autoscaling_v2.HorizontalPodAutoscaler spec
autoscaling_v2.HorizontalPodAutoscalerCondition type status
autoscaling_v2.HorizontalPodAutoscalerSpec scaleTargetRef maxReplicas
autoscaling_v2.HorizontalPodAutoscalerStatus desiredReplicas
autoscaling_v2.MetricIdentifier name
autoscaling_v2.MetricSpec type
autoscaling_v2.MetricStatus type
autoscaling_v2.MetricTarget type
autoscaling_v2.ObjectMetricSource describedObject target metric
autoscaling_v2.ObjectMetricStatus metric current describedObject
autoscaling_v2.PodsMetricSource metric target
autoscaling_v2.PodsMetricStatus metric current
autoscaling_v2.ResourceMetricSource name target
autoscaling_v2.ResourceMetricStatus name current
batch_v1.CronJob spec
batch_v1.CronJobSpec schedule jobTemplate
batch_v1.JobCondition type status
batch_v1.JobSpec template
batch_v1.PodFailurePolicy rules
batch_v1.PodFailurePolicyOnExitCodesRequirement operator values
batch_v1.PodFailurePolicyOnPodConditionsPattern type
batch_v1.PodFailurePolicyRule action
batch_v1.SuccessPolicy rules
certificates_v1.CertificateSigningRequest spec
certificates_v1.CertificateSigningRequestCondition type status
certificates_v1.CertificateSigningRequestSpec request signerName
core_v1.AWSElasticBlockStoreVolumeSource volumeID
core_v1.AppArmorProfile type
core_v1.AttachedVolume name devicePath
core_v1.AzureDiskVolumeSource diskName diskURI
core_v1.AzureFilePersistentVolumeSource secretName shareName
core_v1.AzureFileVolumeSource secretName shareName
core_v1.Binding target
core_v1.CSIPersistentVolumeSource driver volumeHandle
core_v1.CSIVolumeSource driver
core_v1.CephFSPersistentVolumeSource monitors
core_v1.CephFSVolumeSource monitors
core_v1.CinderPersistentVolumeSource volumeID
core_v1.CinderVolumeSource volumeID
core_v1.ClusterTrustBundleProjection path
core_v1.ComponentCondition type status
core_v1.ConfigMapKeySelector key
core_v1.ConfigMapNodeConfigSource namespace name kubeletConfigKey
core_v1.Container name
core_v1.ContainerExtendedResourceRequest containerName resourceName requestName
core_v1.ContainerPort containerPort
core_v1.ContainerResizePolicy resourceName restartPolicy
core_v1.ContainerRestartRule action
core_v1.ContainerRestartRuleOnExitCodes operator
core_v1.ContainerStateTerminated exitCode
core_v1.ContainerStatus name ready restartCount image imageID
core_v1.DaemonEndpoint Port
core_v1.DownwardAPIVolumeFile path
core_v1.EndpointAddress ip
core_v1.EndpointPort port
core_v1.EnvVar name
core_v1.EphemeralContainer name
core_v1.Event metadata involvedObject
core_v1.FileKeySelector volumeName path key
core_v1.FlexPersistentVolumeSource driver
core_v1.FlexVolumeSource driver
core_v1.GCEPersistentDiskVolumeSource pdName
core_v1.GRPCAction port
core_v1.GitRepoVolumeSource repository
core_v1.GlusterfsPersistentVolumeSource endpoints path
core_v1.GlusterfsVolumeSource endpoints path
core_v1.HTTPGetAction port
core_v1.HTTPHeader name value
core_v1.HostAlias ip
core_v1.HostIP ip
core_v1.HostPathVolumeSource path
core_v1.ISCSIPersistentVolumeSource targetPortal iqn lun
core_v1.ISCSIVolumeSource targetPortal iqn lun
core_v1.ImageVolumeStatus imageRef
core_v1.KeyToPath key path
core_v1.LimitRangeItem type
core_v1.LimitRangeSpec limits
core_v1.LinuxContainerUser uid gid
core_v1.LocalVolumeSource path
core_v1.ModifyVolumeStatus status
core_v1.NFSVolumeSource server path
core_v1.NamespaceCondition type status
core_v1.NodeAddress type address
core_v1.NodeAllocatableResourceClaimStatus resourceClaimName resources
core_v1.NodeCondition type status
core_v1.NodeSelector nodeSelectorTerms
core_v1.NodeSelectorRequirement key operator
core_v1.NodeSystemInfo machineID systemUUID bootID kernelVersion osImage containerRuntimeVersion kubeletVersion kubeProxyVersion operatingSystem architecture
core_v1.ObjectFieldSelector fieldPath
core_v1.PersistentVolumeClaimCondition type status
core_v1.PersistentVolumeClaimTemplate spec
core_v1.PersistentVolumeClaimVolumeSource claimName
core_v1.PhotonPersistentDiskVolumeSource pdID
core_v1.PodAffinityTerm topologyKey
core_v1.PodCertificateProjection signerName keyType
core_v1.PodCondition type status
core_v1.PodExtendedResourceClaimStatus requestMappings resourceClaimName
core_v1.PodIP ip
core_v1.PodOS name
core_v1.PodReadinessGate conditionType
core_v1.PodResourceClaim name
core_v1.PodResourceClaimStatus name
core_v1.PodSchedulingGate name
core_v1.PodSpec containers
core_v1.PortStatus port protocol
core_v1.PortworxVolumeSource volumeID
core_v1.PreferredSchedulingTerm weight preference
core_v1.QuobyteVolumeSource registry volume
core_v1.RBDPersistentVolumeSource monitors image
core_v1.RBDVolumeSource monitors image
core_v1.ReplicationControllerCondition type status
core_v1.ReplicationControllerStatus replicas
core_v1.ResourceClaim name
core_v1.ResourceFieldSelector resource
core_v1.ResourceHealth resourceID
core_v1.ResourceStatus name
core_v1.ScaleIOPersistentVolumeSource gateway system secretRef
core_v1.ScaleIOVolumeSource gateway system secretRef
core_v1.ScopedResourceSelectorRequirement scopeName operator
core_v1.SeccompProfile type
core_v1.SecretKeySelector key
core_v1.ServiceAccountTokenProjection path
core_v1.ServicePort port
core_v1.SleepAction seconds
core_v1.Sysctl name value
core_v1.TCPSocketAction port
core_v1.Taint key effect
core_v1.TopologySelectorLabelRequirement key values
core_v1.TopologySpreadConstraint maxSkew topologyKey whenUnsatisfiable
core_v1.TypedLocalObjectReference kind name
core_v1.TypedObjectReference kind name
core_v1.Volume name
core_v1.VolumeDevice name devicePath
core_v1.VolumeMount name mountPath
core_v1.VolumeMountStatus name mountPath
core_v1.VsphereVirtualDiskVolumeSource volumePath
core_v1.WeightedPodAffinityTerm weight podAffinityTerm
discovery_v1.Endpoint addresses
discovery_v1.EndpointSlice addressType
discovery_v1.ForNode name
discovery_v1.ForZone name
events_v1.Event eventTime
events_v1.EventSeries count lastObservedTime
flowcontrol_v1.FlowDistinguisherMethod type
flowcontrol_v1.FlowSchemaSpec priorityLevelConfiguration
flowcontrol_v1.GroupSubject name
flowcontrol_v1.LimitResponse type
flowcontrol_v1.NonResourcePolicyRule verbs nonResourceURLs
flowcontrol_v1.PolicyRulesWithSubjects subjects
flowcontrol_v1.PriorityLevelConfigurationReference name
flowcontrol_v1.PriorityLevelConfigurationSpec type
flowcontrol_v1.ResourcePolicyRule verbs apiGroups resources
flowcontrol_v1.ServiceAccountSubject namespace name
flowcontrol_v1.Subject kind
flowcontrol_v1.UserSubject name
networking_v1.HTTPIngressPath pathType backend
networking_v1.HTTPIngressRuleValue paths
networking_v1.IPAddress spec
networking_v1.IPAddressSpec parentRef
networking_v1.IPBlock cidr
networking_v1.IngressClassParametersReference kind name
networking_v1.IngressPortStatus port protocol
networking_v1.IngressServiceBackend name
networking_v1.ParentReference resource name
node_v1.RuntimeClass handler
rbac_v1.ClusterRoleBinding roleRef
rbac_v1.PolicyRule verbs
rbac_v1.RoleBinding roleRef
rbac_v1.RoleRef kind name
rbac_v1.Subject kind name
resource_v1.AllocatedDeviceStatus driver pool device
resource_v1.CELDeviceSelector expression
resource_v1.CapacityRequestPolicyRange min
resource_v1.Counter value
resource_v1.CounterSet name counters
resource_v1.Device name
resource_v1.DeviceAllocationConfiguration source
resource_v1.DeviceCapacity value
resource_v1.DeviceClass spec
resource_v1.DeviceCounterConsumption counterSet counters
resource_v1.DeviceRequest name
resource_v1.DeviceRequestAllocationResult request driver pool device
resource_v1.DeviceSubRequest name deviceClassName
resource_v1.DeviceTaint key effect
resource_v1.ExactDeviceRequest deviceClassName
resource_v1.OpaqueDeviceConfiguration driver parameters
resource_v1.ResourceClaim spec
resource_v1.ResourceClaimConsumerReference resource name uid
resource_v1.ResourceClaimTemplate spec
resource_v1.ResourceClaimTemplateSpec spec
resource_v1.ResourcePool name generation resourceSliceCount
resource_v1.ResourceSlice spec
resource_v1.ResourceSliceSpec driver pool
storage_v1.CSIDriver spec
storage_v1.CSINode spec
storage_v1.CSINodeDriver name nodeID
storage_v1.CSINodeSpec drivers
storage_v1.CSIStorageCapacity storageClassName
storage_v1.StorageClass provisioner
storage_v1.TokenRequest audience
storage_v1.VolumeAttachment spec
storage_v1.VolumeAttachmentSpec attacher source nodeName
storage_v1.VolumeAttachmentStatus attached
storage_v1.VolumeAttributesClass driverName
apiextensions_v1.CustomResourceColumnDefinition name type jsonPath
apiextensions_v1.CustomResourceConversion strategy
apiextensions_v1.CustomResourceDefinition spec
apiextensions_v1.CustomResourceDefinitionCondition type status
apiextensions_v1.CustomResourceDefinitionNames plural kind
apiextensions_v1.CustomResourceDefinitionSpec group names scope versions
apiextensions_v1.CustomResourceDefinitionVersion name served storage
apiextensions_v1.CustomResourceSubresourceScale specReplicasPath statusReplicasPath
apiextensions_v1.SelectableField jsonPath
apiextensions_v1.ServiceReference namespace name
apiextensions_v1.ValidationRule rule
apiextensions_v1.WebhookConversion conversionReviewVersions
meta_v1.APIGroup name versions
meta_v1.APIGroupList groups
meta_v1.APIResource name singularName namespaced kind verbs
meta_v1.APIResourceList groupVersion resources
meta_v1.APIVersions versions serverAddressByClientCIDRs
meta_v1.Condition type status lastTransitionTime reason message
meta_v1.FieldSelectorRequirement key operator
meta_v1.GroupVersionForDiscovery groupVersion version
meta_v1.LabelSelectorRequirement key operator
meta_v1.OwnerReference apiVersion kind name uid
meta_v1.ServerAddressByClientCIDR clientCIDR serverAddress
meta_v1.ShardInfo selector
meta_v1.WatchEvent type object
apiregistration_v1.APIServiceCondition type status
apiregistration_v1.APIServiceSpec groupPriorityMinimum versionPriority
"""

_LONG = """
admissionregistration_v1.ValidatingAdmissionPolicyStatus observedGeneration
apps_v1.ControllerRevision revision
apps_v1.DaemonSetStatus observedGeneration
apps_v1.DeploymentStatus observedGeneration
apps_v1.ReplicaSetStatus observedGeneration
apps_v1.StatefulSetStatus observedGeneration
authentication_v1.TokenRequestSpec expirationSeconds
autoscaling_v1.HorizontalPodAutoscalerStatus observedGeneration
autoscaling_v2.HorizontalPodAutoscalerStatus observedGeneration
batch_v1.CronJobSpec startingDeadlineSeconds
batch_v1.JobSpec activeDeadlineSeconds
core_v1.ContainerImage sizeBytes
core_v1.LinuxContainerUser gid supplementalGroups uid
core_v1.NodeSwapStatus capacity
core_v1.PodCondition observedGeneration
core_v1.PodSecurityContext fsGroup runAsGroup runAsUser supplementalGroups
core_v1.PodSpec activeDeadlineSeconds terminationGracePeriodSeconds
core_v1.PodStatus observedGeneration
core_v1.Probe terminationGracePeriodSeconds
core_v1.ReplicationControllerStatus observedGeneration
core_v1.SecurityContext runAsGroup runAsUser
core_v1.ServiceAccountTokenProjection expirationSeconds
core_v1.SleepAction seconds
core_v1.Toleration tolerationSeconds
policy_v1.PodDisruptionBudgetStatus observedGeneration
resource_v1.DeviceAttribute int ints
resource_v1.DeviceSubRequest count
resource_v1.DeviceToleration tolerationSeconds
resource_v1.ExactDeviceRequest count
resource_v1.ResourcePool generation resourceSliceCount
storage_v1.CSIDriverSpec nodeAllocatableUpdatePeriodSeconds
storage_v1.TokenRequest expirationSeconds
apiextensions_v1.CustomResourceDefinitionCondition observedGeneration
apiextensions_v1.CustomResourceDefinitionStatus observedGeneration
apiextensions_v1.JSONSchemaProps maxItems maxLength maxProperties minItems minLength minProperties
meta_v1.Condition observedGeneration
meta_v1.DeleteOptions gracePeriodSeconds
meta_v1.ListMeta remainingItemCount
meta_v1.ObjectMeta deletionGracePeriodSeconds generation
"""

_BYTES = """
admissionregistration_v1.WebhookClientConfig caBundle
certificates_v1.CertificateSigningRequestSpec request
certificates_v1.CertificateSigningRequestStatus certificate
core_v1.ConfigMap binaryData
core_v1.Secret data
apiextensions_v1.WebhookClientConfig caBundle
apiregistration_v1.APIServiceSpec caBundle
"""

_ENUMS = """
admissionregistration_v1.MatchResources.matchPolicy Equivalent|Exact
admissionregistration_v1.MutatingAdmissionPolicySpec.failurePolicy Fail|Ignore
admissionregistration_v1.MutatingAdmissionPolicySpec.reinvocationPolicy IfNeeded|Never
admissionregistration_v1.MutatingWebhook.failurePolicy Fail|Ignore
admissionregistration_v1.MutatingWebhook.matchPolicy Equivalent|Exact
admissionregistration_v1.MutatingWebhook.reinvocationPolicy IfNeeded|Never
admissionregistration_v1.MutatingWebhook.sideEffects None|NoneOnDryRun|Some|Unknown
admissionregistration_v1.Mutation.patchType ApplyConfiguration|JSONPatch
admissionregistration_v1.NamedRuleWithOperations.operations *|CONNECT|CREATE|DELETE|UPDATE
admissionregistration_v1.NamedRuleWithOperations.scope *|Cluster|Namespaced
admissionregistration_v1.RuleWithOperations.operations *|CONNECT|CREATE|DELETE|UPDATE
admissionregistration_v1.RuleWithOperations.scope *|Cluster|Namespaced
admissionregistration_v1.ValidatingAdmissionPolicyBindingSpec.validationActions Audit|Deny|Warn
admissionregistration_v1.ValidatingAdmissionPolicySpec.failurePolicy Fail|Ignore
admissionregistration_v1.ValidatingWebhook.failurePolicy Fail|Ignore
admissionregistration_v1.ValidatingWebhook.matchPolicy Equivalent|Exact
admissionregistration_v1.ValidatingWebhook.sideEffects None|NoneOnDryRun|Some|Unknown
apps_v1.DaemonSetUpdateStrategy.type OnDelete|RollingUpdate
apps_v1.DeploymentStrategy.type Recreate|RollingUpdate
apps_v1.StatefulSetSpec.podManagementPolicy OrderedReady|Parallel
apps_v1.StatefulSetUpdateStrategy.type OnDelete|RollingUpdate
batch_v1.CronJobSpec.concurrencyPolicy Allow|Forbid|Replace
batch_v1.JobSpec.completionMode Indexed|NonIndexed
batch_v1.JobSpec.podReplacementPolicy Failed|TerminatingOrFailed
batch_v1.PodFailurePolicyOnExitCodesRequirement.operator In|NotIn
batch_v1.PodFailurePolicyRule.action Count|FailIndex|FailJob|Ignore
certificates_v1.CertificateSigningRequestSpec.usages any|cert sign|client auth|code signing|content commitment|crl sign|data encipherment|decipher only|digital signature|email protection|encipher only|ipsec end system|ipsec tunnel|ipsec user|key agreement|key encipherment|microsoft sgc|netscape sgc|ocsp signing|s/mime|server auth|signing|timestamping
core_v1.AppArmorProfile.type Localhost|RuntimeDefault|Unconfined
core_v1.AzureDiskVolumeSource.cachingMode None|ReadOnly|ReadWrite
core_v1.AzureDiskVolumeSource.kind Dedicated|Managed|Shared
core_v1.Container.imagePullPolicy Always|IfNotPresent|Never
core_v1.Container.terminationMessagePolicy FallbackToLogsOnError|File
core_v1.ContainerPort.protocol SCTP|TCP|UDP
core_v1.ContainerStatus.stopSignal SIGABRT|SIGALRM|SIGBUS|SIGCHLD|SIGCLD|SIGCONT|SIGFPE|SIGHUP|SIGILL|SIGINT|SIGIO|SIGIOT|SIGKILL|SIGPIPE|SIGPOLL|SIGPROF|SIGPWR|SIGQUIT|SIGRTMAX|SIGRTMAX-1|SIGRTMAX-10|SIGRTMAX-11|SIGRTMAX-12|SIGRTMAX-13|SIGRTMAX-14|SIGRTMAX-2|SIGRTMAX-3|SIGRTMAX-4|SIGRTMAX-5|SIGRTMAX-6|SIGRTMAX-7|SIGRTMAX-8|SIGRTMAX-9|SIGRTMIN|SIGRTMIN+1|SIGRTMIN+10|SIGRTMIN+11|SIGRTMIN+12|SIGRTMIN+13|SIGRTMIN+14|SIGRTMIN+15|SIGRTMIN+2|SIGRTMIN+3|SIGRTMIN+4|SIGRTMIN+5|SIGRTMIN+6|SIGRTMIN+7|SIGRTMIN+8|SIGRTMIN+9|SIGSEGV|SIGSTKFLT|SIGSTOP|SIGSYS|SIGTERM|SIGTRAP|SIGTSTP|SIGTTIN|SIGTTOU|SIGURG|SIGUSR1|SIGUSR2|SIGVTALRM|SIGWINCH|SIGXCPU|SIGXFSZ
core_v1.EndpointPort.protocol SCTP|TCP|UDP
core_v1.EphemeralContainer.imagePullPolicy Always|IfNotPresent|Never
core_v1.EphemeralContainer.terminationMessagePolicy FallbackToLogsOnError|File
core_v1.HTTPGetAction.scheme HTTP|HTTPS
core_v1.HostPathVolumeSource.type |BlockDevice|CharDevice|Directory|DirectoryOrCreate|File|FileOrCreate|Socket
core_v1.ImageVolumeSource.pullPolicy Always|IfNotPresent|Never
core_v1.Lifecycle.stopSignal SIGABRT|SIGALRM|SIGBUS|SIGCHLD|SIGCLD|SIGCONT|SIGFPE|SIGHUP|SIGILL|SIGINT|SIGIO|SIGIOT|SIGKILL|SIGPIPE|SIGPOLL|SIGPROF|SIGPWR|SIGQUIT|SIGRTMAX|SIGRTMAX-1|SIGRTMAX-10|SIGRTMAX-11|SIGRTMAX-12|SIGRTMAX-13|SIGRTMAX-14|SIGRTMAX-2|SIGRTMAX-3|SIGRTMAX-4|SIGRTMAX-5|SIGRTMAX-6|SIGRTMAX-7|SIGRTMAX-8|SIGRTMAX-9|SIGRTMIN|SIGRTMIN+1|SIGRTMIN+10|SIGRTMIN+11|SIGRTMIN+12|SIGRTMIN+13|SIGRTMIN+14|SIGRTMIN+15|SIGRTMIN+2|SIGRTMIN+3|SIGRTMIN+4|SIGRTMIN+5|SIGRTMIN+6|SIGRTMIN+7|SIGRTMIN+8|SIGRTMIN+9|SIGSEGV|SIGSTKFLT|SIGSTOP|SIGSYS|SIGTERM|SIGTRAP|SIGTSTP|SIGTTIN|SIGTTOU|SIGURG|SIGUSR1|SIGUSR2|SIGVTALRM|SIGWINCH|SIGXCPU|SIGXFSZ
core_v1.ModifyVolumeStatus.status InProgress|Infeasible|Pending
core_v1.NamespaceStatus.phase Active|Terminating
core_v1.NodeSelectorRequirement.operator DoesNotExist|Exists|Gt|In|Lt|NotIn
core_v1.NodeStatus.phase Pending|Running|Terminated
core_v1.PersistentVolumeClaimSpec.accessModes ReadOnlyMany|ReadWriteMany|ReadWriteOnce|ReadWriteOncePod
core_v1.PersistentVolumeClaimSpec.volumeMode Block|Filesystem
core_v1.PersistentVolumeClaimStatus.accessModes ReadOnlyMany|ReadWriteMany|ReadWriteOnce|ReadWriteOncePod
core_v1.PersistentVolumeClaimStatus.allocatedResourceStatuses ControllerResizeInProgress|ControllerResizeInfeasible|NodeResizeInProgress|NodeResizeInfeasible|NodeResizePending
core_v1.PersistentVolumeClaimStatus.phase Bound|Lost|Pending
core_v1.PersistentVolumeSpec.accessModes ReadOnlyMany|ReadWriteMany|ReadWriteOnce|ReadWriteOncePod
core_v1.PersistentVolumeSpec.persistentVolumeReclaimPolicy Delete|Recycle|Retain
core_v1.PersistentVolumeSpec.volumeMode Block|Filesystem
core_v1.PersistentVolumeStatus.phase Available|Bound|Failed|Pending|Released
core_v1.PodSecurityContext.fsGroupChangePolicy Always|OnRootMismatch
core_v1.PodSecurityContext.supplementalGroupsPolicy Merge|Strict
core_v1.PodSpec.dnsPolicy ClusterFirst|ClusterFirstWithHostNet|Default|None
core_v1.PodSpec.preemptionPolicy Never|PreemptLowerPriority
core_v1.PodSpec.restartPolicy Always|Never|OnFailure
core_v1.PodStatus.phase Failed|Pending|Running|Succeeded|Unknown
core_v1.PodStatus.qosClass BestEffort|Burstable|Guaranteed
core_v1.PortStatus.protocol SCTP|TCP|UDP
core_v1.ResourceQuotaSpec.scopes BestEffort|CrossNamespacePodAffinity|NotBestEffort|NotTerminating|PriorityClass|Terminating|VolumeAttributesClass
core_v1.ScopedResourceSelectorRequirement.operator DoesNotExist|Exists|In|NotIn
core_v1.ScopedResourceSelectorRequirement.scopeName BestEffort|CrossNamespacePodAffinity|NotBestEffort|NotTerminating|PriorityClass|Terminating|VolumeAttributesClass
core_v1.SeccompProfile.type Localhost|RuntimeDefault|Unconfined
core_v1.SecurityContext.procMount Default|Unmasked
core_v1.ServicePort.protocol SCTP|TCP|UDP
core_v1.ServiceSpec.externalTrafficPolicy Cluster|Local
core_v1.ServiceSpec.internalTrafficPolicy Cluster|Local
core_v1.ServiceSpec.ipFamilies |IPv4|IPv6
core_v1.ServiceSpec.ipFamilyPolicy PreferDualStack|RequireDualStack|SingleStack
core_v1.ServiceSpec.sessionAffinity ClientIP|None
core_v1.ServiceSpec.type ClusterIP|ExternalName|LoadBalancer|NodePort
core_v1.Taint.effect NoExecute|NoSchedule|PreferNoSchedule
core_v1.Toleration.effect NoExecute|NoSchedule|PreferNoSchedule
core_v1.Toleration.operator Equal|Exists|Gt|Lt
core_v1.TopologySpreadConstraint.nodeAffinityPolicy Honor|Ignore
core_v1.TopologySpreadConstraint.nodeTaintsPolicy Honor|Ignore
core_v1.TopologySpreadConstraint.whenUnsatisfiable DoNotSchedule|ScheduleAnyway
core_v1.VolumeMount.mountPropagation Bidirectional|HostToContainer|None
discovery_v1.EndpointPort.protocol SCTP|TCP|UDP
discovery_v1.EndpointSlice.addressType FQDN|IPv4|IPv6
networking_v1.HTTPIngressPath.pathType Exact|ImplementationSpecific|Prefix
networking_v1.IngressPortStatus.protocol SCTP|TCP|UDP
networking_v1.NetworkPolicyPort.protocol SCTP|TCP|UDP
networking_v1.NetworkPolicySpec.policyTypes Egress|Ingress
policy_v1.PodDisruptionBudgetSpec.unhealthyPodEvictionPolicy AlwaysAllow|IfHealthyBudget
resource_v1.DeviceAllocationConfiguration.source FromClaim|FromClass
resource_v1.DeviceSubRequest.allocationMode All|ExactCount
resource_v1.DeviceTaint.effect NoExecute|NoSchedule|None
resource_v1.DeviceToleration.effect NoExecute|NoSchedule|None
resource_v1.DeviceToleration.operator Equal|Exists
resource_v1.ExactDeviceRequest.allocationMode All|ExactCount
scheduling_v1.PriorityClass.preemptionPolicy Never|PreemptLowerPriority
storage_v1.StorageClass.reclaimPolicy Delete|Recycle|Retain
storage_v1.StorageClass.volumeBindingMode Immediate|WaitForFirstConsumer
apiextensions_v1.ValidationRule.reason FieldValueDuplicate|FieldValueForbidden|FieldValueInvalid|FieldValueRequired
"""


def _fields(text: str) -> Mapping[str, tuple[str, ...]]:
    """Parses lines of ``module.Struct field field …``."""
    lines = (line.split() for line in text.strip().splitlines())
    return {struct: tuple(fields) for struct, *fields in lines}


@cache
def _required() -> Mapping[str, tuple[str, ...]]:
    return _fields(_REQUIRED)


@cache
def _long() -> Mapping[str, tuple[str, ...]]:
    return _fields(_LONG)


@cache
def _bytes() -> Mapping[str, tuple[str, ...]]:
    return _fields(_BYTES)


@cache
def _enums() -> Mapping[str, tuple[str, ...]]:
    """Parses lines of ``module.Struct.field value|value|…``; values may have spaces, and one may be empty."""
    lines = (line.partition(" ") for line in _ENUMS.strip().splitlines())
    return {field: tuple(values.split("|")) for field, _, values in lines}


def required_fields(struct: str) -> tuple[str, ...]:
    """The required fields of a struct, in upstream's order."""
    return _required().get(struct, ())


def is_int64(struct: str, field: str) -> bool:
    """Whether an integer field is int64; all others are int32."""
    return field in _long().get(struct, ())


def is_bytes(struct: str, field: str) -> bool:
    """Whether a string field is base64 data."""
    return field in _bytes().get(struct, ())


def enum_values(struct: str, field: str) -> tuple[str, ...]:
    """The enum values of a field; empty where it is no enum."""
    return _enums().get(f"{struct}.{field}", ())
