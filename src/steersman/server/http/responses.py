"""Responses: objects, lists, tables, metadata only, and errors."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from steersman.api.errors import ApiError, NotAcceptable
from steersman.api.generated.autoscaling_v1 import Scale
from steersman.api.generated.meta_v1 import ListMeta
from steersman.http.target import first
from steersman.server.codec.convert import CODECS, to_document
from steersman.server.codec.encoding import dump, encode_array, encode_items, encode_list, encode_object
from steersman.server.codec.negotiation import (
    JSON,
    PROTOBUF,
    SERVED,
    STREAMS,
    YAML,
    MediaTypeOptions,
    negotiate,
)
from steersman.server.http.context import Context
from steersman.server.registry.resources import Resource

if TYPE_CHECKING:
    from steersman.server import tables
    from steersman.server.rest.listing import Page
    from steersman.server.rest.perform import BodyType

_META = "meta.k8s.io"
_COMPRESSED_FROM = 128 * 1024
"""The size in bytes from which a response is compressed for clients that accept gzip."""

_MAX_WARNINGS = 4 * 1024
"""Characters of all warnings of one response together, before they are truncated."""
_TRUNCATED_WARNING = 256
"""Characters of each warning where they are truncated."""
_NOT_IN_WARNING = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]").search
"""Control characters and invalid UTF-8, which no header can carry."""

END = b"\n"
"""The end of JSON that is not indented, as upstream writes it."""


class Response(NamedTuple):
    """A response before it is written to the socket."""

    body: bytes
    status: int = 200
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()


# -- objects ----------------------------------------------------------------------------------


def object_response(ctx: Context, resource: Resource, obj: Any, status: int = 200) -> Response:
    """A stored object, in the representation that the client accepts."""
    choice = ctx.choice(custom=resource.type in CODECS)
    if choice.target is None:
        if choice.media_type == PROTOBUF:
            return Response(ctx.protobuf.object(resource, obj), status, PROTOBUF)
        body = ctx.state.encoded.get(resource.api_version, resource.kind, obj)
        return encoded(ctx, choice, body, status)
    if choice.target.kind == "Table":
        metadata = ListMeta(resourceVersion=obj.metadata.resourceVersion)
        return encoded(ctx, choice, _table(ctx, choice, resource, (obj,), metadata), status)
    if choice.target.kind != "PartialObjectMetadata":
        package = (resource.group or "core").partition(".")[0]
        go = "*unstructured.Unstructured" if resource.type in CODECS else f"*{package}.{resource.kind}"
        raise NotAcceptable(
            f"you requested {choice.target.kind}, but the requested object is not a list ({go})",
            reason="NotAcceptable",
        )
    return _partial(ctx, choice, choice.target.version, obj, status)


def _partial(ctx: Context, choice: MediaTypeOptions, version: str, obj: Any, status: int = 200) -> Response:
    if choice.media_type == PROTOBUF:
        return Response(ctx.protobuf.partial(obj, version), status, PROTOBUF)
    from steersman.server import tables

    return encoded(ctx, choice, dump(tables.partial_object_metadata(obj, version)), status)


def list_response(ctx: Context, resource: Resource, page: Page) -> Response:
    """A list of stored objects, in the representation that the client accepts."""
    objects = page.items if resource.serve is None else [resource.serve(obj) for obj in page.items]
    metadata = ListMeta(
        resourceVersion=str(page.revision), continue_=page.continue_, remainingItemCount=page.remaining
    )
    choice = ctx.choice(custom=resource.type in CODECS)
    if choice.target is not None and choice.target.kind == "PartialObjectMetadata":
        package = (resource.group or "core").partition(".")[0]
        go = "unstructured.UnstructuredList" if resource.type in CODECS else f"{package}.{resource.kind}List"
        raise NotAcceptable(
            f"you requested PartialObjectMetadata, but the requested object is a list (*{go})",
            reason="NotAcceptable",
        )
    if choice.media_type == PROTOBUF:
        return Response(_protobuf_list(ctx, choice, resource, metadata, objects), 200, PROTOBUF)
    if choice.target is None:
        list_meta: Any = metadata
        if resource.type in CODECS and not page.continue_:
            # Upstream keeps custom resources as plain data, which does not omit empty fields.
            list_meta = {"continue": "", "resourceVersion": metadata.resourceVersion}
        body = encode_list(
            resource.api_version,
            ctx.state.discovery.list_kind(resource),
            list_meta,
            encode_items(resource.api_version, resource.kind, objects),
        )
    elif choice.target.kind == "Table":
        body = _table(ctx, choice, resource, objects, metadata)
    else:
        from steersman.server import tables

        version = choice.target.version
        partials = encode_array([dump(tables.partial_object_metadata(obj, version)) for obj in objects])
        body = encode_list(f"{_META}/{version}", "PartialObjectMetadataList", metadata, partials)
    return encoded(ctx, choice, body)


def _protobuf_list(
    ctx: Context, choice: MediaTypeOptions, resource: Resource, metadata: ListMeta, objects: Sequence[Any]
) -> bytes:
    if choice.target is not None:
        return ctx.protobuf.partial_list(metadata, objects, choice.target.version)
    list_kind = ctx.state.discovery.list_kind(resource)
    return ctx.protobuf.list(resource.api_version, list_kind, metadata, objects)


def _table(
    ctx: Context, choice: MediaTypeOptions, resource: Resource, objects: Sequence[Any], metadata: ListMeta
) -> bytes:
    assert choice.target is not None
    from steersman.server import tables

    include = tables.parse_include_object(first(ctx.query, "includeObject"))
    return table(ctx, choice.target.version, resource, objects, metadata, include=include)


def table(
    ctx: Context,
    version: str,
    resource: Resource,
    objects: Sequence[Any],
    metadata: ListMeta,
    *,
    include: tables.IncludeObject,
    headers: bool = True,
) -> bytes:
    """Objects as a Table."""
    from steersman.server import tables

    if resource.hub is not None and resource.store is not None:
        objects, resource = [resource.store(obj) for obj in objects], resource.hub
    if resource.type in CODECS:
        objects = [to_document(resource.api_version, resource.kind, obj) for obj in objects]
    made = tables.generate_table(
        ctx.state.discovery.printer(resource),
        objects,
        ctx.server.clock.now(),
        api_version=resource.api_version,
        kind=resource.kind,
        include=include,
        headers=headers,
        metadata=metadata,
        version=version,
    )
    return dump(made)


def document_response(ctx: Context, document: Mapping[str, Any], status: int = 200) -> Response:
    """A document that has no other representation."""
    return encoded(ctx, ctx.own_choice(), dump(document), status)


def review_response(ctx: Context, kind: BodyType, obj: Any) -> Response:
    """A review or TokenRequest that was created and answered."""
    api_version = f"{kind.group}/{kind.version}"
    choice = ctx.own_choice()
    if choice.media_type == PROTOBUF:
        return Response(ctx.protobuf.struct(api_version, kind.kind, obj), 201, PROTOBUF)
    return encoded(ctx, choice, encode_object(api_version, kind.kind, obj), 201)


def scale_response(ctx: Context, scale: Scale) -> Response:
    """A Scale, in the representation that the client accepts."""
    choice = ctx.choice()
    if choice.target is None:
        return document_response(ctx, to_document("autoscaling/v1", "Scale", scale))
    if choice.target.kind != "Table":
        return _partial(ctx, choice, choice.target.version, scale)
    from steersman.server import tables

    made = tables.generate_table(
        tables.SCALE_PRINTER,
        (scale,),
        ctx.server.clock.now(),
        api_version="autoscaling/v1",
        kind="Scale",
        include=tables.parse_include_object(first(ctx.query, "includeObject")),
        metadata=ListMeta(resourceVersion=scale.metadata.resourceVersion),
        version=choice.target.version,
    )
    return encoded(ctx, choice, dump(made))


def deleted_response(ctx: Context, resource: Resource, obj: Any) -> Response:
    """The Status that answers the deletion of an object."""
    named = {"name": obj.metadata.name, "group": resource.group, "kind": resource.plural}
    details = {key: value for key, value in named.items() if value} | {"uid": obj.metadata.uid}
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
    return encoded(ctx, ctx.choice(custom=resource.type in CODECS), dump(status))


# -- errors -----------------------------------------------------------------------------------


def negotiated_error(response: Response, accept: str) -> Response:
    """An error in the media type that the client accepts; in JSON where it accepts none."""
    if response.content_type != JSON:
        return response
    try:
        media_type = negotiate(accept).media_type
    except NotAcceptable:
        return response
    if media_type == YAML:
        return response._replace(body=_yaml(response.body), content_type=YAML)
    if media_type == PROTOBUF:
        from steersman.server.http.protobuf import ProtobufEncoder

        return response._replace(body=ProtobufEncoder().json(response.body), content_type=PROTOBUF)
    return response


def error_status(error: ApiError, *, details_always: bool = False) -> dict[str, Any]:
    """The Status of an error, in upstream's order. ``details_always`` includes empty details."""
    made: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": error.message,
    }
    if error.reason:
        made["reason"] = error.reason
    details: dict[str, Any] = {
        key: value
        for key, value in error.details.items()
        if key not in ("causes", "retryAfterSeconds", "continue")
    }
    if "continue" in error.details:
        made["metadata"] = {"continue": error.details["continue"]}
    causes = [
        {
            name: text
            for name, text in (("reason", c.reason), ("message", c.message), ("field", c.field))
            if text
        }
        for c in error.causes
    ]
    if causes:
        details["causes"] = causes
    if error.retry_after:
        details["retryAfterSeconds"] = int(error.retry_after)
    if details or details_always or error.code == 422:
        made["details"] = details
    made["code"] = error.code
    return made


