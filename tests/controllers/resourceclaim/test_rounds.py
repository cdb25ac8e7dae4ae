"""resourceclaim-controller: rounds, row by row."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from steersman.api.errors import ApiError, Conflict, NotFound
from steersman.api.generated import load
from steersman.api.kinds import (
    Object,
    ObjectMeta,
    Opaque,
    OwnerReference,
    Pod,
    PodResourceClaim,
    PodResourceClaimStatus,
    PodSchedulingGroup,
    PodSpec,
    PodStatus,
)
from steersman.api.kinds.devices import (
    DELETE_PROTECTION,
    POD_CLAIM_NAME,
    AllocationResult,
    NewResourceClaim,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimTemplate,
    ResourceClaimTemplateSpec,
)
from steersman.api.kinds.podgroups import PodGroup, PodGroupSpec, PodGroupStatus
from steersman.api.scheme import Key, kind_of
from steersman.controllers.resourceclaim import controller
from steersman.controllers.resourceclaim.enqueue import Memory
from steersman.controllers.resourceclaim.metrics import CREATES
from steersman.controllers.resourceclaim.templates import name_prefix
from steersman.intent.actions import Action, Create, Delete, Emit, Patch, PatchType, Read
from steersman.intent.controller import Controller
from steersman.intent.metrics import Measure
from steersman.intent.settings import Settings
from steersman.intent.verdict import InvalidSpec, Rest, Verdict
from steersman.testing.decision_driver import USUAL, StaticCaches, walk

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
GATES = {"DRAWorkloadResourceClaims": True, "GenericWorkload": True}
ADMIN = b'{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c","adminAccess":true}}]}}'
PRIORITIZED = b'{"devices":{"requests":[{"name":"r","firstAvailable":[{"name":"a","deviceClassName":"c"}]}]}}'

BY_TEMPLATE = PodResourceClaim(name="gpu", resourceClaimTemplateName="t")
MADE = PodResourceClaimStatus(name="gpu", resourceClaimName="made")


def configured(groups: bool = False, off: str = "") -> Controller[Any]:
    gates = {**(GATES if groups else {}), **({off: False} if off else {})}
    built = controller.configured(Settings(gates=gates))
    assert built is not None
    return built


def pod(
    *claims: PodResourceClaim,
    name: str = "p",
    node: str = "",
    group: str | None = None,
    phase: str = "",
    statuses: tuple[PodResourceClaimStatus, ...] = (),
    deleted: bool = False,
    uid: str = "",
) -> Pod:
    return Pod(
        metadata=ObjectMeta(
            name=name, namespace="d", uid=uid or f"uid-{name}", deletionTimestamp=NOW if deleted else None
        ),
        spec=PodSpec(
            nodeName=node,
            resourceClaims=claims,
            schedulingGroup=PodSchedulingGroup(podGroupName=group) if group else None,
        ),
        status=PodStatus(phase=phase, resourceClaimStatuses=statuses),
    )


def pod_group(
    *claims: PodResourceClaim, statuses: tuple[PodResourceClaimStatus, ...] = (), deleted: bool = False
) -> PodGroup:
    return PodGroup(
        metadata=ObjectMeta(name="g", namespace="d", uid="uid-g", deletionTimestamp=NOW if deleted else None),
        spec=PodGroupSpec(resourceClaims=claims),
        status=PodGroupStatus(resourceClaimStatuses=statuses),
    )


def owner(kind: str, name: str) -> OwnerReference:
    api = "v1" if kind == "Pod" else "scheduling.k8s.io/v1alpha2"
    return OwnerReference(apiVersion=api, kind=kind, name=name, uid=f"uid-{name}", controller=True)


OF_POD, OF_GROUP = owner("Pod", "p"), owner("PodGroup", "g")


def claim(
    *reserved: str,
    name: str = "made",
    owner: OwnerReference | None = OF_POD,
    template: bool = False,
    allocated: bool = False,
    protected: bool = False,
    deleted: bool = False,
    namespace: str = "d",
) -> ResourceClaim:
    """``reserved`` are names of pods, of PodGroups with a prefix, or of other consumers."""
    status = ResourceClaim().status
    return ResourceClaim(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=f"uid-{name}",
            resourceVersion="7",
            annotations={POD_CLAIM_NAME: "gpu"} if template else {},
            ownerReferences=(owner,) if owner is not None else (),
            finalizers=("other", DELETE_PROTECTION) if protected else (),
            deletionTimestamp=NOW if deleted else None,
        ),
        status=replace(
            status,
            allocation=AllocationResult() if allocated else None,
            reservedFor=tuple(map(reference, reserved)),
        ),
    )


def reference(name: str) -> ResourceClaimConsumerReference:
    kind, _, rest = name.rpartition(":")
    group = {"group": "scheduling.k8s.io", "other": "foo.com"}.get(kind, "")
    resource = {"group": "podgroups", "other": "foos"}.get(kind, "pods")
    return ResourceClaimConsumerReference(apiGroup=group, resource=resource, name=rest, uid=f"uid-{rest}")


def template(spec: bytes = b'{"devices":{}}', name: str = "t") -> ResourceClaimTemplate:
    return ResourceClaimTemplate(
        metadata=ObjectMeta(name=name, namespace="d", uid=f"uid-{name}"),
        spec=ResourceClaimTemplateSpec(metadata=ObjectMeta(labels={"a": "b"}), spec=Opaque(spec)),
    )


def described(action: Action[Any]) -> str | None:
    """An action in a few words; None for events and metrics."""
    match action:
        case Create(body=NewResourceClaim() as body):
            return f"create {body.metadata.generateName}"
        case Delete(target=target):
            return f"delete {target.key.name}"
        case Read(target=target):
            return f"read {target.kind.plural} {target.key.name}"
        case Patch(type=PatchType.APPLY, body=dict() as body):
            entries = body["status"]["resourceClaimStatuses"]
            names = [f"{each['name']}={each['resourceClaimName']}" for each in entries]
            return f"record {' '.join(names)}"
        case Patch(body=dict() as body):
            assert body["metadata"]["uid"]
            assert body["metadata"]["resourceVersion"]
            if "status" not in body:
                return f"finalizers {body['metadata']['finalizers']}"
            words = ["deallocate"] if body["status"].get("allocation", ...) is None else []
            if "reservedFor" in body["status"]:
                reserved = [each["name"] for each in body["status"]["reservedFor"] or ()]
                words.append(f"reserved {' '.join(reserved) or 'none'}")
            return ", ".join(words)
        case Emit() | Measure():
            return None
    raise AssertionError(action)


class Round:
    """One round of a key, and what came of it."""

    def __init__(
        self,
        key: str,
        *objects: Object,
        groups: bool = False,
        live: tuple[Object, ...] = (),
        known_deleted: tuple[str, ...] = (),
        create: ApiError | None = None,
        off: str = "",
    ) -> None:
        built = configured(groups, off)
        self.caches = StaticCaches(built, *objects)
        assert isinstance(self.caches.memory, Memory)
        for uid in known_deleted:
            self.caches.memory.deleted.put(uid, True)
        self._live = {(kind_of(each).plural, each.key): each for each in live}
        self._create = create
        self.actions: list[Action[Any]] = []
        self.error: Exception | None = None
        self.verdict: Verdict | None = None
        seen = built.see(self.caches, Key("d", key))
        if seen is None:
            return
        try:
            _, self.verdict = walk(built.decide(seen, NOW), self._answer, recorded=self.actions)
        except (ApiError, InvalidSpec) as error:
            self.error = error

    def _answer(self, action: Action[Any]) -> Any:
        if isinstance(action, Read):
            found = self._live.get((action.target.kind.plural, action.target.key))
            return NotFound("not found") if found is None else found
        if isinstance(action, Create) and self._create is not None:
            return self._create
        return USUAL

    @property
    def writes(self) -> list[str]:
        return [text for each in self.actions if (text := described(each)) is not None]

    @property
    def events(self) -> list[str]:
        return [f"{each.reason}: {each.message}" for each in self.actions if isinstance(each, Emit)]

    @property
    def creates(self) -> list[tuple[str, ...]]:
        return [each.labels for each in self.actions if isinstance(each, Measure) and each.metric is CREATES]


# -- claims from templates --------------------------------------------------------------------------

NEW = ["create p-gpu-", "record gpu=p-gpu-00001"]
NEW_OF_GROUP = ["create g-gpu-", "record gpu=g-gpu-00001"]
POD_CLAIM = claim(template=True)
GROUP_CLAIM = claim(template=True, owner=OF_GROUP)
MEMBER = pod(BY_TEMPLATE, group="g")


@pytest.mark.parametrize(
    ("key", "objects", "groups", "writes", "created"),
    [
        ("pod/p", (pod(BY_TEMPLATE), template()), False, NEW, "false"),
        ("pod/p", (pod(BY_TEMPLATE), template(ADMIN)), False, NEW, "true"),
        ("pod/p", (pod(BY_TEMPLATE), template(PRIORITIZED)), False, NEW, "false"),
        ("podgroup/g", (pod_group(BY_TEMPLATE), template()), True, NEW_OF_GROUP, "false"),
        # The claim of a PodGroup is made for the group, not for its pods.
        ("pod/p", (MEMBER, pod_group(BY_TEMPLATE)), True, [], ""),
        ("pod/p", (MEMBER, pod_group(BY_TEMPLATE), template()), True, [], ""),
        ("pod/p", (MEMBER, pod_group(BY_TEMPLATE), template(), GROUP_CLAIM), True, ["record gpu=made"], ""),
        ("pod/p", (MEMBER, template(), GROUP_CLAIM), False, NEW, "false"),
        # There is nothing to do.
        ("pod/p", (pod(BY_TEMPLATE, statuses=(MADE,)), template(), POD_CLAIM), False, [], ""),
        (
            "podgroup/g",
            (pod_group(BY_TEMPLATE, statuses=(MADE,)), template(), GROUP_CLAIM),
            True,
            [],
            "",
        ),
        # The claim in the status was deleted.
        ("pod/p", (pod(BY_TEMPLATE, statuses=(MADE,)), template()), False, NEW, "false"),
        ("podgroup/g", (pod_group(BY_TEMPLATE, statuses=(MADE,)), template()), True, NEW_OF_GROUP, "false"),
        # The claim in the status is another consumer's.
        ("pod/p", (pod(BY_TEMPLATE, statuses=(MADE,)), template(), claim(owner=None)), False, NEW, "false"),
        # It was found before that no claim is needed.
        (
            "pod/p",
            (pod(BY_TEMPLATE, statuses=(PodResourceClaimStatus(name="gpu"),)), template()),
            False,
            [],
            "",
        ),
        # A manager that stopped has left a claim.
        ("pod/p", (pod(BY_TEMPLATE), template(), POD_CLAIM), False, ["record gpu=made"], ""),
        ("podgroup/g", (pod_group(BY_TEMPLATE), GROUP_CLAIM), True, ["record gpu=made"], ""),
        # Neither a claim of another name in the spec nor one without annotation is it.
        (
            "pod/p",
            (
                pod(BY_TEMPLATE),
                template(),
                claim(),
                replace(
                    POD_CLAIM,
                    metadata=replace(POD_CLAIM.metadata, name="disk", annotations={POD_CLAIM_NAME: "disk"}),
                ),
            ),
            False,
            NEW,
            "false",
        ),
        ("pod/p", (), False, [], ""),
        ("podgroup/g", (), True, [], ""),
        ("pod/p", (pod(BY_TEMPLATE, deleted=True), template()), False, [], ""),
        ("podgroup/g", (pod_group(BY_TEMPLATE, deleted=True), template()), True, [], ""),
        ("pod/p", (pod(),), False, [], ""),
        ("pod/p", (pod(BY_TEMPLATE, statuses=(MADE,), phase="Succeeded"), template()), False, [], ""),
        ("pod/p", (pod(PodResourceClaim(name="gpu", resourceClaimName="mine")),), False, [], ""),
        # Claims of other namespaces do not matter.
        ("pod/p", (pod(BY_TEMPLATE), template(), claim(namespace="e")), False, NEW, "false"),
        (
            "podgroup/g",
            (pod_group(BY_TEMPLATE), template(), claim(namespace="e")),
            True,
            NEW_OF_GROUP,
            "false",
        ),
    ],
)
def test_claims_are_made_from_templates(
    key: str, objects: tuple[Object, ...], groups: bool, writes: list[str], created: str
) -> None:
    made = Round(key, *objects, groups=groups)
    assert (made.writes, made.events, made.error) == (writes, [], None)
    assert made.creates == ([("success", created)] if created else [])


CONFLICT = Conflict(
    'Operation cannot be fulfilled on resourceclaims.resource.k8s.io "fake name": fake conflict'
)
NO_TEMPLATE = 'resource claim template "t": resourceclaimtemplate.resource.k8s.io "t" not found'


@pytest.mark.parametrize(
    ("key", "objects", "off", "error"),
    [
        (
            "pod/p",
            (pod(BY_TEMPLATE), template(ADMIN)),
            "DRAAdminAccess",
            "admin access is requested, but the feature is disabled",
        ),
        (
            "podgroup/g",
            (pod_group(BY_TEMPLATE), template(ADMIN)),
            "DRAAdminAccess",
            "admin access is requested, but the feature is disabled",
        ),
        (
            "pod/p",
            (pod(BY_TEMPLATE), template(PRIORITIZED)),
            "DRAPrioritizedList",
            "template includes a prioritized list of subrequests, but the feature is disabled",
        ),
        ("pod/p", (pod(BY_TEMPLATE), claim(owner=None)), "", NO_TEMPLATE),
        ("podgroup/g", (pod_group(BY_TEMPLATE), claim(owner=None)), "", NO_TEMPLATE),
        (
            "pod/p",
            (pod(PodResourceClaim(name="gpu")),),
            "",
            'checking for claim before creating it: pod "d/p", spec.resourceClaim "gpu": '
            "none of the supported fields are set",
        ),
    ],
)
def test_a_claim_that_cannot_be_made_is_an_event_of_its_consumer(
    key: str, objects: tuple[Object, ...], off: str, error: str
) -> None:
    failed = Round(key, *objects, groups=True, off=off)
    kind = "Pod" if key == "pod/p" else "PodGroup"
    assert failed.events == [f"FailedResourceClaimCreation: {kind}ResourceClaim gpu: {error}"]
    assert (failed.writes, failed.creates) == ([], [])
    assert error in str(failed.error)


@pytest.mark.parametrize("key", ["pod/p", "podgroup/g"])
def test_a_refused_claim_is_counted_and_tried_again(key: str) -> None:
    objects = (pod(BY_TEMPLATE), pod_group(BY_TEMPLATE), template())
    refused = Round(key, *objects, groups=True, create=CONFLICT)
    assert isinstance(refused.error, Conflict)
    assert str(refused.error) == f"create ResourceClaim : {CONFLICT}"
    assert refused.creates == [("failure", "false")]
    assert len(refused.events) == 1
    assert [type(each) for each in refused.actions if not isinstance(each, Measure | Emit)] == [Create]


def test_a_pod_whose_group_is_not_there_is_tried_again() -> None:
    waiting = Round("pod/p", MEMBER, template(), groups=True)
    assert isinstance(waiting.error, NotFound)
    assert str(waiting.error) == 'get PodGroup for Pod d/p: podgroup.scheduling.k8s.io "g" not found'
    assert waiting.actions == []


def test_a_new_claim_has_the_spec_and_metadata_of_its_template() -> None:
    pods = pod(BY_TEMPLATE)
    created = Round("pod/p", pods, template(ADMIN))
    body = next(each.body for each in created.actions if isinstance(each, Create))
    assert isinstance(body, NewResourceClaim)
    assert body.metadata == ObjectMeta(
        generateName="p-gpu-",
        labels={"a": "b"},
        annotations={POD_CLAIM_NAME: "gpu"},
        ownerReferences=(OF_POD,),
    )
    assert bytes(body.spec) == ADMIN


def test_the_status_keeps_the_names_of_the_other_claims() -> None:
    disk = replace(BY_TEMPLATE, name="disk")
    mine = PodResourceClaim(name="mine", resourceClaimName="mine")
    other = replace(
        POD_CLAIM,
        metadata=replace(POD_CLAIM.metadata, name="made-disk", annotations={POD_CLAIM_NAME: "disk"}),
    )
    recorded = PodResourceClaimStatus(name="disk", resourceClaimName="made-disk")
    made = Round("pod/p", pod(mine, BY_TEMPLATE, disk, statuses=(recorded,)), template(), other)
    assert made.writes == ["create p-gpu-", "record gpu=p-gpu-00001 disk=made-disk"]
    applied = made.actions[-1]
    assert isinstance(applied, Patch)
    assert (applied.field_manager, applied.force, applied.subresource) == (
        "ResourceClaimController",
        True,
        "status",
    )
    assert isinstance(applied.body, dict)
    assert applied.body["metadata"] == {"name": "p", "namespace": "d", "uid": "uid-p"}


@pytest.mark.parametrize(
    ("consumer", "claim_in_spec", "prefix"),
    [
        ("pod", "gpu", "pod-gpu-"),
        ("p" * 50, "gpu12", "p" * 50 + "-gpu12-"),
        ("p" * 51, "gpu12", "p" * 50 + "-" + "gpu1"),
        ("p" * 63, "c" * 63, "p" * 28 + "-" + "c" * 28),
        ("p" * 253, "c" * 63, "p" * 45 + "-" + "c" * 11),
    ],
)
def test_a_long_name_leaves_room_for_both_parts(consumer: str, claim_in_spec: str, prefix: str) -> None:
    assert name_prefix(consumer, claim_in_spec) == prefix


# -- reservations -----------------------------------------------------------------------------------

DONE = pod(BY_TEMPLATE, phase="Succeeded")
RESERVED = claim("p", allocated=True)
GONE = ["read pods p", "reserved none"]


@pytest.mark.parametrize(
    ("objects", "live", "groups", "writes"),
    [
        ((pod(), RESERVED), (), False, []),
        # The cache does not have the pod yet.
        ((RESERVED,), (pod(),), False, ["read pods p"]),
        ((RESERVED,), (), False, GONE),
        ((RESERVED,), (pod(uid="another"),), False, GONE),
        ((pod(uid="another"), RESERVED), (), False, ["reserved none", "delete made"]),
        (
            (claim("p", allocated=True, protected=True),),
            (),
            False,
            ["read pods p", "deallocate, reserved none", "finalizers ['other']"],
        ),
        (
            (claim("group:g", allocated=True, protected=True),),
            (),
            True,
            ["read podgroups g", "deallocate, reserved none", "finalizers ['other']"],
        ),
        ((claim("group:g", allocated=True, protected=True),), (), False, []),
        ((claim("group:g", allocated=True, protected=True), pod_group()), (), True, []),
        ((claim("group:g", allocated=True),), (pod_group(),), True, ["read podgroups g"]),
        ((pod(), claim("p", "q", allocated=True, protected=True)), (), False, ["read pods q", "reserved p"]),
        (
            (claim("p", allocated=True, protected=True, deleted=True),),
            (),
            False,
            ["read pods p", "deallocate, reserved none", "finalizers ['other']"],
        ),
        (
            (claim(allocated=True, protected=True, deleted=True),),
            (),
            False,
            ["deallocate", "finalizers ['other']"],
        ),
        ((claim(protected=True, deleted=True),), (), False, ["finalizers ['other']"]),
        ((claim(allocated=True, deleted=True),), (), False, []),
        # A claim that is allocated but was never reserved stays so.
        ((claim(allocated=True, protected=True),), (), False, []),
        ((DONE, claim("p", allocated=True, owner=None)), (), False, ["reserved none"]),
        ((DONE, RESERVED), (), False, ["reserved none", "delete made"]),
        ((pod(BY_TEMPLATE, phase="Failed"), RESERVED), (), False, ["reserved none", "delete made"]),
        ((pod(BY_TEMPLATE, deleted=True), RESERVED), (), False, ["reserved none", "delete made"]),
        ((pod(BY_TEMPLATE, deleted=True, node="n"), RESERVED), (), False, []),
        ((DONE, claim()), (), False, ["delete made"]),
        ((DONE, claim(deleted=True)), (), False, []),
        ((pod(uid="another"), claim()), (), False, ["delete made"]),
        ((claim(),), (), False, []),
        # Only the pod that controls the claim matters.
        ((DONE, claim(owner=replace(OF_POD, controller=False))), (), False, []),
        ((DONE, claim(owner=replace(OF_POD, apiVersion="v2"))), (), False, []),
        # Reservations for unknown kinds of consumers stay.
        ((DONE, claim("p", "other:x", allocated=True, protected=True)), (), False, ["reserved x"]),
        ((claim("other:x"),), (), False, []),
    ],
)
def test_reservations_of_consumers_that_are_gone_are_released(
    objects: tuple[Object, ...], live: tuple[Object, ...], groups: bool, writes: list[str]
) -> None:
    released = Round("claim/made", *objects, live=live, groups=groups)
    assert (released.writes, released.error) == (writes, None)


@pytest.mark.parametrize(
    ("reserved", "groups", "writes"),
    [
        ("p", False, ["reserved none"]),
        ("group:p", True, ["reserved none"]),
        ("group:p", False, []),
        ("other:p", False, []),
    ],
)
def test_a_consumer_that_was_seen_deleted_is_not_read(reserved: str, groups: bool, writes: list[str]) -> None:
    released = Round("claim/made", claim(reserved), known_deleted=("uid-p",), groups=groups)
    assert released.writes == writes


def test_a_failed_read_releases_nothing() -> None:
    built = configured()
    seen = built.see(StaticCaches(built, RESERVED), Key("d", "claim/made"))
    assert seen is not None
    recorded: list[Action[Any]] = []
    with pytest.raises(ApiError):
        walk(built.decide(seen, NOW), {Read: ApiError("timed out")}, recorded=recorded)
    assert [type(each) for each in recorded] == [Read]


def test_a_claim_that_is_gone_before_it_is_deleted_is_fine() -> None:
    built = configured()
    seen = built.see(StaticCaches(built, DONE, claim()), Key("d", "claim/made"))
    assert seen is not None
    _, verdict = walk(built.decide(seen, NOW), {Delete: NotFound("gone")})
    assert verdict == Rest("claim is gone")


def test_a_status_that_the_server_answers_decides_about_the_finalizer() -> None:
    """Another writer may have taken the finalizer away, or have kept an allocation."""
    kept = claim(allocated=True, protected=True)
    built = configured()
    seen = built.see(StaticCaches(built, claim("p", allocated=True, protected=True)), Key("d", "claim/made"))
    assert seen is not None
    actions, _ = walk(built.decide(seen, NOW), {Read: NotFound("gone"), Patch: kept})
    assert [described(each) for each in actions] == ["read pods p", "deallocate, reserved none"]


# -- pods that were bound without the scheduler -----------------------------------------------------

BOUND = pod(BY_TEMPLATE, node="n", statuses=(MADE,))
BOUND_MEMBER = pod(BY_TEMPLATE, node="n", group="g", statuses=(MADE,))
ALLOCATED = claim(template=True, allocated=True)


@pytest.mark.parametrize(
    ("objects", "groups", "writes"),
    [
        ((BOUND, ALLOCATED), False, ["reserved p"]),
        ((BOUND_MEMBER, pod_group(BY_TEMPLATE), ALLOCATED), True, ["reserved g"]),
        ((BOUND_MEMBER, ALLOCATED), False, ["reserved p"]),
        (
            (BOUND, pod(name="q"), claim("q", template=True, allocated=True)),
            False,
            ["reserved q p"],
        ),
        ((BOUND, claim("q", template=True, allocated=True)), False, ["read pods q", "reserved p"]),
        ((BOUND, claim("p", template=True, allocated=True)), False, []),
        ((BOUND_MEMBER, pod_group(BY_TEMPLATE), claim("group:g", template=True, allocated=True)), True, []),
        ((BOUND_MEMBER, ALLOCATED), True, []),
        ((BOUND, POD_CLAIM), False, []),
        ((pod(BY_TEMPLATE, statuses=(MADE,)), ALLOCATED), False, []),
        # Upstream reserves and releases it without end.
        (
            (
                pod(PodResourceClaim(name="gpu", resourceClaimName="made"), node="n", phase="Succeeded"),
                claim(owner=None, allocated=True),
            ),
            False,
            [],
        ),
        ((pod(PodResourceClaim(name="gpu", resourceClaimName="made"), node="n"),), False, []),
        (
            (
                pod(PodResourceClaim(name="gpu", resourceClaimName="made"), node="n"),
                claim(owner=None, allocated=True),
            ),
            False,
            ["reserved p"],
        ),
    ],
)
def test_allocated_claims_are_reserved_for_a_pod_with_a_node(
    objects: tuple[Object, ...], groups: bool, writes: list[str]
) -> None:
    reserved = Round("claim/made", *objects, template(), groups=groups)
    assert (reserved.writes, reserved.error) == (writes, None)


def test_a_claim_that_the_group_lost_is_not_reserved() -> None:
    lost = claim(owner=None, allocated=True)
    left = Round("claim/made", BOUND_MEMBER, pod_group(BY_TEMPLATE), lost, groups=True)
    assert left.writes == []


def test_the_pods_of_a_group_are_one_reservation() -> None:
    other = pod(BY_TEMPLATE, name="q", node="n", group="g", statuses=(MADE,))
    shared = claim(owner=OF_GROUP, allocated=True)
    reserved = Round("claim/made", BOUND_MEMBER, other, pod_group(BY_TEMPLATE), shared, groups=True)
    assert reserved.writes == ["reserved g"]


def test_a_claim_is_reserved_for_as_many_pods_as_the_api_allows() -> None:
    own = PodResourceClaim(name="gpu", resourceClaimName="made")
    pods = [pod(own, name=f"p{number}", node="n") for number in range(300)]
    shared = claim("p0", "p1", owner=None, allocated=True)
    (write,) = Round("claim/made", *pods, shared).writes
    assert write.startswith("reserved p0 p1 ")
    assert len(write.split()) == 1 + 256


def test_a_claim_is_not_deallocated_when_another_pod_needs_it() -> None:
    own = PodResourceClaim(name="gpu", resourceClaimName="made")
    shared = claim("q", owner=None, allocated=True, protected=True)
    assert Round("claim/made", pod(own, node="n"), shared).writes == ["read pods q", "reserved p"]


def test_the_spec_of_a_template_from_the_embedded_server_is_a_struct() -> None:
    full = load("resource.k8s.io", "v1", "ResourceClaimTemplate").type
    document = b'{"metadata":{"name":"t","namespace":"d"},"spec":{"spec":' + ADMIN + b"}}"
    made = Round("pod/p", pod(BY_TEMPLATE), msgspec.json.decode(document, type=full))
    assert made.creates == [("success", "true")]
