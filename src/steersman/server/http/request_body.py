"""Request bodies: read within a size limit, decoded, and checked for unknown and duplicate fields.

The text of a large YAML body is decoded in a thread. What is left for the event loop takes as long as a JSON body of the
same size: the conversion to structs and its checks, 0.1 to 0.2 s for the 3 MiB that a body may have, and up to 0.5 s where
numbers of ten digits and more have to be checked once again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from steersman.api.bounded_cache import BoundedCache
from steersman.api.errors import ApiError, TooLarge
from steersman.api.generated.core_v1 import Pod
from steersman.api.go_yaml import MalformedDocument
from steersman.api.kinds import Struct
from steersman.http.request import HttpRequest
from steersman.server import status_errors
from steersman.server.apply.options import APPLY_YAML
from steersman.server.apply.structs import typed_schema_of
from steersman.server.codec import field_validation, protobuf
from steersman.server.codec.convert import CODECS, micro_time_paths, to_struct
from steersman.server.codec.go_decode_errors import go_decode_error
from steersman.server.codec.json_yaml import (
    NumberOutOfRange,
    TooMuchYaml,
    decode_valid_json,
    decode_yaml,
    predecode_yaml,
)
from steersman.server.codec.negotiation import JSON, PROTOBUF, YAML
from steersman.server.http.heavy_requests import TOO_MANY
from steersman.server.registry.resources import Resource

LIMIT = 3 * 1024 * 1024
"""The largest body, in bytes."""


async def read(request: HttpRequest) -> bytes:
    """Reads the whole body; one in YAML that takes long to decode is decoded here. Raises `TooLarge`."""
    body = await request.read(LIMIT)
    if body is None:
        raise TooLarge(f"Request entity too large: limit is {LIMIT}", reason="RequestEntityTooLarge")
    content_type = request.headers.get("Content-Type", "")
    if media_type(content_type) in (YAML, APPLY_YAML):
        try:
            return await predecode_yaml(body)
        except TooMuchYaml:
            raise status_errors.too_many_requests(TOO_MANY, retry_after=1.0) from None
    return body


def media_type(header: str) -> str:
    """The media type in a Content-Type header; JSON where it is empty."""
    return header.partition(";")[0].strip().lower() or JSON


# -- objects ----------------------------------------------------------------------------------

FindUnknown: TypeAlias = Callable[[Mapping[str, Any]], tuple[str, ...]]
"""Finds the paths of unknown fields in a document."""


class FieldChecks(msgspec.Struct, frozen=True):
    """The fieldValidation directive of a request, and the list that its warnings are added to."""

    directive: field_validation.Directive = "Ignore"
    warnings: list[str] = []

    def report(self, found: Sequence[str], refusal: Callable[[Sequence[str]], ApiError]) -> None:
        """Warns of faults, or raises the refusal if they are to be refused."""
        if found:
            if self.directive == "Strict":
                raise refusal(found)
            self.warnings.extend(field_validation.warning_texts(found))


def decode_object(
    resource: Resource, raw: bytes, content_type: str, checks: FieldChecks = FieldChecks()
) -> Any:
    """A body as an object of a resource. Raises `BadRequest`, `Invalid` or `UnsupportedMediaType`."""
    return decode(
        resource.type,
        resource.group,
        resource.version,
        resource.kind,
        raw,
        content_type,
        checks,
        resource.strategy.unknown_fields,
    )


def decode(
    type_: type[Any],
    group: str,
    version: str,
    kind: str,
    raw: bytes,
    content_type: str,
    checks: FieldChecks = FieldChecks(),
    find_unknown: FindUnknown | None = None,
) -> Any:
    """A body as a struct of a type. Its apiVersion and kind must be those given.

    ``find_unknown`` finds unknown fields of custom resources, whose type does not declare any.
    """
    form = media_type(content_type)
    # There are no messages for custom resources.
    accepted = (JSON, YAML) if type_ in CODECS else (JSON, YAML, PROTOBUF)
    if form not in accepted:
        raise status_errors.unsupported_media_type(*accepted)
    if form == PROTOBUF:
        return _from_protobuf(type_, group, version, kind, raw)
    is_checked = checks.directive != "Ignore"
    key = (type_, version, form, is_checked, raw)
    known = _bodies.get(key)
    if known is None:
        known = _read(type_, group, version, kind, raw, form, is_checked, find_unknown)
        # The schema of custom resources can change.
        if len(raw) <= _LARGEST_CACHED and type_ not in CODECS:
            _bodies.put(key, known)
    made, found = known
    checks.report(found, lambda found: field_validation.strict_body_error(kind, version, found))
    return made


def _read(
    type_: type[Any],
    group: str,
    version: str,
    kind: str,
    raw: bytes,
    form: str,
    is_checked: bool,
    find_unknown: FindUnknown | None,
) -> tuple[Any, tuple[str, ...]]:
    """The struct, and the unknown and duplicate fields of the document if it ``is_checked``."""
    doubled: tuple[str, ...] = ()
    try:
        if form == JSON:
            document, raw = decode_valid_json(raw)
        else:
            document, doubled = decode_yaml(raw)
    except NumberOutOfRange as error:
        raise field_validation.undecodable_body(kind, version, str(error)) from None
    except MalformedDocument as error:
        why = f"couldn't get version/kind; json parse error: {error}" if form == JSON else str(error)
        raise field_validation.unrecognized_body(kind, raw, why) from None
    if document is None and raw.strip() == b"null":
        # Go decodes null as an empty object.
        document, raw = {}, b"{}"
    if not isinstance(document, dict):
        why = f"couldn't get version/kind; json parse error: {no_object(document)}"
        raise field_validation.unrecognized_body(kind, raw, why)
    _check_kind(type_, group, version, kind, document, raw)
    try:
        made = to_struct(type_, raw if form == JSON else document)
    except ValueError as error:
        raise field_validation.undecodable_body(
            kind, version, _mistake(type_, document) or str(error)
        ) from None
    # Our decoder accepts large numbers and all forms of MicroTime, so bodies that have them are checked again.
    struct: type[Struct] = type_
    exacting = type_ not in CODECS and micro_time_paths(struct)
    if (exacting or _LARGE_NUMBER.search(raw)) and (fault := _mistake(type_, document)):
        raise field_validation.undecodable_body(kind, version, fault)
    if type_ is Pod and form == JSON:
        made = _interned(made, raw)
    if not is_checked:
        return made, ()
    found = field_validation.yaml_strict_errors(doubled)
    if find_unknown is not None:
        # Duplicate fields come first: upstream finds them while it decodes, and unknown ones afterwards.
        found += field_validation.strict_errors(raw, document) if form == JSON else ()
        return made, found + field_validation.unknown_field_errors(find_unknown(document))
    schema = typed_schema_of(type_)
    if form == JSON:
        return made, field_validation.strict_errors(raw, document, schema)
    return made, found + field_validation.unknown_fields(document, schema)


_LARGE_NUMBER = re.compile(rb"[:\[,\s]-?[0-9]{10}")


def _from_protobuf(type_: type[Any], group: str, version: str, kind: str, raw: bytes) -> Any:
    # Not checked for unknown fields, which have no name in protobuf, nor for duplicates, which are allowed.
    document = protobuf.decode(raw, f"{group}/{version}" if group else version, kind)
    _check_kind(type_, group, version, kind, document, raw)
    try:
        return to_struct(type_, document)
    except ValueError as error:
        raise field_validation.undecodable_body(
            kind, version, _mistake(type_, document) or str(error)
        ) from None


def _mistake(type_: type[Any], document: Any) -> str:
    return "" if type_ in CODECS else go_decode_error(type_, document)


def _check_kind(
    type_: type[Any], group: str, version: str, kind: str, document: Mapping[str, Any], raw: bytes
) -> None:
    """Refuses a document whose apiVersion or kind is not the expected one."""
    api_version, given_kind = document.get("apiVersion"), document.get("kind")
    expected = f"{group}/{version}" if group else version
    if type_ in CODECS and not (api_version and given_kind):
        missing = "apiVersion" if given_kind else "Kind"
        text = raw.decode("utf-8", "replace")
        raise field_validation.unrecognized_body(kind, raw, f"Object '{missing}' is missing in '{text}'")
    api_version, given_kind = api_version or expected, given_kind or kind
    if given_kind == kind and (api_version == expected or (api_version, kind) in _OTHER_VERSIONS):
        return
    if type_ in CODECS:
        # Upstream decodes any kind as a custom resource, and then finds the object invalid.
        if api_version != expected:
            raise _other_version(api_version, expected)
        name = (document.get("metadata") or {}).get("name") or ""
        wrong = [status_errors.field_invalid("kind", given_kind, f"must be {kind}")]
        raise status_errors.invalid(group, str(given_kind), name, wrong)
    given_version = str(api_version).rpartition("/")[2]
    why = field_validation.kind_mismatch(group, kind, str(api_version), str(given_kind))
    if not why:
        raise _other_version(api_version, expected)
    raise status_errors.bad_request(
        f'{given_kind} in version "{given_version}" cannot be handled as a {kind}: {why}'
    )


_OTHER_VERSIONS = frozenset({("policy/v1beta1", "Eviction")})
"""Versions of bodies that are accepted although nothing is served in them."""


def _other_version(api_version: object, expected: str) -> ApiError:
    return status_errors.bad_request(
        f"the API version in the data ({api_version}) does not match the expected API version ({expected})"
    )


_GO = {list: "array", str: "string", bool: "bool", int: "number", float: "number"}


def no_object(document: Any) -> str:
    """Go's message for a document that is no object."""
    if document is None:
        return "unexpected end of JSON input"
    return (
        f"json: cannot unmarshal {_GO.get(type(document), 'value')} into Go value of type "
        'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
        'Kind string "json:\\"kind,omitempty\\"" }'
    )


