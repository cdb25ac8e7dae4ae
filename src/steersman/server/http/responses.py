"""What is sent back: objects, lists, tables of them, metadata alone, and refusals."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import yaml

from steersman.api.errors import ApiError, NotAcceptable
from steersman.api.generated.meta_v1 import ListMeta
from steersman.server import tables
from steersman.server.codec.convert import FORMS, document
from steersman.server.codec.negotiation import JSON, SERVED, YAML, Choice
from steersman.server.http.context import Context
from steersman.server.http.encoding import dump, items, joined, listed
from steersman.server.http.request_info import first
from steersman.server.registry.resources import Resource

if TYPE_CHECKING:
    from steersman.server.rest.list import Listing

_META = "meta.k8s.io"
_LARGE = 128 * 1024
"""From here on an answer is compressed for who takes that."""


END = b"\n"
"""What JSON ends with that is not made for people to read: clients show bodies, and compare them."""


class Answer(NamedTuple):
    """An answer, but for the socket."""

    body: bytes
    status: int = 200
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()


# -- objects ----------------------------------------------------------------------------------


def one(ctx: Context, resource: Resource, obj: Any, status: int = 200) -> Answer:
    """A stored object, in whichever form the client asks for."""
    choice = ctx.choice()
    if choice.target is None:
        body = ctx.plant.encoded.get(resource.api_version, resource.kind, obj)
        return finished(ctx, choice, body, status)
    if choice.target.kind == "Table":
        metadata = ListMeta(resourceVersion=obj.metadata.resourceVersion)
        return finished(ctx, choice, _table(ctx, choice, resource, (obj,), metadata), status)
    if choice.target.kind != "PartialObjectMetadata":
        package = (resource.group or "core").partition(".")[0]
        go = "*unstructured.Unstructured" if resource.type in FORMS else f"*{package}.{resource.kind}"
        raise NotAcceptable(
            f"you requested {choice.target.kind}, but the requested object is not a list ({go})",
            reason="NotAcceptable",
        )
    return finished(ctx, choice, dump(tables.partial(obj, choice.target.version)), status)


def many(ctx: Context, resource: Resource, found: Listing) -> Answer:
    """A list of stored objects, in whichever form the client asks for."""
    objects = found.items if resource.serve is None else [resource.serve(obj) for obj in found.items]
    metadata = ListMeta(
        resourceVersion=str(found.revision), continue_=found.continue_, remainingItemCount=found.remaining
    )
    choice = ctx.choice()
    if choice.target is None:
        said: Any = metadata
        if resource.type in FORMS and not found.continue_:
            # Upstream keeps these as plain data, in which nothing goes without saying.
            said = {"continue": "", "resourceVersion": metadata.resourceVersion}
        body = listed(
            resource.api_version,
            ctx.plant.catalogue.list_kind(resource),
            said,
            items(resource.api_version, resource.kind, objects),
        )
    elif choice.target.kind == "Table":
        body = _table(ctx, choice, resource, objects, metadata)
    else:
        version = choice.target.version
        partials = joined([dump(tables.partial(obj, version)) for obj in objects])
        body = listed(f"{_META}/{version}", "PartialObjectMetadataList", metadata, partials)
    return finished(ctx, choice, body)


def _table(
    ctx: Context, choice: Choice, resource: Resource, objects: Sequence[Any], metadata: ListMeta
) -> bytes:
    assert choice.target is not None
    include = tables.include_of(first(ctx.query, "includeObject"))
    return table(ctx, choice.target.version, resource, objects, metadata, include=include)


def table(
    ctx: Context,
    version: str,
    resource: Resource,
    objects: Sequence[Any],
    metadata: ListMeta,
    *,
    include: tables.Include,
    headers: bool = True,
) -> bytes:
    """Some objects as a table."""
    if resource.hub is not None and resource.store is not None:
        objects, resource = [resource.store(obj) for obj in objects], resource.hub
    if resource.type in FORMS:
        objects = [document(resource.api_version, resource.kind, obj) for obj in objects]
    made = tables.lay_out(
        ctx.plant.catalogue.printer(resource),
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


def plain(ctx: Context, made: Mapping[str, Any] | Sequence[Any], status: int = 200) -> Answer:
    """A document that has no other forms."""
    return finished(ctx, ctx.choice(meta=False), dump(made), status)


def deleted(ctx: Context, resource: Resource, obj: Any) -> Answer:
    """What a deletion is answered with whose object is not shown any more."""
    details = {"name": obj.metadata.name, "group": resource.group, "kind": resource.plural}
    return _success(ctx, {key: value for key, value in details.items() if value} | {"uid": obj.metadata.uid})


def _success(ctx: Context, details: Mapping[str, Any]) -> Answer:
    return finished(
        ctx,
        ctx.choice(),
        dump({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}),
    )


# -- refusals ---------------------------------------------------------------------------------


def status(error: ApiError, *, blank: bool = False) -> dict[str, Any]:
    """The Status of a refusal, in upstream's order; ``blank`` has details also where they say nothing."""
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
    if details or blank or error.code == 422:
        made["details"] = details
    made["code"] = error.code
    return made


def refused(error: ApiError) -> Answer:
    """A refusal as an answer."""
    headers: tuple[tuple[str, str], ...] = ()
    if error.retry_after:
        headers = (("Retry-After", str(int(error.retry_after))),)
    return Answer(dump(status(error)) + END, error.code, JSON, headers)


def denied(error: ApiError) -> Answer:
    """What is said to who may not ask that."""
    return Answer(
        dump(status(error, blank=error.code == 403)) + END,
        error.code,
        JSON,
        (("X-Content-Type-Options", "nosniff"),),
    )


_UNROUTED = {
    404: ("NotFound", "the server could not find the requested resource"),
    405: ("MethodNotAllowed", "the server does not allow this method on the requested resource"),
    406: ("NotAcceptable", f"406: Not Acceptable\n\nAvailable representations: {', '.join(SERVED)}"),
    415: ("UnsupportedMediaType", "415: Unsupported Media Type"),
}


def unrouted(code: int) -> Answer:
    """What is said of a path, method or form nobody serves; unlike other refusals it has empty details."""
    reason, message = _UNROUTED[code]
    return Answer(dump(status(ApiError(message, code=code, reason=reason), blank=True)) + END, code)


# -- forms ------------------------------------------------------------------------------------


def finished(ctx: Context, choice: Choice, body: bytes, status: int = 200) -> Answer:
    """JSON as the client wants to have it."""
    if choice.media_type == YAML:
        text = yaml.dump(msgspec.json.decode(body), Dumper=_Dumper, default_flow_style=False)
        return Answer(text.encode(), status, YAML)
    if choice.pretty or ctx.pretty:
        return Answer(msgspec.json.format(body, indent=2), status)
    return Answer(body + END, status)


_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def compressed(answer: Answer, accepted: str) -> Answer:
    """A large answer, compressed for who takes that."""
    if len(answer.body) <= _LARGE or "gzip" not in accepted:
        return answer
    squeeze = zlib.compressobj(1, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    body = squeeze.compress(answer.body) + squeeze.flush()
    return answer._replace(
        body=body, headers=(*answer.headers, ("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding"))
    )
