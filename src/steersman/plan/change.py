"""The steps of a change: manifests to apply, and the verbs of the command line. Pure, except for reading files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from steersman.api import go_yaml

SUFFIXES = (".yaml", ".yml", ".json")
STDIN = "-"
STDIN_NAME = "standard input"
"""Names it in errors."""
MAX_REPLICAS = (1 << 31) - 1
"""Replicas are an int32."""


class ChangeError(Exception):
    """A change that cannot be read or made. The message names the thing and the way out."""


class Apply(msgspec.Struct, frozen=True):
    """Apply a document, as ``kubectl apply`` does."""

    document: Mapping[str, Any]
    origin: str = ""

    def __str__(self) -> str:
        meta = self.document.get("metadata") or {}
        return f"apply {self.document.get('kind')} {meta.get('name', '')}"


class Delete(msgspec.Struct, frozen=True):
    """Delete an object with all its dependants, as ``kubectl delete`` does."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"delete {self.kind}/{self.name}"


class Scale(msgspec.Struct, frozen=True):
    """Set the replicas of a workload."""

    kind: str
    name: str
    replicas: int

    def __str__(self) -> str:
        return f"scale {self.kind}/{self.name} to {self.replicas}"


class SetImage(msgspec.Struct, frozen=True):
    """Set the image of a container, or of the only one."""

    kind: str
    name: str
    image: str
    container: str = ""

    def __str__(self) -> str:
        return f"set the image of {self.kind}/{self.name} to {self.image}"


class Drain(msgspec.Struct, frozen=True):
    """Cordon a node and evict its pods, as ``kubectl drain`` does."""

    node: str

    def __str__(self) -> str:
        return f"drain {self.node}"


class Fail(msgspec.Struct, frozen=True):
    """Stop the kubelet of a node."""

    node: str

    def __str__(self) -> str:
        return f"fail {self.node}"


Step: TypeAlias = Apply | Delete | Scale | SetImage | Drain | Fail


def read_steps(
    *,
    files: Sequence[str] = (),
    deletes: Sequence[str] = (),
    scales: Sequence[str] = (),
    images: Sequence[str] = (),
    drains: Sequence[str] = (),
    fails: Sequence[str] = (),
    stdin: Callable[[], str] = lambda: "",
) -> tuple[Step, ...]:
    """The steps that the flags of a command line name. Raises `ChangeError`."""
    steps: list[Step] = []
    for name in files:
        origin = STDIN_NAME if name == STDIN else name
        steps += [Apply(document, origin) for document in read_documents(name, stdin)]
    steps += [Delete(*_subject(word, "--delete")) for word in deletes]
    for word in scales:
        target, _, count = word.partition("=")
        if not count.isdecimal() or len(count) > len(str(MAX_REPLICAS)) or int(count) > MAX_REPLICAS:
            raise ChangeError(f"--scale: {word!r} is no KIND/NAME=REPLICAS, such as deploy/web=10")
        steps.append(Scale(*_subject(target, "--scale"), int(count)))
    for word in images:
        target, _, image = word.partition("=")
        container, named, rest = image.partition("=")
        if not image or (named and not rest):
            raise ChangeError(
                f"--set-image: {word!r} is no KIND/NAME=[CONTAINER=]IMAGE, such as deploy/web=web:v2"
            )
        found = (rest, container) if named else (image, "")
        steps.append(SetImage(*_subject(target, "--set-image"), *found))
    steps += [Drain(_node(word, "--drain")) for word in drains]
    steps += [Fail(_node(word, "--fail")) for word in fails]
    if not steps:
        raise ChangeError(
            "there is no change: pass -f FILE, --delete, --scale, --set-image, --drain or --fail"
        )
    return tuple(steps)


def in_order(step: Step) -> int:
    """A key to sort steps by: definitions and namespaces first, since other documents of the same change need them."""
    kind = step.document.get("kind") if isinstance(step, Apply) else ""
    return {"CustomResourceDefinition": 0, "Namespace": 1}.get(str(kind), 2)


def _subject(word: str, flag: str) -> tuple[str, str]:
    kind, _, name = word.partition("/")
    if not kind or not name or "/" in name:
        raise ChangeError(f"{flag}: {word!r} is no KIND/NAME, such as deploy/web")
    return kind, name


def _node(word: str, flag: str) -> str:
    name = word.removeprefix("node/").removeprefix("nodes/")
    if not name or "/" in name:
        raise ChangeError(f"{flag}: {word!r} is no name of a node")
    return name


# -- manifests --------------------------------------------------------------------------------


def read_documents(name: str, stdin: Callable[[], str]) -> list[Mapping[str, Any]]:
    """The documents of a file, of all manifests in a directory, or of standard input (``-``). Raises `ChangeError`."""
    if name == STDIN:
        return parse_documents(stdin(), STDIN_NAME)
    path = Path(name)
    try:
        if path.is_dir():
            found = [
                document
                for file in sorted(path.rglob("*"))
                if file.suffix in SUFFIXES and file.is_file()
                for document in parse_documents(file.read_text(), str(file))
            ]
            if not found:
                raise ChangeError(f"{name}: the directory has no manifests ({', '.join(SUFFIXES)})")
            return found
        return parse_documents(path.read_text(), name)
    except OSError as error:
        raise ChangeError(f"{name}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ChangeError(f"{name}: no text in UTF-8") from None


def parse_documents(text: str, origin: str) -> list[Mapping[str, Any]]:
    """The documents of YAML or JSON text, read as kubectl reads them; lists are unfolded. Raises `ChangeError`.

    No error quotes a piece of the text, which may be that of a Secret.
    """
    try:
        # Bytes of standard input that are no UTF-8 are surrogates in its text.
        found = [
            each for each in go_yaml.decode_all(text.encode(errors="surrogateescape")) if each is not None
        ]
    except go_yaml.YamlSyntaxError as error:
        where = f" in line {error.line}, column {error.column}" if error.line else ""
        raise ChangeError(f"{origin}: no YAML: {error.problem}{where}") from None
    except go_yaml.MalformedDocument:
        raise ChangeError(
            f"{origin}: no YAML that Kubernetes reads: check its anchors, aliases, tags and numbers"
        ) from None
    documents = list(_unfolded(found))
    for document in documents:
        if not isinstance(document, Mapping):
            raise ChangeError(
                f"{origin}: a manifest is a map with apiVersion and kind, not {type(document).__name__}"
            )
        meta = document.get("metadata")
        if not all(isinstance(document.get(each), str) and document[each] for each in ("apiVersion", "kind")):
            raise ChangeError(f"{origin}: a manifest has no apiVersion or no kind")
        if isinstance(meta, Mapping) and not meta.get("name") and meta.get("generateName"):
            raise ChangeError(f"{origin}: from {meta['generateName']}: cannot use generate name with apply")
        if not isinstance(meta, Mapping) or not meta.get("name"):
            raise ChangeError(f"{origin}: {document['kind']} has no metadata.name")
    if not documents:
        raise ChangeError(f"{origin}: there is no manifest in it")
    return documents


def _unfolded(found: Iterable[Any]) -> Iterable[Any]:
    for each in found:
        if isinstance(each, Mapping) and str(each.get("kind", "")).endswith("List") and "items" in each:
            items = each["items"] or ()
            yield from _unfolded(items if isinstance(items, list | tuple) else (items,))
        else:
            yield each