# -- interning --------------------------------------------------------------------------------
# A controller sends pods of one template many times. Equal bytes decode to the same object, so that its defaults,
# admission and validation, which are cached by object, are known already.


_LARGEST_CACHED = 16 * 1024
"""The largest body that is remembered, in bytes."""

_bodies: BoundedCache[tuple[type[Any], str, str, bool, bytes], tuple[Any, tuple[str, ...]]] = BoundedCache(
    256
)
_specs: BoundedCache[bytes, Any] = BoundedCache(512)
_parts = msgspec.json.Decoder(dict[str, msgspec.Raw])


def _interned(pod: Pod, raw: bytes) -> Pod:
    """A pod that was decoded from ``raw``, with the spec object of an earlier pod with the same bytes."""
    spec = _parts.decode(raw).get("spec")
    if spec is None:
        return pod
    if len(spec) > _LARGEST_CACHED:
        return pod
    key = bytes(spec)
    known = _specs.get(key)
    if known is None:
        _specs.put(key, pod.spec)
        return pod
    return replace(pod, spec=known)


# -- patches ----------------------------------------------------------------------------------

FindPatchedUnknown: TypeAlias = Callable[[Any], tuple[tuple[str, ...], Callable[[], str]]]
"""Finds the strict errors of an object with a patch applied, and prints that object."""


