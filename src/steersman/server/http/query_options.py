"""The options of lists, watches, writes and deletions, from the query or the body of a request."""

from __future__ import annotations

import msgspec

from steersman.api.errors import BadRequest
from steersman.api.generated import meta_v1
from steersman.api.go_duration import duration_nanos
from steersman.api.go_yaml import MalformedDocument
from steersman.api.label_selectors import parse_selector
from steersman.http.target import Query, first, flag
from steersman.server import status_errors
from steersman.server.apply.options import validate_field_manager
from steersman.server.codec import protobuf
from steersman.server.codec.convert import to_struct
from steersman.server.codec.go_decode_errors import go_decode_error
from steersman.server.codec.json_yaml import decode_json
from steersman.server.registry.graceful_deletion import (
    DeletionOptions,
    deletion_options,
    dry_run_errors,
    validate_deletion_options,
)
from steersman.server.rest.listing import match_errors
from steersman.server.rest.request import ListOptions
from steersman.server.status_errors import FieldError

_META = "meta.k8s.io"
_VALIDATIONS = ("", "Ignore", "Strict", "Warn")


class WriteOptions(msgspec.Struct, frozen=True):
    """The options of a create, update or patch."""

    dry_run: bool = False
    field_manager: str = ""
    field_validation: str = ""
    force: bool | None = None


class DeleteParameters(msgspec.Struct, frozen=True):
    """The options of a deletion, and how it is answered."""

    deletion: DeletionOptions
    dry_run: bool = False
    accepted: bool = False
    """Whether a deletion that must wait is answered with 202."""


_DEFAULTS = WriteOptions()


def list_options(query: Query, *, watch: bool = False) -> ListOptions:
    """The options of a list or watch. Raises `BadRequest` or `Invalid`."""
    if not query:
        return ListOptions()
    options = ListOptions(
        label_selector=first(query, "labelSelector"),
        field_selector=first(query, "fieldSelector"),
        limit=_number(query, "limit"),
        continue_=first(query, "continue"),
        resource_version=first(query, "resourceVersion"),
        resource_version_match=first(query, "resourceVersionMatch"),
        timeout_seconds=_number(query, "timeoutSeconds") if "timeoutSeconds" in query else None,
        allow_watch_bookmarks=flag(query, "allowWatchBookmarks"),
        send_initial_events=flag(query, "sendInitialEvents") if "sendInitialEvents" in query else None,
    )
    wrong = _watch_problems(options) if watch else _list_problems(options)
    if wrong:
        raise status_errors.invalid(_META, "ListOptions", "", wrong)
    return options


def check_timeout(query: Query) -> None:
    """Raises `BadRequest` for a ``timeout`` that is no duration.

    differs: it ends no request; those of an embedded server do not wait.
    """
    text = first(query, "timeout")
    if text:
        try:
            duration_nanos(text)
        except ValueError as error:
            raise status_errors.bad_request(
                f"invalid timeout specified in the request URL - {error}"
            ) from None


def list_options_decode(query: Query) -> bool:
    """Whether the options of a list can be decoded. As upstream, no right to one name is used for those that cannot."""
    try:
        _number(query, "limit")
        _number(query, "timeoutSeconds")
        parse_selector(first(query, "labelSelector"))
    except (BadRequest, ValueError):
        return False
    return True


def _list_problems(options: ListOptions) -> list[FieldError]:
    wrong = match_errors(options.resource_version, options.resource_version_match, options.continue_)
    if options.send_initial_events is not None:
        field = "sendInitialEvents"
        wrong.append(status_errors.field_forbidden(field, f"{field} is forbidden for list"))
    return wrong


def _watch_problems(options: ListOptions) -> list[FieldError]:
    wrong = []
    field, least = "resourceVersionMatch", "NotOlderThan"
    if options.send_initial_events is not None and options.resource_version_match != least:
        wrong.append(
            status_errors.field_forbidden(field, f"sendInitialEvents requires setting {field} to {least}")
        )
    # As upstream, which takes a watch from the beginning for one with initial events.
    from_start = options.send_initial_events is None and options.resource_version in ("", "0")
    if options.continue_ and not options.resource_version_match and from_start:
        wrong.append(status_errors.field_forbidden(field, f"{field} is forbidden when continue is provided"))
    if options.resource_version_match:
        if options.send_initial_events is None:
            why = f"{field} is forbidden for watch unless sendInitialEvents is provided"
            wrong.append(status_errors.field_forbidden(field, why))
        if options.resource_version_match != least:
            wrong.append(status_errors.field_not_supported(field, options.resource_version_match, (least,)))
        if options.continue_:
            wrong.append(
                status_errors.field_forbidden(field, f"{field} is forbidden when continue is provided")
            )
    return wrong


