"""Label and field selectors of a request, as a `Selection` of the store.

The name that a request is authorised for and the name that it selects come from here: `requested_name` is what the
authorizer is asked about, and `select_requested` refuses a field selector that selects any other name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from steersman.api.field_selectors import FieldSelector, parse_fields
from steersman.api.label_selectors import Selector, parse_selector
from steersman.server import status_errors
from steersman.server.registry.resources import Resource
from steersman.server.rest.request import Request
from steersman.server.storage.watch import Predicate, Selection

_METADATA: dict[str, Callable[[Any], str]] = {
    "metadata.name": lambda obj: str(obj.metadata.name),
    "metadata.namespace": lambda obj: str(obj.metadata.namespace),
}


def requested_name(verb: str, path_name: str, field_selector: str) -> str:
    """The one object that a request is for, or empty where it may be for several: RBAC rules can be for a name.

    The name in the path wins. Without one, a list or watch is for the name that its field selector requires. A
    deletecollection never is: as upstream, it needs the right to the whole collection.
    """
    if path_name or verb not in ("list", "watch") or "metadata.name" not in field_selector:
        return path_name
    try:
        name = parse_fields(field_selector).exact("metadata.name") or ""
    except ValueError:
        return ""  # refused once the request is authorised
    return name if _is_path_segment(name) else ""


def _is_path_segment(name: str) -> bool:
    return name not in (".", "..") and "/" not in name and "%" not in name


def select_requested(request: Request) -> Selection:
    """The selection of a list, watch or deletecollection.

    Raises `BadRequest` for an invalid selector, and for a field selector that does not require the request's name.
    """
    options = request.list_options
    selection = select(request.resource, request.namespace, options.label_selector, options.field_selector)
    if not request.name or selection.name == request.name:
        return selection
    if not parse_fields(options.field_selector).empty:
        raise status_errors.bad_request("fieldSelector metadata.name doesn't match requested name")
    return Selection(selection.namespace, request.name, selection.test)


def select(
    resource: Resource, namespace: str = "", label_selector: str = "", field_selector: str = ""
) -> Selection:
    """The selection of a request. Raises `BadRequest` for an invalid selector."""
    namespace = namespace if resource.namespaced else ""
    if not label_selector and not field_selector:
        return Selection(namespace)
    try:
        labels, fields = parse_selector(label_selector), parse_fields(field_selector)
    except ValueError as error:
        raise status_errors.bad_request(str(error)) from None
    wanted = fields.exact("metadata.namespace")
    if not namespace and wanted and resource.namespaced:
        namespace = wanted
    name = fields.exact("metadata.name") or ""
    return Selection(namespace, name, _test(labels, fields, _readers(resource, fields)))


_NOT_SUPPORTED = {
    "jobs.batch": 'field label "{}" not supported for Job',
    "resourceslices.resource.k8s.io": "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {}",
}


def _readers(resource: Resource, fields: FieldSelector) -> dict[str, Callable[[Any], str]]:
    known = {**_METADATA, **resource.strategy.selectable_fields}
    for term in fields.terms:
        if term.field not in known:
            if resource.strategy.selectable_fields:
                said = _NOT_SUPPORTED.get(resource.id, "field label not supported: {}")
                raise status_errors.bad_request(said.format(term.field))
            raise status_errors.bad_request(
                f'"{term.field}" is not a known field selector: only "metadata.name", "metadata.namespace"'
            )
    return {term.field: known[term.field] for term in fields.terms}


def _test(
    labels: Selector, fields: FieldSelector, readers: dict[str, Callable[[Any], str]]
) -> Predicate | None:
    # metadata.name= alone is a lookup; every other term is tested on each object.
    by_name = len(fields.terms) == 1 and fields.terms[0].field == "metadata.name" and fields.terms[0].equal
    if labels.empty and (fields.empty or by_name):
        return None
    if fields.empty or by_name:
        return lambda obj: labels.matches(obj.metadata.labels)

    # A list of Events tests thousands of objects at once: each term by itself, and none after one that fails.
    terms = tuple((readers[term.field], term.value, term.equal) for term in fields.terms)
    any_labels = labels.empty

    def matches(obj: Any) -> bool:
        for read, value, equal in terms:
            if (read(obj) == value) is not equal:
                return False
        return any_labels or labels.matches(obj.metadata.labels)

    return matches