def error_response(error: ApiError) -> Response:
    """The response to a request that was refused."""
    headers: tuple[tuple[str, str], ...] = ()
    if error.retry_after:
        headers = (("Retry-After", str(int(error.retry_after))),)
    return Response(dump(error_status(error)) + END, error.code, JSON, headers)


def denied_response(error: ApiError) -> Response:
    """The response to a request that failed authorisation."""
    return Response(
        dump(error_status(error, details_always=error.code == 403)) + END,
        error.code,
        JSON,
        (("X-Content-Type-Options", "nosniff"),),
    )


_ROUTING_ERRORS = {
    404: ("NotFound", "the server could not find the requested resource"),
    405: ("MethodNotAllowed", "the server does not allow this method on the requested resource"),
    406: ("NotAcceptable", "406: Not Acceptable\n\nAvailable representations: "),
    415: ("UnsupportedMediaType", "415: Unsupported Media Type"),
}


def routing_error(code: int, *, streams: bool = False, served: str = ", ".join(SERVED)) -> Response:
    """The response for a path, method or media type that is not served. Unlike other errors it has empty details.

    ``served`` are the media types of the path; ``streams`` says that it can be watched, too.
    """
    reason, message = _ROUTING_ERRORS[code]
    if code == 406:
        more = "".join(f", {each};stream=watch" for each in STREAMS) if streams else ""
        message = f"{message}{served}{more}"
    error = ApiError(message, code=code, reason=reason)
    return Response(dump(error_status(error, details_always=True)) + END, code)


