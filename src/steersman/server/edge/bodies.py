"""What was sent: read within limits, and made into what it should be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec
import yaml
from aiohttp.web import BaseRequest

from steersman.api.errors import ApiError, TooLarge, UnsupportedMediaType
from steersman.server import problems
from steersman.server.convert import FORMS, adopt
from steersman.server.negotiation import JSON, YAML
from steersman.server.resources import Resource

LIMIT = 3 * 1024 * 1024
"""How much a request may send, in bytes."""


async def read(request: BaseRequest) -> bytes:
    """All that was sent. Raises `TooLarge`."""
    if not request.body_exists:
        return b""
    length = request.content_length
    if length is not None and length <= LIMIT:
        return await request.content.read()
    if length is None:
        parts: list[bytes] = []
        size = 0
        while chunk := await request.content.readany():
            size += len(chunk)
            if size > LIMIT:
                break
            parts.append(chunk)
        else:
            return b"".join(parts)
    raise TooLarge(f"Request entity too large: limit is {LIMIT}", reason="RequestEntityTooLarge")


def media_type(header: str) -> str:
    """The media type in a Content-Type header; JSON where it is empty."""
    return header.partition(";")[0].strip().lower() or JSON


def unknown_format(*accepted: str) -> UnsupportedMediaType:
    """The refusal of a body nobody can read."""
    return UnsupportedMediaType(
        "the body of the request was in an unknown format - accepted media types include: "
        + ", ".join(accepted),
        reason="UnsupportedMediaType",
    )


# -- objects ----------------------------------------------------------------------------------


class _Head(msgspec.Struct):
    """What a document says it is."""

    apiVersion: Any = None
    kind: Any = None


_head = msgspec.json.Decoder(_Head)


def obj(resource: Resource, raw: bytes, content_type: str) -> Any:
    """A body as a full struct. Raises `BadRequest`, `Invalid` or `UnsupportedMediaType`."""
    return made(resource.type, resource.group, resource.version, resource.kind, raw, content_type)


def made(type_: type[Any], group: str, version: str, kind: str, raw: bytes, content_type: str) -> Any:
    """A body as a struct of a type, given what it must say it is."""
    form = media_type(content_type)
    body: Any
    try:
        if form == JSON:
            head = _head.decode(raw)
            said, named, body = head.apiVersion, head.kind, raw
        elif form == YAML:
            body = document(raw, YAML)
            if not isinstance(body, Mapping):
                raise ValueError("Expected `object`")
            said, named = body.get("apiVersion"), body.get("kind")
        else:
            raise unknown_format(JSON, YAML)
        _meant(group, version, kind, said, named, raw, strict=type_ in FORMS)
        return adopt(type_, body)
    except msgspec.ValidationError as error:
        raise _unfit(kind, version, error) from None
    except (msgspec.DecodeError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise _unreadable(kind, raw, error) from None
    except RecursionError:
        raise problems.bad_request(f"{kind}: exceeded max depth") from None
    except ValueError as error:
        raise _unfit(kind, version, error) from None


def _meant(group: str, version: str, kind: str, said: Any, named: Any, raw: bytes, *, strict: bool) -> None:
    """A document that says what it is must be what the path says."""
    expected = f"{group}/{version}" if group else version
    if strict and not (said and named):
        missing = "apiVersion" if named else "Kind"
        text = raw.decode("utf-8", "replace")
        raise problems.bad_request(f"Object '{missing}' is missing in '{text}'")
    if said and said != expected:
        raise problems.bad_request(
            f"the API version in the data ({said}) does not match the expected API version ({expected})"
        )
    if named and named != kind:
        raise problems.bad_request(
            f'{named} in version "{version}" cannot be handled as a {kind}: '
            f"converting ({group}.{named}) to ({group}.{kind}): unknown conversion"
        )


def _unfit(kind: str, version: str, error: Exception) -> ApiError:
    return problems.bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {error}')


def _unreadable(kind: str, raw: bytes, error: Exception) -> ApiError:
    shown = raw[:30].hex() + (" ..." if len(raw) > 30 else "")
    return problems.bad_request(
        f"the object provided is unrecognized (must be of type {kind}): "
        f"couldn't get version/kind; json parse error: {error} ({shown})"
    )


# -- documents --------------------------------------------------------------------------------


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML as JSON has it: dates are text."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {
        first: [(tag, pattern) for tag, pattern in rules if tag != "tag:yaml.org,2002:timestamp"]
        for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def _load(raw: bytes) -> Any:
    depth = 0
    for event in yaml.parse(raw, _Loader):
        match event:
            case yaml.AliasEvent():
                # differs: upstream follows references, up to a limit.
                raise yaml.YAMLError("references are not accepted")
            case yaml.CollectionStartEvent():
                depth += 1
                if depth > _DEEPEST:
                    raise RecursionError
            case yaml.CollectionEndEvent():
                depth -= 1
    return yaml.load(raw, _Loader)


_DEEPEST = 200
"""How far YAML may be nested."""


def document(raw: bytes, form: str) -> Any:
    """A body as plain data. Raises what reading it raises."""
    if form == YAML and not raw.lstrip().startswith(b"{"):
        return _load(raw)
    return msgspec.json.decode(raw)


def patch(raw: bytes, form: str) -> Any:
    """The body of a patch as plain data; those that are applied may be YAML. Raises `BadRequest`."""
    try:
        return document(raw, form)
    except (msgspec.DecodeError, UnicodeDecodeError, yaml.YAMLError, ValueError) as error:
        raise problems.bad_request(f"error decoding patch: {error}") from None
    except RecursionError:
        raise problems.bad_request("error decoding patch: exceeded max depth") from None
