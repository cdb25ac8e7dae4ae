"""Chain: the admission plugins of one server, in order, and the objects they look up.

Made when a server is extended with it, so a fork has its own. Objects that plugins read are cached and
invalidated by the server's reactions to writes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from steersman.server.admission import node_restriction
from steersman.server.admission.ip_address_repair import IPAddressRepair
from steersman.server.admission.node_restriction import NodeRestriction
from steersman.server.admission.plugin import AdmissionDenied, Plugin, PodPlugin, forbidden_error
from steersman.server.admission.pod_template_memo import PodTemplateMemo
from steersman.server.admission.service_ip_addresses import IPADDRESSES, sync_ip_addresses
from steersman.server.auth.attributes import Authorizer
from steersman.server.auth.users import node_identity
from steersman.server.registry.resources import Resource
from steersman.server.server import AdmissionAttributes, BeforeWrite, Reaction, Server
from steersman.server.storage.store import object_key
from steersman.server.storage.watch import Selection

if TYPE_CHECKING:
    from steersman.server.admission.policies import PolicyAdmission
    from steersman.server.admission.webhooks import WebhookAdmission

WEBHOOK_TABLES = (
    "mutatingwebhookconfigurations.admissionregistration.k8s.io",
    "validatingwebhookconfigurations.admissionregistration.k8s.io",
)
POLICY_TABLES = (
    "validatingadmissionpolicies.admissionregistration.k8s.io",
    "validatingadmissionpolicybindings.admissionregistration.k8s.io",
    "mutatingadmissionpolicies.admissionregistration.k8s.io",
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
)


class StoreListers:
    """`Listers` into a server's tables. Lists of what plugins read are kept until something changes."""

    def __init__(self, server: Server, kept: frozenset[str]) -> None:
        self.server = server
        self._kept = kept
        self._lists: dict[str, dict[str, tuple[Any, ...]]] = {}
        self._pools: dict[str, dict[Any, str]] = {"ips": {}, "ports": {}}
        self._held: dict[str, tuple[tuple[str, Any], ...]] = {}
        """By Service: its addresses and ports."""

    @property
    def authorizer(self) -> Authorizer | None:
        return self.server.authorizer

    @property
    def random(self) -> Random:
        return self.server.names

    def get(self, resource: str, namespace: str, name: str) -> Any | None:
        return self.server.store.table(resource).get(object_key(namespace, name))

    def list(self, resource: str, namespace: str = "") -> tuple[Any, ...]:
        lists = self._lists.get(resource)
        if lists is None:
            lists = self._lists[resource] = {}
        found = lists.get(namespace)
        if found is None:
            found = tuple(self.server.store.table(resource).select(Selection(namespace)))
            if resource in self._kept:
                lists[namespace] = found
        return found

    def write_status(self, resource: str, obj: Any) -> None:
        meta = obj.metadata
        found = self.server.registry.find("", "v1", resource)
        self.server.rewrite(found, meta.namespace, meta.name, lambda old: obj, subresource="status")

    def allocated_to(self, pool: str, key: Any) -> str:
        return self._pools[pool].get(key, "")

    def service_with(self, ip: str) -> Any | None:
        """The Service that has a cluster IP."""
        key = self.allocated_to("ips", ip)
        return self.server.store.table("services").get(key) if key else None

    def changed(self, resource: str, obj: Any) -> None:
        """Invalidates cached lists after an object was written or removed."""
        lists = self._lists.get(resource)
        if lists:
            lists.pop(obj.metadata.namespace, None)
            lists.pop("", None)

    def update_allocations(
        self, service: Any, allocations_of: Callable[[Any], tuple[tuple[str, Any], ...]]
    ) -> tuple[tuple[str, Any], ...]:
        """Updates the allocations of a Service that was written or removed; returns those it had."""
        meta = service.metadata
        key = object_key(meta.namespace, meta.name)
        before = self._held.pop(key, ())
        for pool, item in before:
            self._pools[pool].pop(item, None)
        current = self.get("services", meta.namespace, meta.name)
        if current is not None:
            self._held[key] = held = allocations_of(current)
            for pool, item in held:
                self._pools[pool][item] = key
        return before


AllocationsOf = Callable[[Any], tuple[tuple[str, Any], ...]]


