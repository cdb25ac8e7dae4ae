"""WebhookConverter: converts custom resources between versions by a definition's conversion webhook.

Nothing here waits: where an answer is missing, `CallNeeded` is raised and the request is run again with it. What an object
reads as in another version is kept for as long as the object, as upstream's watch caches keep it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from steersman.api.errors import ServerError
from steersman.api.generated.apiextensions_v1 import WebhookConversion
from steersman.api.kinds import EMPTY
from steersman.server.calls import (
    Call,
    CallNeeded,
    Endpoint,
    ServiceRef,
    question_key,
    service_endpoint,
    url_endpoint,
)
from steersman.server.codec.hook_response import InvalidResponse, StatusResponse, json_type, response_document
from steersman.server.crd.custom import CustomResource, document
from steersman.server.crd.pruning import OBJECT_FIELDS
from steersman.server.crd.version import CompiledVersion
from steersman.server.server import Server
from steersman.server.status_errors import quote
from steersman.server.storage.store import object_key
from steersman.server.validation.field_errors import FieldErrors
from steersman.server.validation.metadata import validate_annotations, validate_labels

GROUP = "apiextensions.k8s.io"
VERSIONS = ("v1", "v1beta1")
TIMEOUT = 30.0
"""Seconds that a conversion may take, as upstream."""
_KEPT = 10_000
"""Conversions of objects that are kept, at least."""


class Converted(msgspec.Struct, frozen=True):
    """The parts of an object that a webhook may change."""

    content: Mapping[str, Any]
    labels: Mapping[str, str]
    annotations: Mapping[str, str]

    @classmethod
    def of(cls, obj: CustomResource) -> Converted:
        return cls(obj.content, obj.metadata.labels, obj.metadata.annotations)

    def applied_to(self, obj: CustomResource) -> CustomResource:
        meta = replace(obj.metadata, labels=self.labels, annotations=self.annotations)
        return replace(obj, metadata=meta, content=self.content)


class WebhookConverter:
    """The conversion webhook of one definition."""

    def __init__(
        self, server: Server, name: str, webhook: WebhookConversion, versions: Mapping[str, CompiledVersion]
    ) -> None:
        self._server = server
        self._name = name
        self._webhook = webhook
        self._versions = versions
        self._review = next((one for one in webhook.conversionReviewVersions if one in VERSIONS), "")
        self._kept: dict[tuple[int, str], tuple[Converted, Converted]] = {}
        """By the identity of a stored content, and version: the object that was converted, and the result."""
        self._most = _KEPT

    # -- stored objects -----------------------------------------------------------------------

    def served(self, obj: CustomResource, target: str) -> CustomResource:
        """A stored object in another version."""
        if obj.stored_in == target or obj.stored_in not in self._versions:
            return obj
        known = self._known(obj, target)
        if known is None:
            (made,) = self.convert((obj,), obj.stored_in, target)
            known = Converted.of(made)
            self.keep(obj, target, known)
        return known.applied_to(obj)

    def serve_all(self, objects: Sequence[CustomResource], target: str) -> None:
        """Converts many stored objects with one call, so that `served` has them."""
        self._most = max(self._most, 2 * len(objects))
        by_version: dict[str, list[CustomResource]] = {}
        for obj in objects:
            other = obj.stored_in != target and obj.stored_in in self._versions
            if other and self._known(obj, target) is None:
                by_version.setdefault(obj.stored_in, []).append(obj)
        needed: list[Call] = []
        for source, missing in by_version.items():
            try:
                for obj, made in zip(missing, self.convert(missing, source, target), strict=True):
                    self.keep(obj, target, Converted.of(made))
            except CallNeeded as calls:
                if not calls.calls:
                    raise
                needed += calls.calls
        if needed:
            raise CallNeeded(needed)

    def keep(self, obj: CustomResource, target: str, converted: Converted) -> None:
        """Keeps what a stored object reads as in another version."""
        if len(self._kept) >= self._most:
            for key in list(self._kept)[: self._most // 4]:
                del self._kept[key]
        self._kept[id(obj.content), target] = Converted.of(obj), converted

    def _known(self, obj: CustomResource, target: str) -> Converted | None:
        found = self._kept.get((id(obj.content), target))
        if found is None:
            return None
        source, converted = found
        # Other metadata cannot change in a conversion; the reference keeps the identity from being used again.
        same = source.content is obj.content and (source.labels, source.annotations) == (
            obj.metadata.labels,
            obj.metadata.annotations,
        )
        return converted if same else None

    # -- one call -----------------------------------------------------------------------------

    def convert(
        self, objects: Sequence[CustomResource], source: str, target: str
    ) -> Sequence[CustomResource]:
        """Objects of one version in another. Raises `CallNeeded`, or what a conversion that fails is answered with."""
        if source == target or not objects:
            return objects
        version = self._versions[source]
        head = f"conversion webhook for {version.group}/{source}, Kind={version.kind}"
        answers = self._server.answers
        if answers is None:
            raise CallNeeded
        if not self._review:
            raise ServerError("no supported conversion review versions")
        desired = f"{version.group}/{target}"
        originals = [document(version.api_version, version.kind, obj) for obj in objects]
        request: dict[str, Any] = {"uid": "", "desiredAPIVersion": desired, "objects": originals}
        key = question_key(f"{self._name}/{target}", _encode(self._review, request))
        uid = answers.uid(key)
        call = Call(self._endpoint(), b"", TIMEOUT, key)
        answer = answers.get(key)
        if answer is None:
            if call.endpoint.unresolved:
                raise ServerError(f'{head} failed: Post "{call.url}": {call.endpoint.unresolved}')
            raise CallNeeded([call._replace(body=_encode(self._review, {**request, "uid": uid}))])
        known = tuple((f"{GROUP}/{one}", "ConversionReview") for one in VERSIONS)
        default = f"{GROUP}/{self._review}", "ConversionReview"
        try:
            found = _converted_objects(response_document(call, answer, default, known), uid, self._review)
        except StatusResponse:
            # Upstream's client converts before it looks at the kind.
            why = f"converting (v1.Status) to ({self._review}.ConversionReview): unknown conversion"
            raise ServerError(f"{head} failed: {why}") from None
        except InvalidResponse as error:
            raise ServerError(f"{head} failed: {error}") from None
        if len(found) != len(objects):
            raise ServerError(f"{head} returned {len(found)} objects, expected {len(objects)}")
        made = []
        many = len(objects) > 1
        for index, (obj, original, converted) in enumerate(zip(objects, originals, found, strict=True)):
            what = f"invalid converted object at index {index}" if many else "invalid object"
            at = what if many else "invalid object at index 0"
            _check_kind(converted, desired, version.kind, f"{head} returned {at}")
            _check_identity(converted, original, f"{head} returned {what}")
            where = f"invalid metadata in object at index {index}" if many else "invalid metadata"
            made.append(self._restored(obj, original, converted, target, f"{head} returned {where}"))
        return made

    def _restored(
        self,
        obj: CustomResource,
        original: Mapping[str, Any],
        converted: Mapping[str, Any],
        target: str,
        head: str,
    ) -> CustomResource:
        """The object that a webhook has made, with the metadata of the original but for labels and annotations."""
        meta = converted["metadata"]
        found: dict[str, Mapping[str, str]] = {}
        for name, validate in (("labels", validate_labels), ("annotations", validate_annotations)):
            values = meta.get(name)
            if values is None:
                found[name] = EMPTY
                continue
            if not isinstance(values, Mapping):
                raise ServerError(
                    f"{head}: invalid metadata.{name} of type {_go_type(values)} in converted object"
                )
            for key, value in values.items():
                if not isinstance(value, str):
                    raise ServerError(
                        f"{head}: metadata.{name}[{key}] must be a string, but is {_go_type(value)} in converted object"
                    )
            if values != original["metadata"].get(name, {}):
                errors = FieldErrors()
                # Upstream's path of annotations lacks its last letter.
                validate(errors, f"metadata.{'labels' if name == 'labels' else 'annotation'}", values)
                if errors:
                    lines = [str(error) for error in errors]
                    raise ServerError(
                        f"{head}: {lines[0] if len(lines) == 1 else '[' + ', '.join(lines) + ']'}"
                    )
            found[name] = dict(values) or EMPTY
        content = {name: value for name, value in converted.items() if name not in OBJECT_FIELDS}
        content = self._versions[target].prune_and_default(content, stored=True)
        return Converted(content, found["labels"], found["annotations"]).applied_to(obj)

    def _endpoint(self) -> Endpoint:
        client = self._webhook.clientConfig
        assert client is not None
        service = client.service
        if service is None:
            return url_endpoint(client.url or "", client.caBundle)
        table = self._server.store.table("services")
        return service_endpoint(
            ServiceRef(service.namespace, service.name, service.port or 443),
            service.path or "",
            client.caBundle,
            self._server.webhook_addresses,
            lambda namespace, name: table.get(object_key(namespace, name)),
        )


def _encode(version: str, request: Mapping[str, Any]) -> bytes:
    return msgspec.json.encode(
        {"kind": "ConversionReview", "apiVersion": f"{GROUP}/{version}", "request": request}
    )


# -- the answer -------------------------------------------------------------------------------


def _converted_objects(review: Mapping[str, Any], uid: str, version: str) -> list[Any]:
    """The objects of a response. Raises `InvalidResponse`."""
    if version == "v1":
        group, slash, rest = (review.get("apiVersion") or "").partition("/")
        group, given = (group, rest) if slash else ("", group)
        if (group, given, review.get("kind")) != (GROUP, "v1", "ConversionReview"):
            got = f"{group}/{given}, Kind={review.get('kind') or ''}"
            raise InvalidResponse(
                f"expected webhook response of {GROUP}/v1, Kind=ConversionReview, got {got}"
            )
    response = review.get("response")
    if response is None:
        raise InvalidResponse("no response provided")
    if not isinstance(response, Mapping):
        raise InvalidResponse(
            f"json: cannot unmarshal {json_type(response)} into Go struct field ConversionReview.response "
            f"of type {version}.ConversionResponse"
        )
    if version == "v1" and response.get("uid", "") != uid:
        raise InvalidResponse(
            f"expected response.uid={quote(uid)}, got {quote(str(response.get('uid', '')))}"
        )
    result = response.get("result")
    result = result if isinstance(result, Mapping) else {}
    if result.get("status") != "Success":
        told = (
            result.get("message")
            or f"response.result.status was '{result.get('status') or ''}', not 'Success'"
        )
        raise InvalidResponse(str(told))
    objects = response.get("convertedObjects") or []
    if not isinstance(objects, list):
        raise InvalidResponse(
            f"json: cannot unmarshal {json_type(objects)} into Go struct field "
            "ConversionResponse.response.convertedObjects of type []runtime.RawExtension"
        )
    return objects


def _check_kind(converted: Any, desired: str, kind: str, head: str) -> None:
    if converted is None:
        raise ServerError("unexpected end of JSON input")
    if not isinstance(converted, Mapping):
        raise ServerError(
            f"json: cannot unmarshal {json_type(converted)} into Go value of type map[string]interface {{}}"
        )
    if not converted.get("kind"):
        shown = msgspec.json.encode(converted).decode()
        raise ServerError(f"Object 'Kind' is missing in '{shown}'")
    if (given := converted.get("apiVersion") or "") != desired:
        raise ServerError(f"{head}: invalid groupVersion (expected {desired}, received {given})")
    if converted["kind"] != kind:
        raise ServerError(f"{head}: invalid kind (expected {kind}, received {converted['kind']})")


def _check_identity(converted: Mapping[str, Any], original: Mapping[str, Any], head: str) -> None:
    """Refuses an object that is another: names and uids must not change."""
    meta, was = converted.get("metadata"), original["metadata"]
    found = meta if isinstance(meta, Mapping) else {}
    for name, shown in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        before, after = was.get(name, ""), found.get(name, "")
        if before != after:
            raise ServerError(f"{head}: must have the same {shown}: {before} != {after}")
    if not isinstance(meta, Mapping):
        wrong = "missing metadata" if meta is None else f"invalid metadata of type {_go_type(meta)}"
        raise ServerError(
            f"{head.replace('invalid object', 'invalid metadata')}: {wrong} in converted object"
        )


def _go_type(value: object) -> str:
    names = {
        "bool": "bool",
        "string": "string",
        "array": "[]interface {}",
        "object": "map[string]interface {}",
        "null": "<nil>",
    }
    return names.get(json_type(value), "float64" if isinstance(value, float) else "int64")
