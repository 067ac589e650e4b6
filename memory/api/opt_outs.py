"""The user's switch for all of memory: `GET`, `PUT` and `DELETE /v1/memory/opt-out`."""

from __future__ import annotations

from collections.abc import Callable

from starlette.responses import Response
from starlette.routing import Route

from memory.api.calls import Call, json_answer
from memory.api.shapes import time_text
from memory.service.library import Library

PATH = "/v1/memory/opt-out"


def opt_out_routes(route: Callable[..., Route]) -> list[Route]:
    calls = (("GET", show_opt_out), ("PUT", opt_out), ("DELETE", opt_in))
    return [route(PATH, method, endpoint) for method, endpoint in calls]


async def show_opt_out(library: Library, call: Call) -> Response:
    return json_answer(opt_out_shape(await library.opt_outs.since(call.user_id)))


async def opt_out(library: Library, call: Call) -> Response:
    return json_answer(opt_out_shape(await library.opt_outs.opt_out(call.user_id)))


async def opt_in(library: Library, call: Call) -> Response:
    await library.opt_outs.opt_in(call.user_id)
    return json_answer(opt_out_shape(None))


def opt_out_shape(since: float | None) -> dict[str, bool | str | None]:
    """The time is null for users who have not opted out."""
    return {"opted_out": since is not None, "opted_out_since": time_text(since)}


__all__ = ["opt_out_routes", "opt_out_shape"]
