"""The operator's HTTP port: /healthz for the kubelet, /metrics for Prometheus, /alerts for Alertmanager."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from millrace_operator.alerts import NotANotificationError
from millrace_operator.edge.api import ApiError, UnreachableError
from millrace_operator.edge.doors import Objection

MOST_BYTES = 4 * 2**20  # a notification of thousands of alerts; more is no notification


@dataclass(frozen=True)
class Pages:
    is_alive: Callable[[], bool]
    registry: CollectorRegistry
    take_alerts: Callable[[Any], Awaitable[int]]
    """Returns how many jobs changed."""
    count_webhook: Callable[[str], None]
    objection: Callable[[str], Objection | None]
    """What is said against a request with this Authorization header; None: it may come in."""


async def serve(pages: Pages, port: int, host: str = "0.0.0.0") -> web.AppRunner:  # noqa: S104  scraped from outside
    """Serve until the runner is cleaned up."""
    app = web.Application(client_max_size=MOST_BYTES)

    async def healthz(_: web.Request) -> web.Response:
        alive = pages.is_alive()
        return web.Response(status=200 if alive else 503, text="ok\n" if alive else "the watch is dead\n")

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(pages.registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def alerts(request: web.Request) -> web.Response:
        objection = pages.objection(request.headers.get("Authorization", ""))
        if objection is not None:  # before the body is read: it is a stranger's
            pages.count_webhook("denied")
            return web.Response(status=objection.status, text=f"{objection.sentence}\n", headers=objection.headers)
        status, result, text = await _take(request, pages)
        pages.count_webhook(result)
        return web.Response(status=status, text=text)

    app.add_routes([web.get("/healthz", healthz), web.get("/metrics", metrics), web.post("/alerts", alerts)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, host, port).start()
    return runner


async def _take(request: web.Request, pages: Pages) -> tuple[int, str, str]:
    """Alertmanager tries again after a 5xx, and not after a 4xx."""
    try:
        changed = await pages.take_alerts(json.loads(await request.read()))
    except (NotANotificationError, ValueError) as error:
        return 400, "refused", f"{error}\n"
    except (ApiError, UnreachableError) as error:
        return 503, "failed", f"{error}\n"
    return 200, "taken", f"{changed} jobs changed\n"
