"""Counts every request, and logs it if that is wanted: method, route and status, never what a visitor typed."""

import logging
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lexiscope.app.metrics import Metrics

logger = logging.getLogger("lexiscope.access")


class RequestLog:
    def __init__(self, app: ASGIApp, metrics: Metrics, access_log: bool) -> None:
        self.app = app
        self._metrics = metrics
        self._access_log = access_log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, status = time.perf_counter(), 499  # nothing was sent: nobody was there

        async def note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, note_status)
        finally:
            route = getattr(scope.get("route"), "name", "none")
            self._metrics.count(route, status, time.perf_counter() - started)
            if self._access_log:
                logger.info("%s %s %d", scope["method"], route, status)
