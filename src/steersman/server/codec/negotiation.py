"""What a client will take: reading an Accept header the way kube-apiserver does.

Kubernetes asks for more than a media type there: ``application/json;as=Table;g=meta.k8s.io;v=v1`` wants
the objects as another kind. Clauses are tried from the most to the least wanted, and one that asks for a
kind the endpoint cannot make is passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from steersman.api.errors import NotAcceptable

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"

SERVED = (JSON, YAML)
"""What the embedded server can write. differs: upstream also writes protobuf."""


class Target(NamedTuple):
    """The kind an answer shall be turned into."""

    group: str
    version: str
    kind: str


class MediaTypeOptions(NamedTuple):
    """What an answer shall look like."""

    media_type: str
    target: Target | None = None
    stream: str = ""
    pretty: bool = False

    @property
    def content_type(self) -> str:
        """The header of the answer."""
        return f"{self.media_type};stream={self.stream}" if self.stream else self.media_type


Restriction: TypeAlias = Callable[[Target | None], bool]
"""Whether an endpoint can answer with a kind; None is its own."""


_INSERTION_SORT_LIMIT = 12
"""So many clauses are sorted by insertion; nobody has more, and sorting must stay cheap if one does."""


class _Clause(NamedTuple):
    type: str
    subtype: str
    quality: float
    parameters: Mapping[str, str]


def is_supported(accept: str) -> bool:
    """Whether a header names a form of answers upstream has, or takes any: nothing else is even looked at."""
    if not accept:
        return True
    types = (clause.partition(";")[0].strip() for clause in accept.split(","))
    return any(type_ in _SUPPORTED for type_ in types)


_SUPPORTED = ("*/*", JSON, YAML, PROTOBUF)


def own_kind(target: Target | None) -> bool:
    """For endpoints that answer with what they have."""
    return target is None


_META_KINDS = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")


def own_kind_or_meta(target: Target | None) -> bool:
    """For endpoints of resources: the objects, a table of them, or only their metadata."""
    return target is None or (
        target.group == "meta.k8s.io" and target.version in ("v1", "v1beta1") and target.kind in _META_KINDS
    )


def negotiate(
    accept: str, allows: Restriction = own_kind, served: Sequence[str] = SERVED
) -> MediaTypeOptions:
    """The best answer a client takes; the first that is served where it does not say.

    Raises `NotAcceptable` where there is none.
    """
    if not accept:
        return MediaTypeOptions(served[0])
    for clause in _parse_clauses(accept):
        for media_type in served:
            if _matches(clause, media_type):
                choice = _accept(clause, media_type, allows)
                if choice is not None:
                    return choice
    raise NotAcceptable(
        f"only the following media types are accepted: {', '.join(served)}", reason="NotAcceptable"
    )


def _matches(clause: _Clause, media_type: str) -> bool:
    if clause.type == "*":
        return clause.subtype == "*"
    type_, _, subtype = media_type.partition("/")
    return clause.type == type_ and clause.subtype in (subtype, "*")


def _accept(clause: _Clause, media_type: str, allows: Restriction) -> MediaTypeOptions | None:
    said = clause.parameters
    target = None
    if "as" in said or "g" in said or "v" in said:
        target = Target(said.get("g", ""), said.get("v", ""), said.get("as", ""))
    stream = said.get("stream", "")
    # Nobody serves another version of the generic kinds than asked for by "v".
    if said.get("sv") or stream not in ("", "watch") or not allows(target):
        return None
    return MediaTypeOptions(media_type, target, stream, said.get("pretty") == "1")


def _parse_clauses(accept: str) -> list[_Clause]:
    """The clauses of a header, most wanted first. What is no media type is passed over."""
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
    # The comparison is not an order (a wildcard of higher quality comes both before and after), so how
    # it is sorted matters: by insertion, as Go does with as few as these.
    for start in range(1, len(clauses)):
        place = start
        while place and _precedes(clauses[place], clauses[place - 1]):
            clauses[place - 1], clauses[place] = clauses[place], clauses[place - 1]
            place -= 1
    return clauses


def _precedes(one: _Clause, other: _Clause) -> bool:
    return (
        one.quality > other.quality
        or (one.type != "*" and other.type == "*")
        or (one.subtype != "*" and other.subtype == "*")
    )
