"""Claims and volumes: not bound and why, waiting for a pod, too small."""

from __future__ import annotations

from collections.abc import Iterator

from steersman.api.quantity import Quantity
from steersman.api.volume_binding import PROVISIONED_BY, SELECTED_NODE
from steersman.explain.model import Case, Document, Finding, Weight, message_of
from steersman.explain.situations.registry import situation
from steersman.explain.words import brief, some

BINDER = "persistentvolume-binder-controller"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
NO_PROVISIONER = "kubernetes.io/no-provisioner"


@situation("PersistentVolumeClaim")
def not_bound(case: Case) -> Iterator[Finding]:
    """The claim is not bound: no class, no default class, no matching volume, provisioning fails, or no pod uses it."""
    if case.status.get("phase", "Pending") != "Pending" or case.meta.get("deletionTimestamp"):
        return
    if case.spec.get("volumeName"):
        yield from _asked_volume(case)
        return
    if "storageClassName" not in case.spec:
        yield from _without_class(case)
        return
    name = case.spec["storageClassName"]
    if not name:
        yield _no_volume(case, "without a class")
        return
    class_ = case.snapshot.get("StorageClass", "", name)
    if class_ is None:
        if case.snapshot.known("StorageClass"):
            unfit = some(_unfit(case, name))
            yield Finding(
                code="no-class",
                subject=case.ref,
                cause=f"StorageClass {name} does not exist, and no volume of that class "
                + (f"fits: {unfit}" if unfit else "matches"),
                controller=BINDER,
                next="it is bound when the class or a matching volume exists",
                remedy=f"create StorageClass {name}, or name one of kubectl get storageclass in a new claim",
            )
        return
    late = class_.get("volumeBindingMode") == "WaitForFirstConsumer"
    users = list(claim_pods(case))
    selected = (case.meta.get("annotations") or {}).get(SELECTED_NODE)
    if late and users and not selected and not any((pod.get("spec") or {}).get("nodeName") for pod in users):
        yield Finding(
            code="consumer-not-scheduled",
            subject=case.ref,
            cause=f"StorageClass {name} waits until a pod that uses the claim is scheduled (WaitForFirstConsumer)",
            controller=BINDER,
            next="a volume is bound or provisioned when the scheduler has found a node for the pod",
            weight=Weight.CONSEQUENCE,
        )
    elif late and not users:
        yield Finding(
            code="first-consumer",
            subject=case.ref,
            cause=f"StorageClass {name} waits for the first pod that uses the claim (WaitForFirstConsumer), and there is none",
            controller=BINDER,
            next="a volume is bound or provisioned when a pod with this claim is scheduled",
            remedy="nothing is wrong: create the pod",
            weight=Weight.WAITS,
        )
        return
    if class_.get("provisioner") == NO_PROVISIONER:
        yield _no_volume(case, f"of StorageClass {name}, which provisions none")
        return
    yield from _provisioning(case, name, str(class_.get("provisioner", "")))


def _without_class(case: Case) -> Iterator[Finding]:
    defaults = [
        each
        for each in case.snapshot.objects("StorageClass")
        if each["metadata"].get("annotations", {}).get(DEFAULT_CLASS) == "true"
    ]
    if not defaults and case.snapshot.known("StorageClass"):
        yield Finding(
            code="no-default-class",
            subject=case.ref,
            cause="it names no StorageClass, and no class is the default one",
            controller=BINDER,
            next="it is bound when a class becomes the default, or a volume without a class matches",
            remedy=f"annotate a class with {DEFAULT_CLASS}=true, or set storageClassName in a new claim",
        )


def _unfit(case: Case, name: str) -> list[str]:
    """The volumes of a class that have no claim, each with what it has to offer or why it does not."""
    found: list[str] = []
    for volume in case.snapshot.objects("PersistentVolume"):
        spec, phase = volume.get("spec") or {}, (volume.get("status") or {}).get("phase")
        claim = spec.get("claimRef") or {}
        if spec.get("storageClassName", "") != name:
            continue
        if phase == "Released":
            offers = f"is kept for its deleted claim {claim.get('namespace')}/{claim.get('name')}"
        elif phase == "Available" and claim:
            offers = f"is reserved for claim {claim.get('namespace')}/{claim.get('name')}"
        elif phase == "Available":
            size = (spec.get("capacity") or {}).get("storage")
            offers = f"has {size} and {', '.join(spec.get('accessModes') or ())}"
        else:
            continue
        found.append(f"{volume['metadata']['name']} {offers}")
    return found


def _asked_volume(case: Case) -> Iterator[Finding]:
    """The claim names its volume, which does not exist or is not for it."""
    name = case.spec["volumeName"]
    volume = case.snapshot.get("PersistentVolume", "", name)
    claim = ((volume or {}).get("spec") or {}).get("claimRef") or {}
    owner = f"{claim.get('namespace')}/{claim.get('name')}"
    if volume is None and case.snapshot.known("PersistentVolume"):
        cause = f"it asks for PersistentVolume {name}, which does not exist"
        remedy = f"create PersistentVolume {name}, or name another one in a new claim"
    elif claim and owner != f"{case.ref.namespace}/{case.ref.name}":
        cause = f"it asks for PersistentVolume {name}, which belongs to claim {owner}"
        remedy = (
            "name another volume in a new claim; if that claim is gone, remove spec.claimRef of the volume"
        )
    elif claim.get("uid") not in (None, "", case.meta.get("uid")):
        cause = f"it asks for PersistentVolume {name}, which is kept for an earlier claim of its name"
        remedy = f"remove spec.claimRef of PersistentVolume {name} to offer it again; its data stays"
    else:
        return
    yield Finding(
        code="asked-volume",
        subject=case.ref,
        cause=cause,
        controller=BINDER,
        next="it is bound when that volume is there for it",
        remedy=remedy,
    )


