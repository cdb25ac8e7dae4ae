"""What to tell whoever wrote something that was not refused, but may not do what they expect."""

from __future__ import annotations

from typing import Any

from steersman.api.generated.apiextensions_v1 import CustomResourceDefinition
from steersman.server.admission import Chain
from steersman.server.codec.convert import FORMS
from steersman.server.crd import warnings
from steersman.server.crd.custom import Custom
from steersman.server.http.context import Context
from steersman.server.registry.resources import Resource
from steersman.server.server import Attributes, Operation
from steersman.server.validation.warnings import warnings_for


def remark(ctx: Context, operation: Operation, resource: Resource, obj: Any, old: Any) -> None:
    """Add to a request's warnings what is to be said of what it wrote."""
    asked, admission = ctx.asked, ctx.server.admission
    if isinstance(admission, Chain):
        request = Attributes(
            operation, resource, asked.subresource, asked.namespace, asked.name, obj, old, ctx.user.name
        )
        ctx.warnings += admission.warnings(request)
    if not asked.subresource:
        ctx.warnings += warnings_for(resource.kind if resource.type not in FORMS else "", obj, old)
    if isinstance(obj, CustomResourceDefinition):
        ctx.warnings += warnings.warnings(obj, old)
    elif isinstance(obj, Custom) and obj.metadata.finalizers:
        ctx.warnings += warnings.finalizers(obj.metadata, None if old is None else old.metadata)
