"""A Service and the Deployment behind it, for the worlds of the controllers of endpoints."""

from __future__ import annotations

from typing import Any


def service(name: str, **spec: Any) -> dict[str, Any]:
    """A Service of the pods with the label ``app: web``, by the name of their port."""
    spec = {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "targetPort": "web"}], **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def deployment(replicas: int) -> dict[str, Any]:
    """The Deployment ``web``, whose pods have the named port ``web``."""
    container = {"name": "main", "image": "app:1", "ports": [{"name": "web", "containerPort": 8080}]}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
