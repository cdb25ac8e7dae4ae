"""Validation of the conversion of a definition."""

from __future__ import annotations

from urllib.parse import urlsplit

from steersman.api.generated.apiextensions_v1 import (
    CustomResourceConversion,
    ServiceReference,
    WebhookClientConfig,
)
from steersman.api.label_syntax import subdomain_errors
from steersman.server.validation.field_errors import FieldErrors
from steersman.server.validation.names import dns1035_label

_FORM = "; desired format: https://host[/path]"
_REVIEWS = ("v1", "v1beta1")


def validate_conversion(conversion: CustomResourceConversion, path: str, errors: FieldErrors) -> None:
    """Validates the conversion strategy and webhook of a definition."""
    errors.enum(f"{path}.strategy", conversion.strategy, ("None", "Webhook"))
    webhook = conversion.webhook
    client = webhook.clientConfig if webhook is not None else None
    reviews = webhook.conversionReviewVersions if webhook is not None else ()
    if conversion.strategy == "Webhook":
        if client is None:
            errors.required(f"{path}.webhookClientConfig", "required when strategy is set to Webhook")
        else:
            _client(client, f"{path}.webhookClientConfig", errors)
        _reviews(reviews, f"{path}.conversionReviewVersions", errors)
        return
    detail = "should not be set when strategy is not set to Webhook"
    if client is not None:
        errors.forbidden(f"{path}.webhookClientConfig", detail)
    if reviews:
        errors.forbidden(f"{path}.conversionReviewVersions", detail)


def _client(client: WebhookClientConfig, path: str, errors: FieldErrors) -> None:
    if (client.url is None) == (client.service is None):
        errors.required(path, "exactly one of url or service is required")
    elif client.url is not None:
        _url(client.url, f"{path}.url", errors)
    elif client.service is not None:
        _service(client.service, f"{path}.service", errors)


def _url(text: str, path: str, errors: FieldErrors) -> None:
    try:
        url = urlsplit(text)
    except ValueError as error:
        errors.required(path, f"url must be a valid URL: {error}{_FORM}")
        return
    if url.scheme != "https":
        errors.invalid(path, url.scheme, f"'https' is the only allowed URL scheme{_FORM}")
    user, _, host = url.netloc.rpartition("@")
    if not host:
        errors.invalid(path, host, f"host must be specified{_FORM}")
    if user:
        errors.invalid(path, user, "user information is not permitted in the URL")
    if url.fragment:
        errors.invalid(path, url.fragment, "fragments are not permitted in the URL")
    if url.query:
        errors.invalid(path, url.query, "query parameters are not permitted in the URL")


def _service(service: ServiceReference, path: str, errors: FieldErrors) -> None:
    # Upstream swaps the two here, so a missing namespace is reported as a missing name.
    if not service.namespace:
        errors.required(f"{path}.name")
    if not service.name:
        errors.required(f"{path}.namespace")
    port = service.port or 0
    if not 1 <= port <= 65535:
        errors.invalid(f"{path}.port", port, "port is not valid: must be between 1 and 65535, inclusive")
    where = service.path
    if where is None or where in ("", "/"):
        return
    if where == "//":
        errors.invalid(f"{path}.path", where, "segment[0] may not be empty")
        return
    if not where.startswith("/"):
        errors.invalid(f"{path}.path", where, "must start with a '/'")
    for index, step in enumerate(where[1:].removesuffix("/").split("/")):
        if not step:
            errors.invalid(f"{path}.path", where, f"segment[{index}] may not be empty")
        for wrong in subdomain_errors(step) if step else ():
            errors.invalid(f"{path}.path", where, f"segment[{index}]: {wrong}")


def _reviews(versions: tuple[str, ...], path: str, errors: FieldErrors) -> None:
    if not versions:
        errors.required(path)
        return
    for index, version in enumerate(versions):
        if version in versions[:index]:
            errors.invalid(f"{path}[{index}]", version, "duplicate version")
            continue
        errors.invalid_each(f"{path}[{index}]", version, dns1035_label(version))
    if not any(version in _REVIEWS for version in versions):
        errors.invalid(path, versions, f"must include at least one of {', '.join(_REVIEWS)}")