def _number(query: Query, name: str) -> int:
    if name not in query:
        return 0
    text = first(query, name)
    digits = text[1:] if text[:1] in ("-", "+") else text
    problem = "invalid syntax"
    if digits.isascii() and digits.isdigit():
        if len(digits) <= 19 and -(2**63) <= int(text) < 2**63:
            return int(text)
        problem = "value out of range"
    raise status_errors.bad_request(f"strconv.ParseInt: parsing {status_errors.quote(text)}: {problem}")


def write_options(query: Query, kind: str) -> WriteOptions:
    """The options of a write; ``kind`` is upstream's name for them. Raises `Invalid`."""
    if not query:
        return _DEFAULTS
    dry_run = query.get("dryRun", ())
    options = WriteOptions(
        dry_run=bool(dry_run),
        field_manager=first(query, "fieldManager"),
        field_validation=first(query, "fieldValidation"),
        force=flag(query, "force") if "force" in query else None,
    )
    wrong = dry_run_errors(dry_run)
    if kind != "PatchOptions":
        # The manager of a patch is checked together with the patch type.
        wrong += validate_field_manager(options.field_manager)
    if options.field_validation not in _VALIDATIONS:
        wrong.append(
            status_errors.field_not_supported("fieldValidation", options.field_validation, _VALIDATIONS)
        )
    if wrong:
        raise status_errors.invalid(_META, kind, "", wrong)
    return options


def delete_options(query: Query, body: bytes) -> DeleteParameters:
    """The options of a deletion: those in the body, or else those in the query. Raises `BadRequest` or `Invalid`."""
    given = _from_body(body) if body else _from_query(query)
    validate_deletion_options(given)
    return DeleteParameters(deletion_options(given), bool(given.dryRun), given.orphanDependents is False)


def _from_body(body: bytes) -> meta_v1.DeleteOptions:
    try:
        # Recognised by its first bytes, with which no JSON begins.
        document = protobuf.decode(body) if body.startswith(protobuf.MAGIC) else decode_json(body)
    except MalformedDocument as error:
        raise status_errors.bad_request(f"couldn't get version/kind; json parse error: {error}") from None
    version = document.get("apiVersion") if isinstance(document, dict) else None
    if isinstance(version, str) and version.count("/") > 1:
        raise status_errors.bad_request(f"unexpected GroupVersion string: {version}")
    if isinstance(document, dict) and document.get("kind") not in (None, "", "DeleteOptions"):
        kind, version = document["kind"], version or "v1"
        raise status_errors.bad_request(
            f'no kind "{kind}" is registered for version "{version}" in scheme '
            '"pkg/apis/meta/internalversion/scheme/register.go:27"'
        )
    try:
        given: meta_v1.DeleteOptions = to_struct(meta_v1.DeleteOptions, document)
    except ValueError as error:
        raise status_errors.bad_request(
            go_decode_error(meta_v1.DeleteOptions, document) or str(error)
        ) from None
    grace = given.gracePeriodSeconds
    if grace is not None and not -(2**63) <= grace < 2**63:
        raise status_errors.bad_request(go_decode_error(meta_v1.DeleteOptions, document))
    return given


def _from_query(query: Query) -> meta_v1.DeleteOptions:
    if not query:
        return _NO_OPTIONS
    uid, version = first(query, "uid") or None, first(query, "resourceVersion") or None
    return meta_v1.DeleteOptions(
        propagationPolicy=first(query, "propagationPolicy") if "propagationPolicy" in query else None,
        # As upstream, also where the query of a collection says which version to list.
        preconditions=meta_v1.Preconditions(version, uid) if uid or version else None,
        gracePeriodSeconds=_number(query, "gracePeriodSeconds") if "gracePeriodSeconds" in query else None,
        orphanDependents=flag(query, "orphanDependents") if "orphanDependents" in query else None,
        dryRun=tuple(query.get("dryRun", ())),
    )


_NO_OPTIONS = meta_v1.DeleteOptions()
