"""Configuration: what pods are given, and how much of it a namespace may have."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from steersman.server.tables import cells
from steersman.server.tables.age import since
from steersman.server.tables.printer import NAME, Cell, Printer, Printers, columns

if TYPE_CHECKING:
    from steersman.api.generated.core_v1 import ConfigMap, ResourceQuota, Secret, ServiceAccount


def secret(secret: Secret, now: datetime) -> tuple[Cell, ...]:
    metadata = secret.metadata
    return metadata.name, secret.type, len(secret.data), since(metadata.creationTimestamp, now)


def config_map(found: ConfigMap, now: datetime) -> tuple[Cell, ...]:
    entries = len(found.data) + len(found.binaryData)
    return found.metadata.name, entries, since(found.metadata.creationTimestamp, now)


def service_account(account: ServiceAccount, now: datetime) -> tuple[Cell, ...]:
    return account.metadata.name, since(account.metadata.creationTimestamp, now)


def resource_quota(quota: ResourceQuota, now: datetime) -> tuple[Cell, ...]:
    requests: list[str] = []
    limits: list[str] = []
    for resource in sorted(quota.status.hard):
        used, hard = quota.status.used.get(resource), quota.status.hard[resource]
        column = limits if resource.startswith("limits.") else requests
        column.append(f"{resource}: {cells.quantity(used)}/{cells.quantity(hard)}")
    age = since(quota.metadata.creationTimestamp, now)
    return quota.metadata.name, ", ".join(requests), ", ".join(limits), age


PRINTERS: Printers = {
    "secrets": Printer(columns(NAME, "Type", "Data", "Age"), secret),
    "configmaps": Printer(columns(NAME, "Data", "Age"), config_map),
    "serviceaccounts": Printer(columns(NAME, "Age"), service_account),
    "resourcequotas": Printer(columns(NAME, "Request", "Limit", "Age"), resource_quota),
}
