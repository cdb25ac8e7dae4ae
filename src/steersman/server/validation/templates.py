"""What workloads have in common: a selector, a template it selects, and numbers that may be shares."""

from __future__ import annotations

from collections.abc import Mapping

from steersman.api.generated import core_v1 as v1
from steersman.api.generated.base import IntOrString
from steersman.api.generated.meta_v1 import LabelSelector
from steersman.server.status_errors import IMMUTABLE
from steersman.server.validation import names
from steersman.server.validation.field_errors import FieldErrors, format_labels, format_selector
from steersman.server.validation.pods.spec import template as check_template
from steersman.server.validation.selectors import compiled, label_selector

MISMATCH = "`selector` does not match template `labels`"


def selects(errors: FieldErrors, given: LabelSelector | None, kind: str) -> None:
    if given is None:
        errors.required("spec.selector")
        return
    label_selector(errors, "spec.selector", given)
    if not given.matchLabels and not given.matchExpressions:
        errors.invalid("spec.selector", format_selector(given), f"empty selector is invalid for {kind}")


def selected(
    errors: FieldErrors, given: LabelSelector | Mapping[str, str] | None, template: v1.PodTemplateSpec
) -> bool:
    """Whether the selector makes sense; if so, it must select what the template makes."""
    chosen = compiled(given)
    if chosen is None:
        return False
    if not chosen.empty and not chosen.matches(template.metadata.labels):
        errors.invalid("spec.template.metadata.labels", format_labels(template.metadata.labels), MISMATCH)
    return True


def lasting(errors: FieldErrors, template: v1.PodTemplateSpec, kind: str) -> None:
    """The pods of these kinds always restart and have no deadline."""
    if template.spec.restartPolicy != "Always":
        at = "spec.template.spec.restartPolicy"
        errors.not_supported(at, template.spec.restartPolicy, ("Always",))
    if template.spec.activeDeadlineSeconds is not None:
        says = f"activeDeadlineSeconds in {kind} is not Supported"
        errors.forbidden("spec.template.spec.activeDeadlineSeconds", says)


def template_of(
    errors: FieldErrors, template: v1.PodTemplateSpec, known: v1.PodTemplateSpec | None, kind: str
) -> None:
    """A template; one that was there before was found sound then."""
    if template is known or template == known:
        return
    check_template(errors, "spec.template", template)
    lasting(errors, template, kind)


def int_or_percent(errors: FieldErrors, path: str, value: IntOrString) -> None:
    """A count or a share, neither below zero."""
    if isinstance(value, int):
        errors.nonnegative(path, value)
    else:
        errors.invalid_each(path, value, names.percent(value))


def number(value: IntOrString) -> int:
    if isinstance(value, int):
        return value
    return 0 if names.percent(value) else int(value[:-1])


def at_most_all(errors: FieldErrors, path: str, value: IntOrString) -> None:
    if isinstance(value, str) and number(value) > 100:
        errors.invalid(path, value, "must not be greater than 100%")


def fixed_selector(errors: FieldErrors, new: LabelSelector | None, old: LabelSelector | None) -> None:
    if new != old:
        errors.invalid("spec.selector", format_selector(new), IMMUTABLE)
