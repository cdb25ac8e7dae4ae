"""A user's operator, as a type checker sees it: kinds by name, structs with their fields."""

from __future__ import annotations

import asyncio

from steersman.testing import Client


async def scale_down_at_night(client: Client, namespace: str) -> None:
    """Once a day, scales Deployments to nothing."""
    while True:
        await asyncio.sleep(24 * 3600)
        for found in (await client.list("deployments", namespace)).items:
            if (found.spec.replicas or 0) > 0:
                await client.patch("Deployment", namespace, found.metadata.name, {"spec": {"replicas": 0}})
        for widget in (await client.list("widgets")).items:
            await client.delete("widgets", namespace, widget["metadata"]["name"])