def decode_patch(
    raw: bytes,
    checks: FieldChecks,
    find_unknown: FindPatchedUnknown,
    *,
    is_apply: bool = False,
    is_list: bool = False,
) -> Any:
    """The body of a patch as plain data: YAML for an apply, a list for a JSON patch. Raises `BadRequest` and `Invalid`."""
    try:
        if is_apply:
            document, doubled = decode_yaml(raw)
            if not (document is None or isinstance(document, Mapping)):
                raise status_errors.bad_request(
                    "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal "
                    f"{_GO.get(type(document), 'value')} into Go value of type map[string]interface {{}}"
                )
            if doubled and checks.directive == "Strict":
                raise field_validation.strict_apply_error(doubled)
            if checks.directive == "Warn":
                checks.warnings.extend(
                    field_validation.warning_texts(field_validation.apply_strict_errors(doubled))
                )
            return document
        document, raw = decode_valid_json(raw)
    except MalformedDocument as error:
        raise status_errors.bad_request(
            f"error decoding YAML: error converting YAML to JSON: {error}"
            if is_apply
            else f"error decoding patch: {error}"
        ) from None
    if not isinstance(document, list if is_list else dict):
        wanted = "[]handlers.jsonPatchOp" if is_list else "map[string]interface {}"
        sort = "object" if isinstance(document, dict) else _GO.get(type(document), "value")
        raise status_errors.bad_request(
            f"error decoding patch: json: cannot unmarshal {sort} into Go value of type {wanted}"
        )
    if checks.directive != "Ignore":
        if isinstance(document, list):
            doubled = field_validation.json_patch_strict_errors(raw, document)
        else:
            doubled = field_validation.strict_errors(raw, document)
        unknown, text = find_unknown(document)
        checks.report(
            doubled + unknown,
            lambda found: field_validation.invalid_patch(
                text(), field_validation.strict_decoding_error(found)
            ),
        )
    return document
