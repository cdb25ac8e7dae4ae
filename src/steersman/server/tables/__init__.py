"""Tables: what ``kubectl get`` shows, made where the objects are.

A client asks for them with ``Accept: application/json;as=Table;g=meta.k8s.io;v=v1``. One module per
family of kinds has the columns and the functions that make the cells; `lay_out` puts them together::

    printer = printer_for("pods")                       # or custom_printer(columns) for a custom resource
    document = lay_out(printer, pods, now, include="Metadata", metadata=ListMeta(resourceVersion="42"))
    body = msgspec.json.encode(document)
"""

from __future__ import annotations

from steersman.server.tables import (
    access,
    admission,
    cluster,
    config,
    devices,
    events,
    metrics,
    network,
    pods,
    scaling,
    storage,
    workloads,
)
from steersman.server.tables.custom import custom_printer
from steersman.server.tables.document import DEFAULT, Include, Table, include_of, lay_out, partial
from steersman.server.tables.printer import Column, Printer, Printers
from steersman.server.tables.scaling import SCALE

__all__ = [
    "DEFAULT",
    "SCALE",
    "Column",
    "Include",
    "Printer",
    "Table",
    "custom_printer",
    "include_of",
    "lay_out",
    "partial",
    "printer_for",
]

_PRINTERS: Printers = {
    **pods.PRINTERS,
    **workloads.PRINTERS,
    **network.PRINTERS,
    **cluster.PRINTERS,
    **events.PRINTERS,
    **config.PRINTERS,
    **storage.PRINTERS,
    **access.PRINTERS,
    **scaling.PRINTERS,
    **admission.PRINTERS,
    **devices.PRINTERS,
    **metrics.PRINTERS,
}


def printer_for(resource: str) -> Printer:
    """How a built-in resource is shown, by its name: ``pods``, ``deployments.apps``."""
    return _PRINTERS.get(resource, DEFAULT)
