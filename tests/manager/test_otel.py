"""OpenTelemetry spans: rounds of one chain in one trace, sent to a collector, and nothing imported without one."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from steersman.api.kinds import DEPLOYMENTS
from steersman.controllers import CONTROLLERS
from steersman.manager.tracing import make_tracing
from steersman.runtime.controller_group import ControllerGroup
from steersman.runtime.trace import Trace
from steersman.sim.world import World
from tests.harness.stuck import deployment

otel = pytest.importorskip("steersman.manager.otel", reason="needs the extra otel")
NAMES = ("deployment-controller", "replicaset-controller")


def run_world(trace: Trace) -> None:
    """A Deployment whose pods are created."""
    with World(seed=1) as world:
        chosen = [each for each in CONTROLLERS if each.name in NAMES]
        world.spawn(ControllerGroup(chosen, world.api(), world, trace=trace).run(), name="manager")
        world.run(world.api().create(DEPLOYMENTS, "default", deployment(replicas=2)))
        world.run(world.settle())


def test_a_round_is_a_child_of_the_round_whose_write_caused_it() -> None:
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    trace, exporter = Trace(), InMemorySpanExporter()
    spans = otel.Spans(trace, exporter)
    run_world(trace)
    spans.flush()
    spans.close()
    found: list[Any] = list(exporter.get_finished_spans())
    by_id = {span.context.span_id: span for span in found}
    created = next(span for span in found if span.name == "create 2 pods")
    replicaset = by_id[created.parent.span_id]
    assert replicaset.attributes["steersman.controller"] == "replicaset-controller"
    assert replicaset.attributes["steersman.verdict"].startswith("rests: ")
    assert len(created.attributes["steersman.resource_versions"]) == 2
    caused = by_id[replicaset.parent.span_id]
    assert caused.name == "deployment-controller default/web"
    assert caused.parent is None
    assert caused.context.trace_id == replicaset.context.trace_id
    assert all(span.start_time <= span.end_time for span in found)


class Collector(BaseHTTPRequestHandler):
    """An OTLP collector that keeps what it is sent."""

    bodies: list[tuple[str, bytes]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            import gzip

            body = gzip.decompress(body)
        self.bodies.append((self.path, body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    bodies: list[tuple[str, bytes]] = []
    handler = type("Handler", (Collector,), {"bodies": bodies})
    server = HTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", bodies
    server.shutdown()
    server.server_close()
    thread.join()


def test_spans_reach_the_collector_of_the_environment(
    collector: tuple[str, list[tuple[str, bytes]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    url, bodies = collector
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
    tracing = make_tracing()
    run_world(tracing.trace)
    assert tracing.close is not None
    tracing.close()
    sent = [ExportTraceServiceRequest.FromString(body) for path, body in bodies if path == "/v1/traces"]
    names = {
        span.name
        for request in sent
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    }
    assert {"deployment-controller default/web", "create 2 pods"} <= names


def test_a_missing_extra_is_one_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "steersman.manager.otel", None)
    with caplog.at_level(logging.WARNING):
        tracing = make_tracing({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"})
    assert tracing.trace.enabled
    (record,) = caplog.records
    assert "install steersman[otel]" in record.getMessage()


@pytest.mark.parametrize(
    ("environ", "enabled"),
    [({}, True), ({"STEERSMAN_TRACE": "off"}, False), ({"OTEL_SDK_DISABLED": "true"}, True)],
)
def test_the_environment_turns_the_trace_off(environ: dict[str, str], enabled: bool) -> None:
    tracing = make_tracing(environ)
    assert tracing.trace.enabled is enabled
    assert tracing.trace.listeners == []


def test_nothing_of_opentelemetry_is_imported_without_an_endpoint() -> None:
    program = (
        "import sys; import steersman.manager.run, steersman.manager.up; from steersman.manager.tracing import make_tracing; "
        "make_tracing({}); print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
