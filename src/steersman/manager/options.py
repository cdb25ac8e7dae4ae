"""Options of ``steersman run``: the command line, validated, as typed values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from steersman.controllers import CONTROLLERS
from steersman.intent.controller import Controller, Flag, Settings
from steersman.intent.settings import Misconfigured
from steersman.manager import flag_validation
from steersman.manager.controller_selection import select
from steersman.manager.feature_gates import Features, read_features
from steersman.manager.flag_table import FLAGS
from steersman.manager.flag_types import NamedPair
from steersman.manager.flags import UsageError, parse
from steersman.manager.logs import LoggingOptions

T = TypeVar("T", bound=msgspec.Struct)


def flags(prefix: str = "") -> Callable[[str], str]:
    """The flag of a field of an option group: ``bind_address`` is ``bind-address``."""
    return lambda name: prefix + name.replace("_", "-")


def flag(name: str) -> Any:
    """A field with an explicit flag name."""
    return msgspec.field(name=name)


def _group(group: type[T], values: Mapping[str, Any]) -> T:
    """An option group with the value of each field's flag."""
    return group(*(values[name] for name in group.__struct_encode_fields__))


class ServingOptions(msgspec.Struct, frozen=True, rename=flags()):
    """Secure serving."""

    bind_address: str
    secure_port: int
    """0: HTTPS is not served."""
    cert_dir: str
    tls_cert_file: str
    tls_private_key_file: str
    tls_sni_cert_key: tuple[NamedPair, ...]
    tls_min_version: str
    """Empty, or ``VersionTLS10`` to ``VersionTLS13``."""
    tls_cipher_suites: tuple[str, ...]
    tls_curve_preferences: tuple[int, ...]
    disable_http2_serving: bool
    http2_max_streams_per_connection: int
    permit_port_sharing: bool
    permit_address_sharing: bool


class AuthenticationOptions(msgspec.Struct, frozen=True, rename=flags("authentication-")):
    """Delegated authentication."""

    kubeconfig: str
    skip_lookup: bool
    tolerate_lookup_failure: bool
    token_webhook_cache_ttl: float
    client_ca_file: str = flag("client-ca-file")
    requestheader_client_ca_file: str = flag("requestheader-client-ca-file")
    requestheader_allowed_names: tuple[str, ...] = flag("requestheader-allowed-names")
    requestheader_username_headers: tuple[str, ...] = flag("requestheader-username-headers")
    requestheader_uid_headers: tuple[str, ...] = flag("requestheader-uid-headers")
    requestheader_group_headers: tuple[str, ...] = flag("requestheader-group-headers")
    requestheader_extra_headers_prefix: tuple[str, ...] = flag("requestheader-extra-headers-prefix")


class AuthorizationOptions(msgspec.Struct, frozen=True, rename=flags("authorization-")):
    """Delegated authorization."""

    kubeconfig: str
    always_allow_paths: tuple[str, ...]
    webhook_cache_authorized_ttl: float
    webhook_cache_unauthorized_ttl: float


class LeaderElectionOptions(msgspec.Struct, frozen=True):
    """Leader election. Durations are seconds."""

    enabled: bool = flag("leader-elect")
    name: str = flag("leader-elect-resource-name")
    namespace: str = flag("leader-elect-resource-namespace")
    lock: str = flag("leader-elect-resource-lock")
    lease_duration: float = flag("leader-elect-lease-duration")
    renew_deadline: float = flag("leader-elect-renew-deadline")
    retry_period: float = flag("leader-elect-retry-period")


class LeaderMigrationOptions(msgspec.Struct, frozen=True):
    """Leader migration."""

    enabled: bool = flag("enable-leader-migration")
    config: str = flag("leader-migration-config")
    """Path of the LeaderMigrationConfiguration; empty: the default configuration."""


class MetricsOptions(msgspec.Struct, frozen=True, rename=flags()):
    """Which metrics are exposed."""

    show_hidden_metrics_for_version: str
    disabled_metrics: tuple[str, ...]
    allow_metric_labels: tuple[tuple[str, str], ...]
    """``("metric,label", "value,value")``: all other values of the label are counted as ``unexpected``."""
    allow_metric_labels_manifest: str
    """A file with more of them; the flag takes precedence."""


class DebuggingOptions(msgspec.Struct, frozen=True, rename=flags()):
    """Profiling endpoints."""

    profiling: bool
    contention_profiling: bool


class Options(msgspec.Struct, frozen=True):
    """The command line of ``steersman run``, validated. Durations are seconds."""

    controllers: tuple[Controller[Any], ...]
    settings: Settings
    features: Features
    """Every feature gate."""
    workers: Mapping[str, int]
    kubeconfig: str
    master: str
    qps: float
    burst: int
    resync: float
    use_service_accounts: bool
    start_interval: float
    """``--controller-start-interval``"""
    shutdown_timeout: float
    """``--controller-shutdown-timeout``"""
    serving: ServingOptions
    authentication: AuthenticationOptions
    authorization: AuthorizationOptions
    election: LeaderElectionOptions
    migration: LeaderMigrationOptions
    logging: LoggingOptions
    metrics: MetricsOptions
    debugging: DebuggingOptions
    values: Mapping[str, Any]
    """The values of all flags by name, as `steersman.manager.flag_types` parses them."""


def read(argv: Sequence[str]) -> Options:
    """Parse a command line. Raises `UsageError`."""
    return options(parse(FLAGS, argv))


def options(values: Mapping[str, Any]) -> Options:
    """Validate the values of all flags. Raises `UsageError`."""
    features = read_features(values)
    wrong = tuple(flag_validation.problems(values, features))
    if wrong:
        raise UsageError.of(wrong)
    settings = Settings(
        gates=features.overrides(),
        flags={flag.name: values[flag.name] for c in CONTROLLERS for flag in c.flags},
    )
    controllers = select(values["controllers"], settings)
    try:
        for controller in CONTROLLERS:
            controller.configured(settings)
    except Misconfigured as error:
        raise UsageError(str(error)) from None
    workers = [c.workers.name for c in CONTROLLERS if isinstance(c.workers, Flag)]
    return Options(
        controllers=controllers,
        settings=settings,
        features=features,
        workers={name: values[name] for name in workers},
        kubeconfig=values["kubeconfig"],
        master=values["master"],
        # As upstream: 0 is the default of the client library.
        qps=values["kube-api-qps"] or 5.0,
        burst=values["kube-api-burst"] or 10,
        resync=values["min-resync-period"],
        use_service_accounts=values["use-service-account-credentials"],
        start_interval=values["controller-start-interval"],
        shutdown_timeout=values["controller-shutdown-timeout"],
        serving=_group(ServingOptions, values),
        authentication=_group(AuthenticationOptions, values),
        authorization=_group(AuthorizationOptions, values),
        election=_group(LeaderElectionOptions, values),
        migration=_group(LeaderMigrationOptions, values),
        logging=_logging(values),
        metrics=_group(MetricsOptions, values),
        debugging=_group(DebuggingOptions, values),
        values=values,
    )


def _logging(values: Mapping[str, Any]) -> LoggingOptions:
    form = values["logging-format"]
    return LoggingOptions(
        format=form,
        verbosity=values["v"],
        modules=values["vmodule"],
        split=values[f"log-{form}-split-stream"],
        buffer=values[f"log-{form}-info-buffer-size"].value(),
        flush=values["log-flush-frequency"],
    )