class Chain:
    """Implements `steersman.server.server.Admission` by a list of plugins."""

    def __init__(self, server: Server, plugins: tuple[Plugin, ...], allocations_of: AllocationsOf) -> None:
        self.plugins = plugins
        self._restricts_nodes = any(plugin.name == NodeRestriction.name for plugin in plugins)
        read = tuple(dict.fromkeys(name for plugin in plugins for name in plugin.reads))
        self.listers = StoreListers(server, frozenset(read))
        self._templates = PodTemplateMemo(
            tuple(plugin for plugin in plugins if isinstance(plugin, PodPlugin)), self.listers
        )
        self._pod_plugin_reads = frozenset(
            name for plugin in plugins if isinstance(plugin, PodPlugin) for name in plugin.reads
        )
        self._mutators: dict[tuple[str, str], tuple[Plugin, ...]] = {}
        self._validators: dict[tuple[str, str], tuple[Plugin, ...]] = {}
        self._server = server
        self._webhooks: WebhookAdmission | None = None
        """None while there is no webhook configuration, which is always in most servers."""
        self._policies: PolicyAdmission | None = None
        """None while there is no binding of an admission policy, which is always in most servers."""
        for name in POLICY_TABLES:
            self._load_policies(name)
            _react(server, name, lambda obj, name=name: self._load_policies(name))  # type: ignore[misc]
        for name in WEBHOOK_TABLES:
            self._load_webhooks(name)
            _react(server, name, lambda obj, name=name: self._load_webhooks(name))  # type: ignore[misc]
        for name in read:
            _react(server, name, self._invalidate_on_change(name))
        for service in server.store.table("services").select(Selection()):
            self.listers.update_allocations(service, allocations_of)

        def service_changed(service: Any) -> None:
            before = self.listers.update_allocations(service, allocations_of)
            sync_ip_addresses(server, service, tuple(item for pool, item in before if pool == "ips"))

        _react(server, "services", service_changed)
        _react(server, IPADDRESSES, IPAddressRepair(server, self.listers.service_with).changed)

    def _invalidate_on_change(self, resource: str) -> Reaction:
        affects_pods = resource in self._pod_plugin_reads

        def changed(obj: Any) -> None:
            self.listers.changed(resource, obj)
            if affects_pods:
                meta = obj.metadata
                self._templates.forget(meta.name if resource == "namespaces" else meta.namespace)

        return changed

    def _load_webhooks(self, table: str) -> None:
        """Follows the webhook configurations. The module is imported when there is one."""
        if self._webhooks is not None:
            self._webhooks.changed(table)
        elif len(self._server.store.table(table)):
            from steersman.server.admission.webhooks import WebhookAdmission

            self._webhooks = WebhookAdmission(self._server, self.listers)

    def _load_policies(self, table: str) -> None:
        """Follows the admission policies. The module is imported, and CEL with it, when there is a binding."""
        if self._policies is not None:
            self._policies.changed(table)
        elif "bindings" in table and len(self._server.store.table(table)):
            from steersman.server.admission.policies import PolicyAdmission

            self._policies = PolicyAdmission(self._server, self.listers)

    # -- admission ----------------------------------------------------------------------------

    def mutate(self, request: AdmissionAttributes) -> Any:
        webhooks, policies = self._webhooks, self._policies
        if webhooks is None and policies is None:
            return self._run_mutators(request, late=None)
        by_webhooks = webhooks is not None and bool(webhooks.mutating)
        if not by_webhooks and (policies is None or not policies.mutating):
            return self._run_mutators(request, late=None)
        plugins: Callable[[AdmissionAttributes], Any] = partial(self._run_mutators, late=False)
        if policies is not None and policies.mutating:
            obj = self._mutate_by_policies(request, plugins, policies, webhooks if by_webhooks else None)
        else:
            assert webhooks is not None
            obj = webhooks.mutate(request, plugins)
        return self._run_mutators(replace(request, obj=obj), late=True)

    def _mutate_by_policies(
        self,
        request: AdmissionAttributes,
        plugins: Callable[[AdmissionAttributes], Any],
        policies: PolicyAdmission,
        webhooks: WebhookAdmission | None,
    ) -> Any:
        """Policies come after the built-in plugins and before webhooks; where one has changed the object, all run again."""
        from steersman.server.admission.policies.mutating import Mutations

        state = Mutations()

        def mutate(current: AdmissionAttributes) -> Any:
            return policies.mutate(replace(current, obj=plugins(current)), state)

        obj = mutate(request) if webhooks is None else webhooks.mutate(request, mutate)
        if state.changed and state.rounds == 1:
            obj = mutate(replace(request, obj=obj))
        return obj

    def _run_mutators(self, request: AdmissionAttributes, late: bool | None) -> Any:
        """Runs the built-in plugins: those before (False) or after (True) the webhooks, or all of them."""
        resource, subresource = request.resource, request.subresource
        if request.operation == "CONNECT":
            return request.obj
        if self._restricts_nodes and not late:
            self.restrict_node(request)
        if request.operation == "DELETE":
            return request.obj
        if resource.id == "pods" and not subresource and request.operation == "CREATE":
            return request.obj if late else self._templates.mutate(request)
        key = (resource.id, subresource)
        plugins = self._mutators.get(key)
        if plugins is None:
            plugins = self._mutators[key] = self._plugins_for(
                resource, subresource, lambda plugin: plugin.mutates
            )
        if not plugins:
            return request.obj
        try:
            for plugin in plugins:
                if late is None or plugin.late is late:
                    request = replace(request, obj=plugin.mutate(request, self.listers))
        except AdmissionDenied as refused:
            raise forbidden_error(request, str(refused)) from None
        return request.obj

    def validate(self, request: AdmissionAttributes) -> BeforeWrite | None:
        webhooks, policies = self._webhooks, self._policies
        if webhooks is None and policies is None:
            return self._run_validators(request, late=None)
        by_webhooks = webhooks is not None and bool(webhooks.validating)
        if not by_webhooks and (policies is None or not policies.validating):
            return self._run_validators(request, late=None)
        early = self._run_validators(request, late=False)
        if policies is not None and policies.validating:
            policies.validate(request)
        if by_webhooks:
            assert webhooks is not None
            webhooks.validate(request)
        late = self._run_validators(request, late=True)
        both = [each for each in (early, late) if each is not None]
        return partial(_run_all, both) if both else None

    def _run_validators(self, request: AdmissionAttributes, late: bool | None) -> BeforeWrite | None:
        """Runs the built-in plugins: those before (False) or after (True) the webhooks, or all of them."""
        resource, subresource = request.resource, request.subresource
        if request.operation in ("DELETE", "CONNECT"):
            return None
        if resource.id == "pods" and not subresource and request.operation == "CREATE" and not late:
            self._templates.validate(request)
        key = (resource.id, subresource)
        plugins = self._validators.get(key)
        if plugins is None:
            plugins = self._validators[key] = self._plugins_for(
                resource, subresource, lambda plugin: plugin.validates
            )
        before_writes: list[BeforeWrite] = []
        try:
            for plugin in plugins:
                if late is not None and plugin.late is not late:
                    continue
                before_write = plugin.validate(request, self.listers)
                if before_write is not None:
                    before_writes.append(before_write)
        except AdmissionDenied as refused:
            raise forbidden_error(request, str(refused)) from None
        return partial(_run_all, before_writes) if before_writes else None

    def restrict_node(self, request: AdmissionAttributes) -> None:
        """Denies what a node may not write; other users are not looked at."""
        node = node_identity(request.user)
        if node is None:
            return
        try:
            node_restriction.admit(node, request, self.listers)
        except AdmissionDenied as refused:
            raise forbidden_error(request, str(refused)) from None

    def warnings(self, request: AdmissionAttributes) -> tuple[str, ...]:
        """Warnings for the client of an admitted request."""
        texts = (text for plugin in self.plugins for text in plugin.warn(request, self.listers))
        return tuple(dict.fromkeys(texts))

    def _plugins_for(
        self, resource: Resource, subresource: str, handled: Callable[[Plugin], tuple[str, ...]]
    ) -> tuple[Plugin, ...]:
        return tuple(
            plugin
            for plugin in self.plugins
            if subresource in plugin.subresources
            and (resource.id in handled(plugin) or (resource.namespaced and "*" in handled(plugin)))
        )


def _run_all(before_writes: list[BeforeWrite]) -> None:
    for before_write in before_writes:
        before_write()


def _react(server: Server, resource: str, reaction: Reaction) -> None:
    """Adds a reaction to a server's existing ones."""
    before = server.reactions.get(resource)

    def both(obj: Any) -> None:
        assert before is not None
        before(obj)
        reaction(obj)

    server.reactions[resource] = reaction if before is None else both
