"""Content negotiation: parses an Accept header as kube-apiserver does.

A clause may request another kind, too: ``application/json;as=Table;g=meta.k8s.io;v=v1``. Clauses are tried in
order of preference; a clause with a kind that the endpoint does not serve is skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from steersman.api.errors import NotAcceptable

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"

SERVED = (JSON, YAML, PROTOBUF)
"""The media types of responses."""
STREAMS = (JSON, PROTOBUF)
"""The media types of watches."""


class Target(NamedTuple):
    """The group, version and kind that a client wants the response converted to."""

    group: str
    version: str
    kind: str


class MediaTypeOptions(msgspec.Struct, frozen=True):
    """The negotiated form of a response."""

    media_type: str
    target: Target | None = None
    stream: str = ""
    pretty: bool = False

    @property
    def content_type(self) -> str:
        """The Content-Type header of the response."""
        return f"{self.media_type};stream={self.stream}" if self.stream else self.media_type


Restriction: TypeAlias = Callable[[str, Target | None], bool]
"""Whether an endpoint serves a target in a media type; None is its own kind (upstream's EndpointRestrictions)."""


_INSERTION_SORT_LIMIT = 12
"""The number of clauses up to which insertion sort is used, as Go does; longer lists use a fast sort."""


class _Clause(msgspec.Struct, frozen=True):
    type: str
    subtype: str
    quality: float
    parameters: Mapping[str, str]


def is_supported(accept: str) -> bool:
    """Whether a header accepts a media type that upstream serves; other headers are ignored."""
    if not accept:
        return True
    types = (clause.partition(";")[0].strip() for clause in accept.split(","))
    return any(type_ in _SUPPORTED for type_ in types)


_SUPPORTED = ("*/*", JSON, YAML, PROTOBUF)


def own_kind(media_type: str, target: Target | None) -> bool:
    """The restriction of endpoints that serve their own kind only."""
    return target is None


_META_KINDS = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")


def own_kind_or_meta(media_type: str, target: Target | None) -> bool:
    """The restriction of resource endpoints: their own kind, a Table, or PartialObjectMetadata."""
    if target is None:
        return True
    if target.group != "meta.k8s.io" or target.version not in ("v1", "v1beta1"):
        return False
    return target.kind in _META_KINDS and (target.kind != "Table" or media_type != PROTOBUF)


def custom_or_meta(media_type: str, target: Target | None) -> bool:
    """The restriction of custom resources, which have no protobuf message but for their metadata."""
    return media_type != PROTOBUF if target is None else own_kind_or_meta(media_type, target)


def negotiate(
    accept: str, restriction: Restriction = own_kind, served: Sequence[str] = SERVED
) -> MediaTypeOptions:
    """The form that the client prefers; the first served media type without an Accept header.

    Raises `NotAcceptable` where no clause matches.
    """
    if not accept:
        return MediaTypeOptions(served[0])
    for clause in _parse_clauses(accept):
        for media_type in served:
            if _matches(clause, media_type):
                options = _accept(clause, media_type, restriction)
                if options is not None:
                    return options
    raise NotAcceptable(
        f"only the following media types are accepted: {', '.join(served)}", reason="NotAcceptable"
    )


def negotiate_stream(accept: str, restriction: Restriction) -> MediaTypeOptions:
    """The form of a watch. Raises `NotAcceptable` also for a form that is served, but not as a stream."""
    found = negotiate(accept, restriction)
    if found.media_type not in STREAMS:
        served = ", ".join(f"{media_type};stream=watch" for media_type in STREAMS)
        raise NotAcceptable(f"only the following media types are accepted: {served}", reason="NotAcceptable")
    return found


def _matches(clause: _Clause, media_type: str) -> bool:
    if clause.type == "*":
        return clause.subtype == "*"
    type_, _, subtype = media_type.partition("/")
    return clause.type == type_ and clause.subtype in (subtype, "*")


def _accept(clause: _Clause, media_type: str, restriction: Restriction) -> MediaTypeOptions | None:
    parameters = clause.parameters
    target = None
    if "as" in parameters or "g" in parameters or "v" in parameters:
        target = Target(parameters.get("g", ""), parameters.get("v", ""), parameters.get("as", ""))
    stream = parameters.get("stream", "")
    # Upstream serves no other version of the meta kinds than the one in "v".
    if parameters.get("sv") or stream not in ("", "watch") or not restriction(media_type, target):
        return None
    return MediaTypeOptions(media_type, target, stream, parameters.get("pretty") == "1")


def _parse_clauses(accept: str) -> list[_Clause]:
    """The clauses of a header by preference. Invalid media types are skipped."""
    clauses: list[_Clause] = []
    for part in accept.split(","):
        media_type, *rest = part.split(";")
        type_, slash, subtype = (word.strip(" ") for word in media_type.partition("/"))
        if not slash and type_ == "*":
            subtype = "*"
        if not subtype or "/" in subtype:
            continue
        parameters = dict(_parameter(text) for text in rest if text.count("=") == 1)
        clauses.append(_Clause(type_, subtype, _quality(parameters.pop("q", "1")), parameters))
    return _sort_clauses(clauses)


def _parameter(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name.strip(" "), value.strip(" ")


def _quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _sort_clauses(clauses: list[_Clause]) -> list[_Clause]:
    if len(clauses) > _INSERTION_SORT_LIMIT:
        return sorted(clauses, key=lambda clause: -clause.quality)
    # The comparison is not a total order (a wildcard of higher quality comes both before and after), so the
    # algorithm matters: Go uses insertion sort for lists this short.
    for start in range(1, len(clauses)):
        index = start
        while index and _precedes(clauses[index], clauses[index - 1]):
            clauses[index - 1], clauses[index] = clauses[index], clauses[index - 1]
            index -= 1
    return clauses


def _precedes(left: _Clause, right: _Clause) -> bool:
    return (
        left.quality > right.quality
        or (left.type != "*" and right.type == "*")
        or (left.subtype != "*" and right.subtype == "*")
    )