# -- warnings ---------------------------------------------------------------------------------


def warning_headers(warnings: Iterable[str]) -> list[tuple[str, str]]:
    """The Warning headers of a response, each text once, limited as upstream limits them.

    All texts are sent in full if they have 4096 characters together. If not, each is cut off after 256 characters,
    and those after the first 4096 characters are left out.
    """
    texts: dict[str, str] = {}
    length = 0
    truncating = False
    for text in warnings:
        if truncating and length >= _MAX_WARNINGS:
            break
        if not text or text in texts or _NOT_IN_WARNING(text):
            continue
        texts[text] = text[:_TRUNCATED_WARNING] if truncating else text
        length += len(texts[text])
        if length > _MAX_WARNINGS and not truncating:
            truncating = True
            texts = {whole: whole[:_TRUNCATED_WARNING] for whole in texts}
            length = sum(map(len, texts.values()))
    return [("Warning", f'299 - "{_quoted(text)}"') for text in texts.values()]


def _quoted(text: str) -> str:
    """A text as it may stand between the quotes of a header."""
    return text.replace("\\", "\\\\").replace('"', '\\"')


# -- representations --------------------------------------------------------------------------


def encoded(ctx: Context, choice: MediaTypeOptions, body: bytes, status: int = 200) -> Response:
    """JSON in the media type that the client accepts: compact, indented, as YAML, or as protobuf."""
    if choice.media_type == YAML:
        return Response(_yaml(body), status, YAML)
    if choice.media_type == PROTOBUF:
        return Response(ctx.protobuf.json(body), status, PROTOBUF)
    if choice.pretty or ctx.pretty:
        return Response(msgspec.json.format(body, indent=2), status)
    return Response(body + END, status)


def _yaml(body: bytes) -> bytes:
    import yaml

    dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(msgspec.json.decode(body), Dumper=dumper, default_flow_style=False)
    return text.encode()


def compressed(response: Response, accepted: str) -> Response:
    """The response, compressed if it is large and the client accepts gzip. That of an aggregated server may be, already."""
    if len(response.body) <= _COMPRESSED_FROM or "gzip" not in accepted:
        return response
    if any(name.lower() == "content-encoding" for name, _ in response.headers):
        return response
    gzip = zlib.compressobj(1, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    body = gzip.compress(response.body) + gzip.flush()
    return response._replace(
        body=body, headers=(*response.headers, ("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding"))
    )
