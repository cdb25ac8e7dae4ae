"""Objects that cannot be decoded: their metadata is known, and a decision that looks at anything else fails.

Such an object exists, so it must not be taken for absent: a claim would be released while its pod runs. And its other fields must
not be taken for empty: the pod would seem to use no claim. An object that stands in for it raises `Undecodable` where a
decision looks inside; decisions that need its metadata alone (owners, labels, names) go on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn, TypeVar

from steersman.api.kinds import Object, ObjectMeta
from steersman.api.scheme import Kind
from steersman.intent.verdict import InvalidSpec

O = TypeVar("O", bound=Object)

METADATA = "metadata"


class Undecodable(InvalidSpec):
    """A decision looks inside an object that cannot be decoded. Its round fails, and is retried once the object changes."""


class _UnknownField:
    """A field of an object that cannot be decoded. Every look at it raises `Undecodable`."""

    __slots__ = ("_why",)

    def __init__(self, why: str) -> None:
        object.__setattr__(self, "_why", why)

    def _refuse(self, *_: object) -> NoReturn:
        raise Undecodable(object.__getattribute__(self, "_why"))

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            # Protocols that ask whether a method exists: copying, encoding, a debugger.
            raise AttributeError(name)
        self._refuse()

    def __repr__(self) -> str:
        return "<cannot be decoded>"

    __bool__ = __len__ = __iter__ = __contains__ = __getitem__ = __hash__ = __str__ = _refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse


# The encoder asks for the items of a mapping, and is refused as any other.
Mapping.register(_UnknownField)


def stand_in(kind: Kind[O], metadata: ObjectMeta, error: str) -> O:
    """An object that has the metadata of one that cannot be decoded, and raises `Undecodable` for all else."""
    at = f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
    unknown = _UnknownField(f"{kind.name} {at} cannot be decoded: {error}")
    fields: dict[str, Any] = {name: unknown for name in kind.type.__struct_fields__ if name != METADATA}
    return kind.type(metadata=metadata, **fields)


def is_decodable(obj: Object) -> bool:
    """Whether a decision may look inside an object: for rounds about many, which can leave out those it may not."""
    # All fields but the metadata, which comes first, are alike.
    return type(getattr(obj, obj.__struct_fields__[-1])) is not _UnknownField
