"""An operator: what it is told of is created, changed and deleted.

After the examples of kopf (github.com/nolar/kopf, MIT): 01-minimal, 02-children and 05-handlers.
"""

from typing import Any

import kopf
import pykube


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.posting.loggers = True


@kopf.on.create("kopfexamples")
def create_fn(spec: kopf.Spec, **_: Any) -> Any:
    child = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "data": {"field": spec.get("field", "default-value")},
    }
    kopf.adopt(child)
    api = pykube.HTTPClient(pykube.KubeConfig.from_env())
    made = pykube.ConfigMap(api, child)
    made.create()
    api.session.close()
    return {"message": "hello world", "children": [made.metadata["uid"]]}


@kopf.on.resume("kopfexamples")
def resume_fn(**_: Any) -> Any:
    return {"message": "there before"}


@kopf.on.update("kopfexamples")
def update_fn(diff: kopf.Diff, body: kopf.Body, **_: Any) -> Any:
    kopf.info(body, reason="Noticed", message="Something is different.")
    return {"changed": [".".join(field) for _, field, _, _ in diff]}


@kopf.on.field("kopfexamples", field="spec.field")
def field_fn(old: Any, new: Any, **_: Any) -> Any:
    return {"old": old, "new": new}


@kopf.on.delete("kopfexamples")
def delete_fn(body: kopf.Body, **_: Any) -> None:
    kopf.info(body, reason="Goodbye", message="It was nice to have you.")
