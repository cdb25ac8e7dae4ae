"""What a request asks for besides its object: the options of lists, watches, writes and deletions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from steersman.api.generated.meta_v1 import DeleteOptions
from steersman.server import status_errors
from steersman.server.apply.options import validate_field_manager
from steersman.server.codec import protobuf
from steersman.server.codec.go_decode_errors import mistake
from steersman.server.codec.json_yaml import Unreadable, json_document
from steersman.server.http.request_info import Query, first, flag
from steersman.server.registry.graceful_deletion import Options
from steersman.server.status_errors import FieldError

_META = "meta.k8s.io"
_VALIDATIONS = ("", "Ignore", "Strict", "Warn")
_POLICIES = ("Foreground", "Background", "Orphan")


class Listing(NamedTuple):
    """How to list, or to watch."""

    labels: str = ""
    fields: str = ""
    limit: int = 0
    continue_: str = ""
    version: str = ""
    match: str = ""
    timeout: int | None = None
    bookmarks: bool = False
    initial: bool | None = None


class Writing(NamedTuple):
    """How to write."""

    dry: bool = False
    manager: str = ""
    validation: str = ""
    force: bool | None = None


class Deleting(NamedTuple):
    """How to delete."""

    options: Options
    dry: bool = False
    waits: bool = False
    """Whether an answer before the end shall be called accepted."""


_PLAIN_WRITING = Writing()


def listing(query: Query, *, watch: bool = False) -> Listing:
    """The options of a list or watch. Raises `BadRequest` or `Invalid`."""
    if not query:
        return Listing()
    timeout = first(query, "timeoutSeconds")
    made = Listing(
        labels=first(query, "labelSelector"),
        fields=first(query, "fieldSelector"),
        limit=_number(query, "limit"),
        continue_=first(query, "continue"),
        version=first(query, "resourceVersion"),
        match=first(query, "resourceVersionMatch"),
        timeout=_number(query, "timeoutSeconds") if timeout else None,
        bookmarks=flag(query, "allowWatchBookmarks"),
        initial=flag(query, "sendInitialEvents") if "sendInitialEvents" in query else None,
    )
    wrong = _watch_problems(made) if watch else _list_problems(made)
    if wrong:
        raise status_errors.invalid(_META, "ListOptions", "", wrong)
    return made


def _list_problems(asked: Listing) -> list[FieldError]:
    if asked.initial is not None:
        return [status_errors.banned("sendInitialEvents", "sendInitialEvents is forbidden for list")]
    return []


def _watch_problems(asked: Listing) -> list[FieldError]:
    wrong = []
    field, least = "resourceVersionMatch", "NotOlderThan"
    if asked.initial is not None and asked.match != least:
        wrong.append(status_errors.banned(field, f"sendInitialEvents requires setting {field} to {least}"))
    if asked.match:
        if asked.initial is None:
            why = f"{field} is forbidden for watch unless sendInitialEvents is provided"
            wrong.append(status_errors.banned(field, why))
        if asked.match != least:
            wrong.append(status_errors.unknown(field, asked.match, (least,)))
        if asked.continue_:
            wrong.append(status_errors.banned(field, f"{field} is forbidden when continue is provided"))
    return wrong


def _number(query: Query, name: str) -> int:
    text = first(query, name)
    if not text:
        return 0
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 18:
        raise status_errors.bad_request(
            f"strconv.ParseInt: parsing {status_errors.quote(text)}: invalid syntax"
        )
    return int(text)


def writing(query: Query, kind: str) -> Writing:
    """The options of a write; ``kind`` is what upstream calls them. Raises `Invalid`."""
    if not query:
        return _PLAIN_WRITING
    dry = query.get("dryRun", ())
    made = Writing(
        dry=bool(dry),
        manager=first(query, "fieldManager"),
        validation=first(query, "fieldValidation"),
        force=flag(query, "force") if "force" in query else None,
    )
    wrong = _dry_problems(dry)
    if kind != "PatchOptions":
        # Those of patches are looked at together with the kind of patch.
        wrong += validate_field_manager(made.manager)
    if made.validation not in _VALIDATIONS:
        wrong.append(status_errors.unknown("fieldValidation", made.validation, _VALIDATIONS))
    if wrong:
        raise status_errors.invalid(_META, kind, "", wrong)
    return made


def _dry_problems(values: Sequence[str]) -> list[FieldError]:
    return (
        [status_errors.unknown("dryRun", list(values), ("All",))] if any(v != "All" for v in values) else []
    )


def deleting(query: Query, body: bytes) -> Deleting:
    """The options of a deletion: those of the body, if there is one. Raises `BadRequest` or `Invalid`."""
    said = _body(body) if body else _query(query)
    wrong: list[FieldError] = []
    policy = said.propagationPolicy
    if policy is not None and said.orphanDependents is not None:
        why = "orphanDependents and deletionPropagation cannot be both set"
        wrong.append(status_errors.wrong("propagationPolicy", policy, why))
    if policy is not None and policy not in _POLICIES:
        wrong.append(status_errors.unknown("propagationPolicy", policy, (*_POLICIES, "nil")))
    wrong += _dry_problems(said.dryRun)
    if wrong:
        raise status_errors.invalid(_META, "DeleteOptions", "", wrong)
    if policy is None and said.orphanDependents is not None:
        policy = "Orphan" if said.orphanDependents else "Background"
    limits = said.preconditions
    options = Options(
        uid=(limits.uid if limits is not None else None) or "",
        version=(limits.resourceVersion if limits is not None else None) or "",
        propagation=policy,
        grace=said.gracePeriodSeconds,
    )
    return Deleting(options, bool(said.dryRun), said.orphanDependents is False)


def _body(body: bytes) -> DeleteOptions:
    try:
        # Told by how it begins: no JSON begins so.
        document = protobuf.decode(body) if body.startswith(protobuf.MAGIC) else json_document(body)
    except Unreadable as error:
        raise status_errors.bad_request(f"couldn't get version/kind; json parse error: {error}") from None
    if isinstance(document, dict) and document.get("kind") not in (None, "", "DeleteOptions"):
        kind, version = document["kind"], document.get("apiVersion") or "v1"
        raise status_errors.bad_request(
            f'no kind "{kind}" is registered for version "{version}" in scheme '
            '"pkg/apis/meta/internalversion/scheme/register.go:27"'
        )
    try:
        return msgspec.convert(document, DeleteOptions)
    except msgspec.ValidationError as error:
        raise status_errors.bad_request(mistake(DeleteOptions, document) or str(error)) from None


def _query(query: Query) -> DeleteOptions:
    if not query:
        return _NOTHING
    return DeleteOptions(
        propagationPolicy=first(query, "propagationPolicy") or None,
        gracePeriodSeconds=_number(query, "gracePeriodSeconds") if "gracePeriodSeconds" in query else None,
        orphanDependents=flag(query, "orphanDependents") if "orphanDependents" in query else None,
        dryRun=tuple(query.get("dryRun", ())),
    )


_NOTHING = DeleteOptions()
