"""Admission webhooks: asks the webhooks whose rules match a request, and applies what they answer.

Mutating webhooks are asked one after the other, in the order of their configurations' names, then validating webhooks
side by side. Nothing here waits: where an answer is missing, `CallNeeded` is raised and the request is run again with it
(see `steersman.server.calls`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from msgspec.structs import replace

from steersman.api.errors import ApiError
from steersman.api.generated.admissionregistration_v1 import (
    MutatingWebhook,
    ValidatingWebhook,
    WebhookClientConfig,
)
from steersman.api.go_yaml import MalformedDocument
from steersman.api.patch import PatchError, TooManyOperations
from steersman.api.patch import json as json_patch
from steersman.server import status_errors
from steersman.server.admission.forms import AdmissionForm, admission_request, requested_resource
from steersman.server.admission.matching import (
    Matcher,
    ServedVersions,
    compile_webhook,
    is_exempt,
    namespace_labels,
)
from steersman.server.admission.plugin import Listers
from steersman.server.admission.webhooks.review import (
    AdmissionReview,
    encode_review,
    read_response,
    rejection,
    review_version,
    verify_response,
)
from steersman.server.calls import (
    Call,
    CallNeeded,
    Endpoint,
    ServiceRef,
    question_key,
    service_endpoint,
    url_endpoint,
)
from steersman.server.codec.hook_response import InvalidResponse, json_type
from steersman.server.codec.json_yaml import decode_json
from steersman.server.evaluation import evaluated, evaluation_key
from steersman.server.registry.resources import Resource
from steersman.server.server import AdmissionAttributes, Server
from steersman.server.status_errors import quote
from steersman.server.storage.watch import Selection

if TYPE_CHECKING:
    from steersman.api.cel.policy_expressions import Compiled

_log = logging.getLogger(__name__)

GROUP = "admissionregistration.k8s.io"
TABLES = (f"mutatingwebhookconfigurations.{GROUP}", f"validatingwebhookconfigurations.{GROUP}")
DEFAULT_TIMEOUT = 10

Mutate: TypeAlias = Callable[[AdmissionAttributes], Any]
"""Runs built-in plugins; returns the object."""


class Hook(msgspec.Struct, frozen=True):
    """One webhook of a configuration, compiled."""

    configuration: str
    uid: str
    """Its name within all configurations."""
    webhook: MutatingWebhook | ValidatingWebhook
    matcher: Matcher
    conditions: tuple[Compiled, ...]
    """The match conditions, compiled."""
    version: str
    """The version of the reviews it is sent; empty if it accepts no known one."""

    @property
    def name(self) -> str:
        return self.webhook.name

    @property
    def ignores_failure(self) -> bool:
        return self.webhook.failurePolicy == "Ignore"


class CallFailed(Exception):
    """A webhook could not be asked, or its answer could not be used. Its failurePolicy decides."""


class _Reinvocation:
    """Which webhooks are asked a second time, as upstream decides it."""

    def __init__(self) -> None:
        self.needed = False
        """Whether a webhook has changed the object, so that all plugins run again."""
        self.again: set[str] = set()
        """The uids of webhooks to ask again."""
        self._asked: list[str] = []

    def asked(self, hook: Hook, *, changed: bool) -> None:
        if changed:
            self.require()
            self.needed = True
        if isinstance(hook.webhook, MutatingWebhook) and hook.webhook.reinvocationPolicy == "IfNeeded":
            self._asked.append(hook.uid)

    def require(self) -> None:
        """The object has changed: all webhooks asked so far that want it are asked again."""
        self.again.update(self._asked)
        self._asked.clear()


class WebhookAdmission:
    """The webhooks of one server."""

    def __init__(self, server: Server, listers: Listers) -> None:
        self._server = server
        self._listers = listers
        self._versions = ServedVersions(server.registry)
        self.mutating: tuple[Hook, ...] = ()
        self.validating: tuple[Hook, ...] = ()
        for table in TABLES:
            self.changed(table)

    def changed(self, table: str) -> None:
        """Compiles the configurations of a table again, after one was written or removed."""
        hooks = tuple(_hooks(list(self._server.store.table(table).select(Selection()))))
        if table == TABLES[0]:
            self.mutating = hooks
        else:
            self.validating = hooks

    # -- dispatching --------------------------------------------------------------------------

    def mutate(self, request: AdmissionAttributes, plugins: Mutate) -> Any:
        """Runs the built-in plugins and asks mutating webhooks; both once more where a webhook has changed the object."""
        obj = plugins(request)
        if is_exempt(request.resource):
            return obj
        if request.operation == "CREATE" and not request.subresource:
            # The server has not set these yet, and the client may not.
            meta = replace(obj.metadata, uid="", creationTimestamp=None, deletionTimestamp=None, selfLink="")
            obj = replace(obj, metadata=replace(meta, deletionGracePeriodSeconds=None))
        rounds = _Reinvocation()
        obj = self._ask_mutating(replace(request, obj=obj), rounds, 0)
        if rounds.needed:
            last, obj = obj, plugins(replace(request, obj=obj))
            if obj != last:
                rounds.require()
            obj = self._ask_mutating(replace(request, obj=obj), rounds, 1)
        return obj

    def _ask_mutating(self, request: AdmissionAttributes, rounds: _Reinvocation, number: int) -> Any:
        again = frozenset(rounds.again)
        for index, hook in enumerate(self.mutating):
            matched = self._match(hook, request)
            if matched is None or (number and hook.uid not in again):
                continue
            changed, place = False, f"mutation.webhook.admission.k8s.io/round_{number}_index_{index}"
            try:
                made = self._mutated(hook, request, matched, f"{number}/{index}/{hook.uid}")
                changed = made is not request.obj and made != request.obj
            except CallFailed as failure:
                self._failed(hook, failure, place)
                rounds.asked(hook, changed=False)
                continue
            finally:
                self._server.annotate(place, _mutation_annotation(hook, changed))
            rounds.asked(hook, changed=changed)
            request = replace(request, obj=made)
        return request.obj

    def validate(self, request: AdmissionAttributes) -> None:
        """Asks validating webhooks, side by side. Raises the first refusal, in their order."""
        if is_exempt(request.resource):
            return
        needed: list[Call] = []
        refused: ApiError | None = None
        relevant = -1
        for index, hook in enumerate(self.validating):
            matched = self._match(hook, request)
            if matched is None:
                continue
            relevant += 1
            try:
                self._response(hook, request, matched, f"validate/{index}/{hook.uid}")
            except CallNeeded as call:
                if request.answers is None:
                    raise
                needed += call.calls
            except CallFailed as failure:
                try:
                    self._failed(
                        hook, failure, f"validating.webhook.admission.k8s.io/round_0_index_{relevant}"
                    )
                except ApiError as error:
                    refused = refused or error
            except ApiError as error:
                refused = refused or error
        if needed:
            raise CallNeeded(needed)
        if refused is not None:
            raise refused

    def _match(self, hook: Hook, request: AdmissionAttributes) -> Resource | None:
        """The resource at whose version a webhook is asked; None if it is not."""
        requested = requested_resource(request)
        asked = request if requested is request.resource else replace(request, resource=requested)
        matched = hook.matcher.matches(asked, self._namespace_labels, self._versions)
        if matched is None or not hook.conditions:
            return matched
        return matched if self._conditions_hold(hook, request, matched) else None

    def _conditions_hold(self, hook: Hook, request: AdmissionAttributes, matched: Resource) -> bool:
        """Whether the match conditions of a webhook hold. Where they have no value, its failurePolicy decides."""
        from steersman.server.admission.expressions import PLAIN, ConditionsFailed, Subject, match_conditions

        values = Subject(request, matched, self._listers, namespaced=False).values()
        conditions, ignores = hook.conditions, hook.ignores_failure
        try:
            return evaluated(
                lambda meter: match_conditions(conditions, values, meter, ignore_failure=ignores),
                lambda: evaluation_key("conditions", id(conditions), values[:PLAIN]),
            )
        except ConditionsFailed as error:
            resource = request.resource
            raise status_errors.forbidden(resource.group, resource.plural, request.name, str(error)) from None

    def _namespace_labels(self, request: AdmissionAttributes) -> Any:
        return namespace_labels(request, lambda name: self._listers.get("namespaces", "", name))

    def _failed(self, hook: Hook, failure: CallFailed, place: str) -> None:
        """Raises the refusal of a request whose webhook could not be asked, unless its failurePolicy is Ignore."""
        text = f"failed calling webhook {quote(hook.name)}: {failure}"
        if not hook.ignores_failure:
            raise status_errors.internal(text) from None
        _log.warning("failing open: %s", text)
        self._server.annotate(f"failed-open.{place}", hook.name)

    # -- asking one webhook -------------------------------------------------------------------

    def _mutated(self, hook: Hook, request: AdmissionAttributes, matched: Resource, asked: str) -> Any:
        """The object after one webhook. Raises `CallFailed`, or the refusal."""
        review, patch = self._response(hook, request, matched, asked)
        response = review.response
        assert response is not None
        if not patch:
            return request.obj
        operations = _operations(patch)
        if not operations:
            return request.obj
        if request.obj is None:
            raise status_errors.internal(
                f"admission webhook {quote(hook.name)} attempted to modify the object, "
                "which is not supported for this operation"
            )
        if hook.version == "v1" and response.patchType != "JSONPatch":
            raise CallFailed(f"unsupported patch type {quote(response.patchType or '')}")
        form = AdmissionForm.of(request, matched)
        document = form.document(request.obj, request)
        try:
            changed = json_patch.apply(document, operations)
        except (PatchError, TooManyOperations) as error:
            raise status_errors.internal(str(error)) from None
        return form.read(changed, request)

    def _response(
        self, hook: Hook, request: AdmissionAttributes, matched: Resource, asked: str
    ) -> tuple[AdmissionReview, bytes]:
        """The response of one webhook and its patch. Raises `CallNeeded`, `CallFailed`, or the refusal."""
        webhook = hook.webhook
        if request.dry_run and webhook.sideEffects not in ("None", "NoneOnDryRun"):
            raise status_errors.bad_request(f"admission webhook {quote(hook.name)} does not support dry run")
        if not hook.version:
            raise CallFailed(
                "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)"
            )
        answers = request.answers
        if answers is None:
            raise CallNeeded
        form = AdmissionForm.of(request, matched)
        requested = requested_resource(request)
        question = admission_request(
            request,
            form.kind,
            matched,
            AdmissionForm.of(request, requested).kind,
            requested,
            None if request.obj is None else form.document(request.obj, request),
            None if request.old is None else form.document(request.old, request, new=False),
        )
        key = question_key(asked, encode_review(hook.version, question))
        uid = answers.uid(key)
        timeout = float(webhook.timeoutSeconds or DEFAULT_TIMEOUT)
        call = Call(self._endpoint(webhook.clientConfig), b"", timeout, key)
        answer = answers.get(key)
        if answer is None:
            if call.endpoint.unresolved:
                raise CallFailed(f'failed to call webhook: Post "{call.url}": {call.endpoint.unresolved}')
            question["uid"] = uid
            raise CallNeeded([call._replace(body=encode_review(hook.version, question))])
        try:
            review = read_response(call, answer, hook.version)
        except InvalidResponse as error:
            raise CallFailed(f"failed to call webhook: {error}") from None
        mutating = isinstance(webhook, MutatingWebhook)
        try:
            patch = verify_response(review, uid, hook.version, mutating=mutating)
        except InvalidResponse as error:
            raise CallFailed(f"received invalid webhook response: {error}") from None
        response = review.response
        assert response is not None
        answers.warnings += response.warnings
        for name, value in response.auditAnnotations.items():
            self._server.annotate(f"{hook.name}/{name}", value)
        if not response.allowed:
            raise rejection(hook.name, response.status)
        return review, patch

    def _endpoint(self, client: WebhookClientConfig) -> Endpoint:
        service = client.service
        if service is None:
            return url_endpoint(client.url or "", client.caBundle)
        return service_endpoint(
            ServiceRef(service.namespace, service.name, service.port or 443),
            service.path or "",
            client.caBundle,
            self._server.webhook_addresses,
            lambda namespace, name: self._listers.get("services", namespace, name),
        )


def _hooks(configurations: list[Any]) -> Iterator[Hook]:
    """The webhooks of configurations, in the order they are asked."""
    for configuration in sorted(configurations, key=lambda each: each.metadata.name):
        name = configuration.metadata.name
        seen: dict[str, int] = {}
        for webhook in configuration.webhooks:
            number = seen[webhook.name] = seen.get(webhook.name, -1) + 1
            yield Hook(
                name,
                f"{name}/{webhook.name}/{number}",
                webhook,
                compile_webhook(webhook),
                _conditions(webhook),
                review_version(webhook.admissionReviewVersions),
            )


def _mutation_annotation(hook: Hook, changed: bool) -> str:
    """The audit annotation that says whether a webhook has changed the object."""
    made = {"configuration": hook.configuration, "webhook": hook.name, "mutated": changed}
    return msgspec.json.encode(made).decode()


def _conditions(webhook: MutatingWebhook | ValidatingWebhook) -> tuple[Compiled, ...]:
    if not webhook.matchConditions:
        return ()
    # Few webhooks have conditions, and all of CEL comes with them.
    from steersman.server.admission.expressions import compile_conditions

    return compile_conditions(webhook.matchConditions)


def _operations(patch: bytes) -> list[Any]:
    try:
        operations = decode_json(patch)
    except MalformedDocument as error:
        raise CallFailed(f"received undecodable patch in webhook response: {error}") from None
    if operations is None:
        return []
    if not isinstance(operations, list):
        raise _undecodable(operations, "jsonpatch.Patch")
    for operation in operations:
        if not isinstance(operation, dict):
            raise _undecodable(operation, "jsonpatch.Operation")
    return operations


def _undecodable(value: object, into: str) -> CallFailed:
    return CallFailed(
        "received undecodable patch in webhook response: json: cannot unmarshal "
        f"{json_type(value)} into Go value of type {into}"
    )
