"""Corrects answers to OPTIONS: of a path with several handlers, the framework names the methods of one."""

from __future__ import annotations

from litestar.datastructures import MutableScopeHeaders
from litestar.routes import HTTPRoute
from litestar.types import Message, Scope


async def name_methods(message: Message, scope: Scope) -> None:
    """For `before_send` of the framework."""
    if message["type"] == "http.response.start" and scope.get("method") == "OPTIONS" and message["status"] < 400:
        routes = [route for route in scope["litestar_app"].routes if isinstance(route, HTTPRoute)]
        methods = {name for route in routes if route.path_format == scope["path_template"] for name in route.methods}
        MutableScopeHeaders(message)["allow"] = ", ".join(sorted(methods))
