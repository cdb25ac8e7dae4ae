"""Get and list: one object, or a page of them at one revision, with continue tokens."""

from __future__ import annotations

import base64
from itertools import islice
from posixpath import normpath
from string import ascii_letters, digits
from typing import Any, NamedTuple

import msgspec

from steersman.api.errors import ApiError, Expired, ServerError
from steersman.server import status_errors
from steersman.server.codec.hook_response import json_type
from steersman.server.codec.json_yaml import NumberOutOfRange, decode_json
from steersman.server.rest.request import Request
from steersman.server.rest.selection import select_requested
from steersman.server.server import Server
from steersman.server.storage.store import Store, Table, select_keys
from steersman.server.storage.watch import Selection

_LATEST = -1
"""The revision of a token that continues an expired list at the latest state."""

_STALE = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new "
    "list without the continue parameter, or use the continue token in this response to retrieve the "
    "remainder of the results. Continuing with the provided token results in an inconsistent list - objects "
    "that were created, modified, or deleted between the time the first chunk was returned and now may show "
    "up in the list."
)


class Page(NamedTuple):
    """One page of a list: the stored objects, their revision, and where the next page begins."""

    items: list[Any]
    revision: int
    continue_: str = ""
    remaining: int | None = None
    """The number of objects that follow; None where a selector decides."""


class _Token(msgspec.Struct, frozen=True):
    """Upstream's continue token."""

    v: str = ""
    rv: int = 0
    start: str = ""


_GO_TYPES = {"v": "string", "rv": "int64", "start": "string"}


def _token(document: Any) -> _Token:
    """A token from its JSON. Raises `ValueError` in Go's words."""
    if document is None:
        return _Token()
    if not isinstance(document, dict):
        raise ValueError(
            f"json: cannot unmarshal {json_type(document)} into Go value of type storage.continueToken"
        )
    fields = {name: document[name] for name in _GO_TYPES if document.get(name) is not None}
    for name, value in fields.items():
        if name != "rv" and isinstance(value, str):
            continue
        if name == "rv" and type(value) is int and -(2**63) <= value < 2**63:
            continue
        shown = f"number {value}" if type(value) in (int, float) and name == "rv" else json_type(value)
        raise ValueError(
            f"json: cannot unmarshal {shown} into Go struct field continueToken.{name} of type {_GO_TYPES[name]}"
        )
    return _Token(**fields)


