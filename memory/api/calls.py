"""Shared by all endpoints: a call with its identified caller, and the JSON of an answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.responses import Response

from memory.api.identity import Caller
from memory.api.project_bounds import bounded_project
from memory.service.library import Library


@dataclass(frozen=True, slots=True)
class Call:
    """A request with an identified caller. `path_id`: the id in the path, or ""."""

    user_id: str
    path_id: str
    parameters: Mapping[str, str]
    body: bytes
    caller: Caller

    def project(self, named: str | None) -> str:
        """The project of a call that names this one. Raises `Forbidden`."""
        return bounded_project(self.caller, named or "")


Endpoint = Callable[[Library, Call], Awaitable[Response]]


def json_answer(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:  # noqa: ANN401 - any JSON
    return Response(msgspec.json.encode(content), status, headers=headers, media_type="application/json")