def _no_volume(case: Case, which: str) -> Finding:
    wanted = (case.spec.get("resources") or {}).get("requests", {}).get("storage", "")
    unfit = some(_unfit(case, case.spec.get("storageClassName") or ""))
    found = f"none fits: {unfit}" if unfit else "there is none"
    modes = ", ".join(case.spec.get("accessModes") or ())
    return Finding(
        code="no-volume",
        subject=case.ref,
        cause=f"it needs a PersistentVolume {which} with {wanted} and {modes}: {found}",
        controller=BINDER,
        next="it is bound when a matching volume exists",
        remedy="create such a PersistentVolume, or use a class with a provisioner",
    )


def claim_pods(case: Case) -> Iterator[Document]:
    """The pods that mount a claim, by its name or as an ephemeral volume of theirs."""
    for pod in case.snapshot.objects("Pod", case.ref.namespace):
        for volume in (pod.get("spec") or {}).get("volumes") or ():
            named = (volume.get("persistentVolumeClaim") or {}).get("claimName")
            if volume.get("ephemeral"):
                named = f"{pod['metadata']['name']}-{volume.get('name')}"
            if named == case.ref.name:
                yield pod


def _provisioning(case: Case, name: str, provisioner: str) -> Iterator[Finding]:
    events = case.snapshot.events(case.document, "ProvisioningFailed")
    if events:
        yield Finding(
            code="provisioning-failed",
            subject=case.ref,
            cause=f"{provisioner} of StorageClass {name} cannot provision a volume: {brief(message_of(events[0]))}",
            controller=provisioner,
            next="the provisioner tries again, with a growing delay",
        )
        return
    if case.snapshot.events(case.document, "ExternalProvisioning"):
        yield Finding(
            code="no-provisioner",
            subject=case.ref,
            cause=f"it waits for the provisioner {provisioner} of StorageClass {name}, which has not answered",
            controller=provisioner,
            next="the volume is created when the provisioner does so",
            remedy=f"see whether the CSI driver {provisioner} runs: kubectl get pods -A, kubectl get csidrivers",
        )


@situation("PersistentVolumeClaim")
def volume_lost(case: Case) -> Iterator[Finding]:
    """The volume of a bound claim is gone."""
    if case.status.get("phase") == "Lost":
        yield Finding(
            code="volume-lost",
            subject=case.ref,
            cause=f"its PersistentVolume {case.spec.get('volumeName')} does not exist any more",
            controller=BINDER,
            remedy="restore the volume under the same name, or delete the claim and its data",
        )


@situation("PersistentVolumeClaim")
def resizing(case: Case) -> Iterator[Finding]:
    """The claim is to be larger: the driver expands the volume or cannot, and the file system waits for a pod."""
    if case.condition("FileSystemResizePending").get("status") == "True":
        yield Finding(
            code="resize",
            subject=case.ref,
            cause="its volume is larger already, and its file system is resized when a pod mounts it",
            controller="the kubelet",
            next="the kubelet resizes it while a pod uses it",
            weight=Weight.WAITS,
        )
        return
    wanted = str((case.spec.get("resources") or {}).get("requests", {}).get("storage", "0"))
    size = str((case.status.get("capacity") or {}).get("storage", wanted))
    if case.status.get("phase") != "Bound" or Quantity.parse(wanted) <= Quantity.parse(size):
        return
    volume = case.snapshot.get("PersistentVolume", "", case.spec.get("volumeName", "")) or {}
    driver = ((volume.get("spec") or {}).get("csi") or {}).get("driver") or "the driver of its volume"
    if failed := case.snapshot.events(case.document, "VolumeResizeFailed"):
        yield Finding(
            code="resize-failed",
            subject=case.ref,
            cause=f"its volume cannot be expanded from {size} to {wanted}: {brief(message_of(failed[0]))}",
            controller=driver,
            next="the expansion is tried again, with a growing delay",
        )
    elif case.condition("Resizing").get("status") == "True":
        yield Finding(
            code="resizing",
            subject=case.ref,
            cause=f"its volume is being expanded from {size} to {wanted}",
            controller=driver,
            next="its file system is resized after that",
            weight=Weight.WAITS,
        )


@situation("PersistentVolume")
def released(case: Case) -> Iterator[Finding]:
    """A volume whose claim is gone: it is kept, or cannot be deleted or emptied."""
    if case.status.get("phase") not in ("Released", "Failed"):
        return
    claim = case.spec.get("claimRef") or {}
    gone = f"its claim {claim.get('namespace')}/{claim.get('name')} is deleted"
    policy = case.spec.get("persistentVolumeReclaimPolicy", "Retain")
    if policy == "Retain":
        yield Finding(
            code="released",
            subject=case.ref,
            cause=f"{gone}, and its reclaim policy Retain keeps it from being bound again",
            controller=BINDER,
            remedy="remove spec.claimRef to offer it again; its data stays",
        )
        return
    owner = (case.meta.get("annotations") or {}).get(PROVISIONED_BY) or BINDER
    failed = case.snapshot.events(case.document, "VolumeFailedDelete", "VolumeFailedRecycle")
    why = brief(message_of(failed[0]) if failed else str(case.status.get("message") or ""))
    done = "deleted" if policy == "Delete" else "recycled"
    yield Finding(
        code="reclaim-failed" if why else "reclaim",
        subject=case.ref,
        cause=f"{gone}, and it cannot be {done}: {why}" if why else f"{gone}, and it is yet to be {done}",
        controller=owner,
        next=f"{owner} tries again, with a growing delay" if why else f"{owner} does so",
        weight=Weight.BLOCKED if why else Weight.WAITS,
    )
