"""Whether this process serves, and whether memories can be read."""

from __future__ import annotations

from typing import Literal

import msgspec
from litestar import Response, get
from litestar.openapi.datastructures import ResponseSpec

from memory.api.operations import TheLibrary


class HealthView(msgspec.Struct, frozen=True):
    status: Literal["ok", "unavailable"]


@get(
    "/health",
    operation_id="getHealth",
    security=[{}],
    tags=["health"],
    responses={503: ResponseSpec(HealthView, False, "Memories cannot be read now.")},
)
async def show_health(library: TheLibrary) -> Response[HealthView]:
    """Whether memories can be read now."""
    is_ready = await library.is_ready()
    return Response(HealthView("ok" if is_ready else "unavailable"), status_code=200 if is_ready else 503)


@get("/healthz", operation_id="getLiveness", security=[{}], tags=["health"])
async def show_liveness() -> HealthView:
    """Whether this process serves."""
    return HealthView("ok")
