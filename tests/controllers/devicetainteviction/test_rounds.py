"""device-taint-eviction-controller: rounds, row by row. Upstream's rows apply their events in every order."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from itertools import permutations
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from steersman.api.errors import NotFound, ServerError
from steersman.api.kinds import (
    Condition,
    Object,
    ObjectMeta,
    OwnerReference,
    Pod,
    PodResourceClaim,
    PodResourceClaimStatus,
    PodSchedulingGroup,
    PodSpec,
    PodStatus,
)
from steersman.api.kinds.devices import (
    DEVICETAINTRULES,
    RESOURCESLICES,
    AllocationResult,
    Device,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintRuleSpec,
    DeviceTaintSelector,
    DeviceToleration,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from steersman.api.scheme import Key
from steersman.controllers.devicetainteviction import DELETIONS, LATENCY, controller
from steersman.intent.actions import Delete, Emit, Patch, Read
from steersman.intent.controller import Change, Controller
from steersman.intent.metrics import Measure
from steersman.intent.settings import Settings
from steersman.intent.verdict import Rest, Wake
from steersman.testing.decision_driver import USUAL, StaticCaches
from tests.harness.rounds import NOW, Rounds

DRIVER, POOL = "some-driver", "worker"
KEY, VALUE = "example.com/taint", "something"
HOUR = 3600
MARKING, CANCELLING = "Marking for deletion", "Cancelling deletion"


def configured() -> Controller[Any]:
    gates = {"DRADeviceTaintRules": True, "DRAWorkloadResourceClaims": True, "GenericWorkload": True}
    built = controller.configured(Settings(gates=gates))
    assert built is not None
    return built


def taint(effect: str = "NoExecute", value: str = VALUE, key: str = KEY, later: float = 0) -> DeviceTaint:
    return DeviceTaint(key=key, value=value, effect=effect, timeAdded=NOW + timedelta(seconds=later))


def slice_of(*devices: Device, name: str = "slice", pool: str = POOL, generation: int = 1) -> ResourceSlice:
    return ResourceSlice(
        metadata=ObjectMeta(name=name, uid=name),
        spec=ResourceSliceSpec(
            driver=DRIVER, pool=ResourcePool(name=pool, generation=generation), devices=devices
        ),
    )


def published(*taints: DeviceTaint, **fields: Any) -> ResourceSlice:
    """A slice whose first device has these taints."""
    return slice_of(
        Device(name="instance", taints=taints),
        Device(name="instance-no-schedule", taints=(taint("NoSchedule"),)),
        Device(name="instance-no-execute", taints=(taint("None"), taint())),
        **fields,
    )


UNTAINTED = published()
TAINTED = published(taint())
TWICE = published(taint(value=""), taint(key=f"{KEY}-other", value=""))
SECOND = published(name="slice-2", pool="worker-2", generation=2)


def rule(
    name: str = "evict", effect: str = "NoExecute", device: str | None = None, later: float = 0, uid: str = ""
) -> DeviceTaintRule:
    return DeviceTaintRule(
        metadata=ObjectMeta(name=name, uid=uid or name, generation=1),
        spec=DeviceTaintRuleSpec(
            deviceSelector=DeviceTaintSelector(driver=DRIVER, device=device),
            taint=taint(effect, later=later),
        ),
    )


def claim(
    *devices: str,
    name: str = "claim",
    namespace: str = "d",
    pods: Iterable[str] = ("p",),
    group: str = "",
    owner: str = "p",
    tolerations: tuple[DeviceToleration, ...] = (),
    allocated: bool = True,
    uid: str = "",
) -> ResourceClaim:
    results = tuple(
        DeviceRequestAllocationResult(driver=DRIVER, pool=POOL, device=each, tolerations=tolerations)
        for each in devices or ("instance",)
    )
    reserved = [
        ResourceClaimConsumerReference(resource="pods", name=each, uid=f"{namespace}-{each}") for each in pods
    ]
    kind, api = ("PodGroup", "scheduling.k8s.io/v1alpha2") if group else ("Pod", "v1")
    if group:
        reserved = [
            ResourceClaimConsumerReference(
                apiGroup="scheduling.k8s.io", resource="podgroups", name=group, uid=group
            )
        ]
    reference = OwnerReference(
        apiVersion=api, kind=kind, name=group or owner, uid=group or f"{namespace}-{owner}", controller=True
    )
    return ResourceClaim(
        metadata=ObjectMeta(
            name=name, namespace=namespace, uid=uid or f"uid-{name}", ownerReferences=(reference,)
        ),
        status=ResourceClaimStatus(
            allocation=AllocationResult(devices=DeviceAllocationResult(results=results))
            if allocated
            else None,
            reservedFor=tuple(reserved) if allocated else (),
        ),
    )


def tolerating(
    seconds: int | None = None, key: str = "", value: str = "", effect: str = "NoExecute"
) -> DeviceToleration:
    operator = "Equal" if value else "Exists"
    return DeviceToleration(key=key, operator=operator, value=value, effect=effect, tolerationSeconds=seconds)


def pod(
    *claims: str,
    name: str = "p",
    namespace: str = "d",
    node: str = "worker",
    group: str = "",
    template: bool = False,
    status: str | None = "",
    uid: str = "",
) -> Pod:
    """``status`` is the claim in its status: none, or a name; "" leaves the status empty."""
    listed = tuple(
        PodResourceClaim(name=each, resourceClaimTemplateName=each)
        if template
        else PodResourceClaim(name=each, resourceClaimName=each)
        for each in claims or ("claim",)
    )
    statuses = (
        (PodResourceClaimStatus(name=listed[0].name, resourceClaimName=status),) if status != "" else ()
    )
    return Pod(
        metadata=ObjectMeta(name=name, namespace=namespace, uid=uid or f"{namespace}-{name}", generation=1),
        spec=PodSpec(
            nodeName=node,
            resourceClaims=listed,
            schedulingGroup=PodSchedulingGroup(podGroupName=group) if group else None,
        ),
        status=PodStatus(resourceClaimStatuses=statuses),
    )


FROM_TEMPLATE = pod(template=True, status="claim")


def known_rule(rounds: Rounds, name: str = "evict") -> DeviceTaintRule:
    found = rounds.caches[DEVICETAINTRULES].get(Key("", name))
    assert found is not None
    return found


def condition(rounds: Rounds, name: str = "evict") -> tuple[str, str, str]:
    """Status, reason and message of the condition of a rule."""
    (one,) = known_rule(rounds, name).status.conditions
    assert (one.type, one.observedGeneration) == ("EvictionInProgress", 1)
    return one.status, one.reason, one.message


# -- which pods are evicted -------------------------------------------------------------------------

LIMITED = claim(tolerations=(tolerating(HOUR, KEY, VALUE),))
MANY = claim(
    tolerations=(tolerating(20, f"{KEY}-other", VALUE), tolerating(60), tolerating(30)),
)
ONE_FOR_EVER = claim(tolerations=(tolerating(60), tolerating()))


@pytest.mark.parametrize(
    ("objects", "after"),
    [
        ((UNTAINTED, SECOND), None),
        ((UNTAINTED, SECOND, claim()), None),
        ((TAINTED, SECOND, claim()), None),
        ((TAINTED, SECOND, claim(), pod()), 0),
        ((TAINTED, SECOND, claim(group="g"), pod(group="g")), 0),
        ((TAINTED, SECOND, claim(group="g"), pod("other", group="g")), None),
        ((claim(), pod(), rule()), 0),
        ((LIMITED, pod(), rule()), HOUR),
        ((TAINTED, SECOND, claim(), FROM_TEMPLATE), 0),
        ((TAINTED, SECOND, LIMITED, pod()), HOUR),
        ((TAINTED, SECOND, MANY, pod()), 30),
        ((TAINTED, SECOND, claim(tolerations=(tolerating(60, f"{KEY}-other", VALUE),)), pod()), 0),
        ((TAINTED, SECOND, claim(tolerations=(tolerating(),)), pod()), None),
        ((TAINTED, SECOND, ONE_FOR_EVER, pod()), None),
        ((TWICE, SECOND, claim(tolerations=(tolerating(key=KEY),)), pod()), 0),
        (
            (
                TWICE,
                rule(),
                rule("other", device="instance"),
                claim(tolerations=(tolerating(60, KEY), tolerating(30, f"{KEY}-other"))),
                pod(),
            ),
            30,
        ),
        ((TAINTED, SECOND, claim(), pod(node="")), None),
        ((slice_of(Device(name="instance")), claim(), pod()), None),
        ((TAINTED, SECOND, claim(), pod(template=True)), None),
        ((TAINTED, SECOND, claim(), pod(template=True, status=None)), None),
        ((slice_of(Device(name="other", taints=(taint(),))), claim(), FROM_TEMPLATE), None),
        # The claim is reserved for another pod of this name, or was made for it.
        ((TAINTED, SECOND, claim(), pod(uid="another")), None),
        ((TAINTED, SECOND, claim(owner="q"), FROM_TEMPLATE), None),
        ((TAINTED, SECOND, claim(owner="q"), pod()), 0),
        ((published(taint("None")), SECOND, claim(), FROM_TEMPLATE), None),
        ((published(taint("unknown-effect")), SECOND, claim(), FROM_TEMPLATE), None),
        ((published(taint("NoSchedule")), SECOND, claim(), FROM_TEMPLATE), None),
        # A negative time is none; a toleration without effect does not tolerate NoExecute.
        ((TAINTED, claim(tolerations=(tolerating(-5),)), pod()), 0),
        ((TAINTED, claim(tolerations=(tolerating(effect=""),)), pod()), 0),
        ((TAINTED, claim(tolerations=(tolerating(effect="NoSchedule"),)), pod()), 0),
        # One of two devices is tainted.
        ((UNTAINTED, claim("instance", "instance-no-execute"), pod()), 0),
        ((UNTAINTED, claim("instance", "instance-no-schedule"), pod()), None),
        # The taint is in a slice that was replaced.
        ((published(taint("None")), published(name="new", generation=2), claim(), pod()), None),
        ((UNTAINTED, published(taint(), name="new", generation=2), claim(), pod()), 0),
        # The earlier of two claims.
        ((TAINTED, LIMITED, claim(name="b", pods=("p",)), pod("claim", "b")), 0),
        ((published(taint(later=50)), claim(), pod()), 50),
        ((rule(later=50), claim(), pod()), 50),
        ((rule(effect="NoSchedule"), claim(), pod()), None),
        ((rule(device="other"), claim(), pod()), None),
        ((replace(rule(), spec=DeviceTaintRuleSpec(taint=taint())), claim(), pod()), None),
        # A time that could not be written counts as a hundred years.
        ((TAINTED, claim(tolerations=(tolerating(2**62),)), pod()), 100 * 365 * 86_400),
    ],
)
def test_pods_with_tainted_devices_are_evicted_in_time(
    objects: tuple[Object, ...], after: int | None
) -> None:
    orders = list(permutations(objects))[:24]
    for order in (*orders, objects[::-1]):
        rounds = Rounds(configured())
        for each in order:
            rounds.put(each)
        if after:
            rounds.advance(after - 1)
            assert rounds.deleted == []
            rounds.advance(1)
        assert rounds.deleted == ([] if after is None else ["p"])
        assert rounds.events == ([] if after is None else [MARKING])


# -- changes ------------------------------------------------------------------------------------------


class Step(msgspec.Struct, frozen=True):
    """An object that is put into the caches, or removed."""

    obj: Object
    removed: bool = False


def put(obj: Object) -> Step:
    return Step(obj)


def remove(obj: Object) -> Step:
    return Step(obj, removed=True)


SCHEDULED = (TAINTED, SECOND, LIMITED, FROM_TEMPLATE)
BY_RULE = (rule(), LIMITED, pod())


@pytest.mark.parametrize(
    ("known", "then", "deleted", "events"),
    [
        ((TAINTED, claim(), pod(node="")), put(pod()), ["p"], [MARKING]),
        ((TAINTED, claim(), pod(uid="another")), put(pod()), ["p"], [MARKING]),
        ((TAINTED, claim(owner="q", uid="old"), FROM_TEMPLATE), put(claim()), ["p"], [MARKING]),
        (SCHEDULED, put(UNTAINTED), [], [CANCELLING]),
        (SCHEDULED, put(published(taint("NoSchedule"))), [], [CANCELLING]),
        (SCHEDULED, put(published(taint(value="other"))), ["p"], [MARKING]),
        (SCHEDULED, put(published(name="new", generation=2)), [], [CANCELLING]),
        (SCHEDULED, remove(TAINTED), [], [CANCELLING]),
        (SCHEDULED, remove(FROM_TEMPLATE), [], []),
        (SCHEDULED, put(claim(allocated=False)), [], [CANCELLING]),
        (SCHEDULED, remove(LIMITED), [], [CANCELLING]),
        (
            SCHEDULED,
            put(replace(FROM_TEMPLATE, metadata=replace(FROM_TEMPLATE.metadata, labels={"a": "b"}))),
            [],
            [],
        ),
        (SCHEDULED, put(replace(TAINTED, metadata=replace(TAINTED.metadata, labels={"a": "b"}))), [], []),
        (SCHEDULED, put(published(taint(), taint("NoSchedule"))), [], []),
        (BY_RULE, remove(rule()), [], [CANCELLING]),
        (BY_RULE, put(rule(effect="NoSchedule")), [], [CANCELLING]),
        (BY_RULE, put(rule(device="other")), [], [CANCELLING]),
        (BY_RULE, put(TAINTED), [], []),
        (BY_RULE, put(replace(rule(), metadata=replace(rule().metadata, labels={"a": "b"}))), [], []),
        ((TAINTED, claim(), pod(), UNTAINTED), put(TAINTED), ["p"], [MARKING]),
    ],
)
def test_a_change_starts_or_cancels_an_eviction(
    known: tuple[Object, ...], then: Step, deleted: list[str], events: list[str]
) -> None:
    rounds = Rounds(configured(), *known)
    if then.removed:
        rounds.remove(then.obj)
    else:
        rounds.put(then.obj)
    assert (rounds.deleted, rounds.events) == (deleted, events)


def concerned(change: Change[ResourceSlice], *slices: ResourceSlice) -> list[Key]:
    """The keys that a change of a slice leads to, where the caches have these slices."""
    built = configured()
    caches = StaticCaches(built, *slices, LIMITED, FROM_TEMPLATE)
    watch = next(each for each in built.watches if each.kind is RESOURCESLICES)
    return list(watch.to(caches, change))


LATER = tuple(slice_of(Device(name=name), name=name, generation=2) for name in ("one", "two"))


@pytest.mark.parametrize("told", LATER)
def test_a_slice_is_hidden_by_each_of_a_later_generation(told: ResourceSlice) -> None:
    """The caches may have all of them before the first one is told of."""
    assert concerned(Change(None, told), TAINTED, *LATER) == [Key("d", "pod/p")]
    assert concerned(Change(told, None), TAINTED) == [Key("d", "pod/p")]
    earlier = replace(told, spec=replace(told.spec, pool=ResourcePool(name=POOL, generation=1)))
    assert concerned(Change(earlier, told), TAINTED, *LATER) == [Key("d", "pod/p")]


def test_a_slice_concerns_no_pods_of_others_of_its_generation() -> None:
    other = slice_of(Device(name="other", taints=(taint(),)), name="other")
    assert concerned(Change(None, other), TAINTED, other) == []
    assert concerned(Change(None, TAINTED), TAINTED, other) == [Key("d", "pod/p")]
    assert concerned(Change(TAINTED, UNTAINTED), UNTAINTED, other) == [Key("d", "pod/p")]


def test_a_slice_that_is_published_anew_cancels_and_starts_an_eviction() -> None:
    rounds = Rounds(configured(), *SCHEDULED)
    rounds.remove(TAINTED)
    rounds.put(published(taint(value="other")))
    assert (rounds.deleted, rounds.events) == (["p"], [CANCELLING, MARKING])


def test_a_pod_is_marked_then_deleted() -> None:
    rounds = Rounds(configured(), TAINTED, claim(), pod())
    assert [type(each) for each in rounds.actions if not isinstance(each, Measure)][:4] == [
        Read,
        Emit,
        Patch,
        Delete,
    ]
    emitted = next(each for each in rounds.actions if isinstance(each, Emit))
    assert (emitted.type, emitted.reason) == ("Normal", "DeviceTaintManagerEviction")
    patch = next(each for each in rounds.actions if isinstance(each, Patch))
    assert patch.body == {
        "metadata": {"uid": "d-p"},
        "status": {
            "conditions": [
                {
                    "type": "DisruptionTarget",
                    "status": "True",
                    "lastTransitionTime": "2026-01-01T12:00:00Z",
                    "reason": "DeletionByDeviceTaintManager",
                    "message": "Device Taint manager: deleting due to NoExecute taint",
                }
            ]
        },
    }
    measured = [(each.metric, each.value) for each in rounds.actions if isinstance(each, Measure)]
    assert [metric for metric, _ in measured] == [DELETIONS, LATENCY]


def test_a_pod_that_has_the_condition_is_only_deleted() -> None:
    marked = Condition(
        type="DisruptionTarget",
        status="True",
        reason="DeletionByDeviceTaintManager",
        message="Device Taint manager: deleting due to NoExecute taint",
        lastTransitionTime=NOW,
    )
    rounds = Rounds(configured(), TAINTED, claim(), replace(pod(), status=PodStatus(conditions=(marked,))))
    assert rounds.writes == ["delete p"]


def test_an_evicted_pod_is_left_alone_until_it_is_gone() -> None:
    rounds = Rounds(configured(), TAINTED, claim(), pod())
    rounds.put(published(taint(), taint(key="b")))
    rounds.put(UNTAINTED)
    assert (rounds.deleted, rounds.events) == (["p"], [MARKING])
    assert rounds.verdicts[Key("d", "pod/p")] == Rest("pod has been evicted")


@pytest.mark.parametrize(
    ("live", "counted"),
    [
        (NotFound("gone"), 0),
        (pod(uid="another"), 0),
        (replace(pod(), metadata=replace(pod().metadata, deletionTimestamp=NOW)), 1),
    ],
)
def test_a_pod_that_is_gone_or_leaving_is_not_deleted(live: Any, counted: int) -> None:
    rounds = Rounds(configured(), TAINTED, claim())
    rounds.answers = {Read: live}
    rounds.put(pod())
    assert (rounds.writes, rounds.events) == ([], [])
    assert len([each for each in rounds.actions if isinstance(each, Measure)]) == 2 * counted


def test_a_failed_eviction_is_tried_again() -> None:
    rounds = Rounds(configured(), TAINTED, claim())
    rounds.answers = lambda action: (
        ServerError("busy") if isinstance(action, Delete) else pod() if isinstance(action, Read) else USUAL
    )
    with pytest.raises(ServerError):
        rounds.put(pod())
    rounds.answers = None
    rounds.round(Key("d", "pod/p"))
    assert rounds.deleted == ["p", "p"]
    assert rounds.verdicts[Key("d", "pod/p")] == Rest(
        "pod evicted: it does not tolerate the taints of its devices"
    )


def test_the_eviction_of_a_failed_pod_can_still_be_cancelled() -> None:
    rounds = Rounds(configured(), TAINTED, claim())
    rounds.answers = {Read: ServerError("busy")}
    with pytest.raises(ServerError):
        rounds.put(pod())
    rounds.answers = None
    rounds.put(UNTAINTED)
    assert (rounds.deleted, rounds.events) == ([], [CANCELLING])


def test_a_scheduled_eviction_says_how_long_it_waits() -> None:
    rounds = Rounds(configured(), *SCHEDULED)
    assert rounds.verdicts[Key("d", "pod/p")] == Wake(
        timedelta(seconds=HOUR), "pod tolerates the taints of its devices for a limited time"
    )


def test_without_the_gates_rules_and_pod_groups_do_not_count() -> None:
    plain = Rounds(controller, TAINTED, claim(group="g"), pod(group="g"))
    assert plain.deleted == []
    assert {watch.kind.plural for watch in controller.watches} == {"pods", "resourceclaims", "resourceslices"}
    assert controller.configured(Settings(gates={"DRADeviceTaints": False})) is None


# -- conditions of rules ------------------------------------------------------------------------------

PENDING, COMPLETED = "PodsPendingEviction", "Completed"
OTHER_NAMESPACE = (
    claim("instance-no-schedule", "instance-no-execute", namespace="e"),
    pod(namespace="e"),
)
OTHER_NAME = (
    claim("instance-no-schedule", "instance-no-execute", name="b", pods=("q",), owner="q"),
    pod("b", name="q"),
)


def stored(*objects: Object) -> Rounds:
    rounds = Rounds(configured(), stores=True)
    for each in objects:
        rounds.put(each)
    return rounds


@pytest.mark.parametrize(
    ("objects", "pending", "done"),
    [
        (
            (claim(), pod()),
            "1 pod needs to be evicted in 1 namespace.",
            "1 pod evicted since starting the controller.",
        ),
        (
            (claim(), pod(), *OTHER_NAMESPACE),
            "2 pods need to be evicted in 2 different namespaces.",
            "2 pods evicted since starting the controller.",
        ),
        (
            (claim(), pod(), *OTHER_NAME),
            "2 pods need to be evicted in 1 namespace.",
            "2 pods evicted since starting the controller.",
        ),
        # Two claims of one pod are one reason.
        (
            (claim(), claim(name="b"), pod("claim", "b")),
            "1 pod needs to be evicted in 1 namespace.",
            "1 pod evicted since starting the controller.",
        ),
    ],
)
def test_the_condition_of_a_rule_follows_its_evictions(
    objects: tuple[Object, ...], pending: str, done: str
) -> None:
    rounds = stored(*objects, rule())
    assert condition(rounds) == ("True", PENDING, pending)
    rounds.advance(9)
    assert condition(rounds) == ("True", PENDING, pending)
    rounds.advance(2)
    assert condition(rounds) == ("False", COMPLETED, done)
    assert set(rounds.events) == {MARKING}


def test_the_condition_of_a_rule_waits_for_pods_that_tolerate_it_for_a_time() -> None:
    rounds = stored(LIMITED, pod(), rule())
    message = "1 pod needs to be evicted in 1 namespace."
    for _ in range(3):
        assert condition(rounds) == ("True", PENDING, message)
        rounds.advance(1000)
    rounds.advance(HOUR - 3000)
    assert rounds.deleted == ["p"]
    assert condition(rounds) == ("True", PENDING, message)
    rounds.advance(10)
    assert condition(rounds) == ("False", COMPLETED, "1 pod evicted since starting the controller.")


@pytest.mark.parametrize("gone", [pod(), LIMITED])
def test_the_condition_of_a_rule_follows_pods_that_leave_the_device_before_they_are_evicted(
    gone: Object,
) -> None:
    rounds = stored(LIMITED, pod(), rule())
    rounds.advance(100)
    assert condition(rounds) == ("True", PENDING, "1 pod needs to be evicted in 1 namespace.")
    rounds.remove(gone)
    rounds.advance(11)
    assert condition(rounds) == ("False", "NotStarted", "")


def test_two_rules_count_the_pod_that_both_evict() -> None:
    first, second = rule("first", device="instance"), rule("second", device="instance-no-execute", later=40)
    shared = claim("instance-no-execute", name="b", pods=("p", "q"), owner="q")
    rounds = stored(claim(), shared, pod("claim", "b"), second, first)
    rounds.advance(11)
    for name in ("first", "second"):
        expected = ("False", COMPLETED, "1 pod evicted since starting the controller.")
        assert condition(rounds, name) == expected
    assert rounds.deleted == ["p"]


ADVICE = "This information will not be updated again. Recreate the DeviceTaintRule to trigger an update."


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        (
            (UNTAINTED, claim(), pod()),
            "3 published devices selected. 1 allocated device selected. "
            "1 pod would be evicted in 1 namespace if the effect was NoExecute.",
        ),
        (
            (claim(), pod(), *OTHER_NAMESPACE),
            "0 published devices selected. 3 allocated devices selected. "
            "2 pods would be evicted in 2 different namespaces if the effect was NoExecute.",
        ),
        (
            (claim(), pod(), *OTHER_NAME),
            "0 published devices selected. 3 allocated devices selected. "
            "2 pods would be evicted in 1 namespace if the effect was NoExecute.",
        ),
        (
            (UNTAINTED, claim(group="g"), pod(group="g")),
            "3 published devices selected. 1 allocated device selected. "
            "1 pod would be evicted in 1 namespace if the effect was NoExecute.",
        ),
        (
            (slice_of(Device(name="instance")),),
            "1 published device selected. 0 allocated devices selected. "
            "0 pods would be evicted in 0 different namespaces if the effect was NoExecute.",
        ),
    ],
)
def test_a_rule_without_effect_says_what_it_would_do(objects: tuple[Object, ...], message: str) -> None:
    rounds = stored(*objects, rule(effect="None"))
    assert condition(rounds) == ("False", "NoEffect", f"{message} {ADVICE}")
    assert rounds.deleted == []


@pytest.mark.parametrize(
    ("objects", "effect", "expected"),
    [
        ((), "NoExecute", ("False", "NotStarted", "")),
        ((claim(),), "NoExecute", ("False", "NotStarted", "")),
        (
            (claim(), pod()),
            "NoSchedule",
            ("False", "OtherEffect", "Eviction only happens for the NoExecute effect."),
        ),
    ],
)
def test_the_condition_of_a_rule_that_evicts_no_pod(
    objects: tuple[Object, ...], effect: str, expected: tuple[str, str, str]
) -> None:
    assert condition(stored(*objects, rule(effect=effect))) == expected


def test_the_condition_is_not_written_again_while_nothing_changes() -> None:
    rounds = stored(claim(), LIMITED, pod(), rule())
    rounds.advance(100)
    before = len(rounds.writes)
    rounds.round(Key("", "rule/evict"))
    assert len(rounds.writes) == before
    assert rounds.verdicts[Key("", "rule/evict")] == Rest("the condition is up to date")


def test_a_new_generation_of_a_rule_does_not_wait() -> None:
    rounds = stored(rule())
    known = known_rule(rounds)
    rounds.put(
        replace(known, spec=rule(effect="NoSchedule").spec, metadata=replace(known.metadata, generation=2))
    )
    patches: list[Any] = [each.body for each in rounds.actions if isinstance(each, Patch)]
    (written,) = patches[-1]["status"]["conditions"]
    assert (written["reason"], written["observedGeneration"]) == ("OtherEffect", 2)
    assert patches[-1]["metadata"] == {"name": "evict", "uid": "evict"}


def test_a_rule_that_was_deleted_is_forgotten() -> None:
    rounds = stored(claim(), pod(), rule())
    rounds.advance(20)
    rounds.remove(known_rule(rounds))
    rounds.put(rule())
    assert condition(rounds) == ("False", "NotStarted", "")
