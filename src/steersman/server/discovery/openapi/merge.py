"""Merges the OpenAPI v2 documents of aggregated API servers into our own, as kube-aggregator does.

Of each document only the paths of its group version are taken, with the definitions they refer to. A path that is there already stays. A definition
that is there under the same name with other contents gets another name, ``NAME_v2`` and so on, and what refers to it follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from steersman.api.nesting import MAX_DEPTH, depth_of

Document = dict[str, Any]

GVKS = "x-kubernetes-group-version-kind"
_PREFIXES = {"definitions": "#/definitions/", "parameters": "#/parameters/"}


class InvalidSpec(ValueError):
    """A document is no OpenAPI v2 document."""


def read_spec(body: bytes, group: str, version: str) -> Document:
    """The part of a document that is about a group version. Raises `InvalidSpec`."""
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidSpec(str(error)) from None
    if not isinstance(found, dict) or not str(found.get("swagger", "")).startswith("2."):
        raise InvalidSpec("not an OpenAPI v2 document")
    sections = {name: found.get(name) or {} for name in ("paths", *_PREFIXES)}
    for name, section in sections.items():
        if not isinstance(section, dict) or not all(isinstance(each, dict) for each in section.values()):
            raise InvalidSpec(f"{name} is not a map of objects")
    if depth_of(sections) > MAX_DEPTH:
        raise InvalidSpec(f"it is nested more than {MAX_DEPTH} levels")
    prefix = f"/apis/{group}/{version}/"
    paths = {path: item for path, item in sections["paths"].items() if path.startswith(prefix)}
    used = _reachable(paths, sections)
    kept = {
        name: {key: value for key, value in sections[name].items() if (name, key) in used}
        for name in _PREFIXES
    }
    return {"paths": paths, **kept}


def merge_specs(own: Mapping[str, Any], specs: Iterable[Mapping[str, Any]]) -> Document:
    """Our own document with the parts of others, in their order."""
    merged: Document = {**own, "paths": dict(own["paths"])}
    for name in _PREFIXES:
        if name in own:
            merged[name] = dict(own[name])
    for spec in specs:
        _merge(merged, spec)
    return merged


def _merge(merged: Document, spec: Mapping[str, Any]) -> None:
    paths = {path: item for path, item in spec["paths"].items() if path not in merged["paths"]}
    if not paths:
        return
    used = _reachable(paths, spec)
    renamed: dict[str, str] = {}
    for section, prefix in _PREFIXES.items():
        known: Document = merged.get(section) or {}
        for name, value in spec[section].items():
            if (section, name) in used and name in known and not _alike(known[name], value):
                renamed[prefix + name] = prefix + _free_name(name, value, known, spec[section])
    rename = _renamer(renamed)
    for section, prefix in _PREFIXES.items():
        for name, value in spec[section].items():
            if (section, name) not in used:
                continue
            target = renamed.get(prefix + name, prefix + name).removeprefix(prefix)
            there = merged.setdefault(section, {})
            value = rename(value)
            if target in there:
                there[target] = _with_kinds(there[target], value)
            else:
                there[target] = value
    for path, item in paths.items():
        merged["paths"][path] = rename(item)


def _free_name(name: str, value: Any, known: Mapping[str, Any], own: Mapping[str, Any]) -> str:
    number = 2
    while True:
        candidate = f"{name}_v{number}"
        if candidate not in own and (candidate not in known or _alike(known[candidate], value)):
            return candidate
        number += 1


def _alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two definitions are the same but for the kinds that they are of."""
    return {**one, GVKS: None} == {**other, GVKS: None}


def _with_kinds(one: Mapping[str, Any], other: Mapping[str, Any]) -> Document:
    """A definition with the kinds of both."""
    kinds, more = one.get(GVKS) or [], other.get(GVKS) or []
    missing = [each for each in more if each not in kinds]
    return {**one, GVKS: [*kinds, *missing]} if missing else dict(one)


def _renamer(renamed: Mapping[str, str]) -> Callable[[Any], Any]:
    if not renamed:
        return lambda value: value

    def rename(value: Any) -> Any:
        if isinstance(value, dict):
            made = {key: rename(each) for key, each in value.items()}
            if isinstance(made.get("$ref"), str):
                made["$ref"] = renamed.get(made["$ref"], made["$ref"])
            return made
        return [rename(each) for each in value] if isinstance(value, list) else value

    return rename


def _reachable(paths: Mapping[str, Any], sections: Mapping[str, Any]) -> set[tuple[str, str]]:
    """The definitions and parameters that paths refer to, and those that these refer to."""
    found: set[tuple[str, str]] = set()
    waiting: list[Any] = [paths]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting += value
        elif isinstance(value, dict):
            reference = value.get("$ref")
            for section, prefix in _PREFIXES.items():
                if isinstance(reference, str) and reference.startswith(prefix):
                    name = reference.removeprefix(prefix)
                    if (section, name) not in found and name in sections[section]:
                        found.add((section, name))
                        waiting.append(sections[section][name])
            waiting += value.values()
    return found