def encode_token(revision: int, start: str) -> str:
    """The continue token of a page that begins at a key, at a revision."""
    raw = msgspec.json.encode(_Token("meta.k8s.io/v1", revision, start))
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def decode_token(text: str) -> tuple[int, str]:
    """The revision and key of a continue token. Raises `BadRequest` for an invalid one."""
    try:
        token = _token(decode_json(_unpadded(text)))
    except NumberOutOfRange as error:
        field = "Go struct field continueToken.rv of type int64"
        raise _no_token(str(error).replace("Go value of type float64", field)) from None
    except ValueError as error:
        raise _no_token(str(error)) from None
    if token.v != "meta.k8s.io/v1":
        raise _no_token(f"server does not recognize this encoded version {token.v}")
    if token.rv == 0:
        raise _no_token("incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
    if not token.start:
        raise _no_token("encoded start key empty (version meta.k8s.io/v1)")
    if normpath(f"/{token.start}") != f"/{token.start}":
        raise _no_token(token.start)
    return token.rv, token.start


def _no_token(why: str) -> ApiError:
    return status_errors.bad_request(f"invalid continue token: continue key is not valid: {why}")


def _unpadded(text: str) -> bytes:
    """Decodes base64 without padding. Raises `ValueError` in Go's words."""
    bad = next((at for at, letter in enumerate(text) if letter not in _LETTERS), None)
    if bad is None and len(text) % 4 == 1:
        bad = len(text) - 1
    if bad is not None:
        raise ValueError(f"illegal base64 data at input byte {bad}")
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


_LETTERS = frozenset(f"{ascii_letters}{digits}-_")


def parse_version(text: str) -> int:
    """A resourceVersion as a number; the empty one is 0. Raises `BadRequest` for an invalid one."""
    if not text:
        return 0
    try:
        return parse_uint64(text)
    except ValueError as error:
        raise status_errors.bad_request(
            f"invalid resource version: {_invalid_version(text, error)}"
        ) from None


def _invalid_version(version: str, error: ValueError) -> status_errors.FieldError:
    return status_errors.field_invalid("resourceVersion", version, str(error))


def parse_uint64(text: str) -> int:
    """A decimal number of up to 64 bits. Raises `ValueError` with the message of Go's ``strconv.ParseUint``."""
    problem = "invalid syntax"
    if text.isascii() and text.isdigit():
        # The length is checked first: Python refuses to convert more than 4,300 digits.
        significant = text.lstrip("0")
        if len(significant) <= 20 and (number := int(significant or "0")) < 2**64:
            return number
        problem = "value out of range"
    raise ValueError(f"strconv.ParseUint: parsing {status_errors.quote(text)}: {problem}")


def get(server: Server, request: Request) -> Any:
    """One object. Raises `NotFound`.

    A resourceVersion in the list options must be one that the store has reached.
    """
    version = request.list_options.resource_version
    if version:
        _check_reached(server.store, version)
    return server.get(request.resource, request.namespace, request.name)


def list_objects(server: Server, request: Request) -> Page:
    """A page of the objects that a request selects, as they are stored."""
    resource, options = request.resource, request.list_options
    if options.continue_:
        _check_lifetime(server, options.continue_)
    # As upstream, whose cache has whole lists: version 0 asks for what is cached. Events are not.
    from_cache = options.resource_version == "0" and not options.continue_ and resource.plural != "events"
    found = page(
        server.store,
        server.table(resource),
        select_requested(request),
        limit=0 if from_cache else max(options.limit, 0),
        continue_=options.continue_,
        version=options.resource_version,
        match=options.resource_version_match,
    )
    if found.continue_:
        _note_page(server, found.revision)
    if resource.serve_all is not None:
        resource.serve_all(found.items)
    return found


_MAX_PAGED = 1024
"""Revisions whose pages have a lifetime. Older ones are only bounded by the changes that the store keeps."""


def _note_page(server: Server, revision: int) -> None:
    times = server.page_times
    if revision not in times:
        times[revision] = server.clock.now()
        if len(times) > _MAX_PAGED:
            del times[next(iter(times))]


def _check_lifetime(server: Server, token: str) -> None:
    """Raises `Expired` for a token of a list that began too long ago."""
    revision, start = decode_token(token)
    began = server.page_times.get(revision)
    if began is not None and server.clock.now() - began >= server.compaction_interval:
        raise _stale(start)


def _check_reached(store: Store, version: str) -> None:
    try:
        number = parse_uint64(version)
    except ValueError as error:
        raise ServerError(str(_invalid_version(version, error)), reason="") from None
    if number > store.revision:
        raise status_errors.resource_version_too_large(number, store.revision)


def page(
    store: Store,
    table: Table,
    selection: Selection,
    *,
    limit: int = 0,
    continue_: str = "",
    version: str = "",
    match: str = "",
) -> Page:
    """One page of a selection; all of it where ``limit`` is 0."""
    if wrong := match_errors(version, match, continue_):
        raise status_errors.invalid("meta.k8s.io", "ListOptions", "", wrong)
    revision, start = _instant(store, limit, continue_, version, match)
    try:
        keys, objects = table.at(revision)
    except Expired:
        if not continue_:
            raise
        raise _stale(start) from None
    found = select_keys(keys, objects, selection)
    if start:
        found = (key for key in found if key >= start)
    if not limit:
        return Page([objects[key] for key in found], revision)
    chosen = list(islice(found, limit))
    rest = sum(1 for _ in found) if selection.test is None else int(next(found, None) is not None)
    items = [objects[key] for key in chosen]
    if not rest:
        return Page(items, revision)
    remaining = rest if selection.test is None else None
    return Page(items, revision, encode_token(revision, f"{chosen[-1]}\0"), remaining)


def _instant(store: Store, limit: int, continue_: str, version: str, match: str) -> tuple[int, str]:
    """The revision of a page, and the key it begins at."""
    if continue_:
        if version and version != "0":
            raise status_errors.bad_request("specifying resource version is not allowed when using continue")
        revision, start = decode_token(continue_)
        if revision > store.revision:
            raise status_errors.resource_version_too_large(revision, store.revision, wait=False)
        return (store.revision if revision == _LATEST else revision), start
    requested = parse_version(version)
    # With a limit and no resourceVersionMatch, a version has always meant exactly that version.
    exact = match == "Exact" or (not match and requested > 0 and limit > 0)
    if requested > store.revision:
        raise status_errors.resource_version_too_large(requested, store.revision, wait=not exact)
    return (requested if exact else store.revision), ""


def match_errors(version: str, match: str, continue_: str) -> list[status_errors.FieldError]:
    """The errors of a list's ``resourceVersionMatch``."""
    wrong = []
    if match:
        field = "resourceVersionMatch"
        if not version:
            wrong.append(
                status_errors.field_forbidden(
                    field, f"{field} is forbidden unless resourceVersion is provided"
                )
            )
        if continue_:
            wrong.append(
                status_errors.field_forbidden(field, f"{field} is forbidden when continue is provided")
            )
        if match not in ("Exact", "NotOlderThan"):
            wrong.append(status_errors.field_not_supported(field, match, ("Exact", "NotOlderThan", "")))
        if match == "Exact" and version == "0":
            wrong.append(
                status_errors.field_forbidden(field, f'{field} "exact" is forbidden for resourceVersion "0"')
            )
    return wrong


def _stale(start: str) -> Expired:
    """The refusal of a page whose revision was compacted, with a token to go on at the latest state."""
    return Expired(_STALE, reason="Expired", details={"continue": encode_token(_LATEST, start)})
