"""The REST API: every call is one endpoint, and every endpoint is one call of the library.

It only translates: HTTP to calls, results to JSON, errors to status codes. Logs and labels contain no id, query or
text. The endpoints stand with the types of their resource; here they become one application.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import cast

from litestar import Litestar, Router
from litestar.datastructures import MutableScopeHeaders
from litestar.di import Provide
from litestar.handlers import ASGIRouteHandler
from litestar.plugins import PluginProtocol
from litestar.plugins.core import MsgspecDIPlugin
from litestar.routes import HTTPRoute
from litestar.types import Message, Scope

from memory.api import guards
from memory.api.asgi import AsgiApp
from memory.api.bodies import BODY_BYTES_MAX, JsonBody, MessagesSchema
from memory.api.callers import Callers
from memory.api.conversations import (
    ConversationsController,
    MessagesController,
    ReceiptMessagesController,
    SessionsController,
)
from memory.api.document import document_config, show_document, show_document_page
from memory.api.front import Front
from memory.api.health import show_health, show_liveness
from memory.api.memories import MemoriesController
from memory.api.operator import OperatorController
from memory.api.page_files import PageFiles
from memory.api.profiles import ProfilesController
from memory.api.projects import InvitationsController, ProjectsController
from memory.api.receipts import ReceiptsController
from memory.api.refusals import HANDLERS
from memory.api.transfers import TransfersController
from memory.api.turns import TurnsController
from memory.api.users import (
    CallerController,
    ErasuresController,
    EverythingController,
    OperatorErasuresController,
    OptOutController,
)
from memory.runtime.tracing import Telemetry
from memory.service.library import Library

BASES = ("/v1/memory", "/v1")  # the proxy's port serves what is below the first
OF_MEMORIES = (
    *(MemoriesController, TransfersController, TurnsController, ReceiptsController, MessagesController),
    *(ReceiptMessagesController, OptOutController, EverythingController, ErasuresController, ProjectsController),
    InvitationsController,
)
OF_PAGES = (CallerController, OperatorController, OperatorErasuresController)
OF_BOTH_BASES = (ProfilesController, SessionsController, ConversationsController)


class SlimLitestar(Litestar):
    """Without the plugins for pydantic and attrs, which other packages bring: 7 MB and 0.2 s of a start for nothing."""

    @staticmethod
    def _get_default_plugins(plugins: list[PluginProtocol]) -> list[PluginProtocol]:
        return [*plugins, MsgspecDIPlugin()]


def create_app(
    library: Library, callers: Callers, *, telemetry: Telemetry, routes: Sequence[ASGIRouteHandler] = ()
) -> AsgiApp:
    """The application. `routes`: of others."""
    passed = frozenset(path for route in routes for path in route.paths)
    app = PageFiles(cast(AsgiApp, framework_app(library, callers, routes)), identity_mode=callers.identity_mode)
    return Front(app, callers=callers, passed=passed, telemetry=telemetry)


def framework_app(library: Library, callers: Callers, routes: Sequence[ASGIRouteHandler] = ()) -> Litestar:
    """What `memory.api.front` stands before."""
    guarded = partial(
        Router,
        guards=[guards.call_guard(callers)],
        dependencies={
            "call": Provide(guards.call, sync_to_thread=False),
            "path_id": Provide(guards.path_id, sync_to_thread=False),
            "member_id": Provide(guards.member_id, sync_to_thread=False),
        },
        dto=JsonBody,
        return_dto=None,
    )
    return SlimLitestar(
        route_handlers=[
            *routes,
            show_health,
            show_liveness,
            show_document,
            show_document_page,
            guarded("/", route_handlers=[*OF_MEMORIES, *OF_PAGES]),
            *(guarded(base, route_handlers=list(OF_BOTH_BASES)) for base in BASES),
        ],
        dependencies={"library": Provide(lambda: library, sync_to_thread=False)},
        exception_handlers=HANDLERS,
        before_send=[name_methods],
        logging_config=None,
        openapi_config=document_config(),
        plugins=[MessagesSchema()],
        request_max_body_size=BODY_BYTES_MAX,
    )


async def name_methods(message: Message, scope: Scope) -> None:
    """All methods of the path, in an answer to OPTIONS: of several handlers the framework names those of one."""
    if message["type"] == "http.response.start" and scope.get("method") == "OPTIONS" and message["status"] < 400:
        routes = [route for route in scope["litestar_app"].routes if isinstance(route, HTTPRoute)]
        methods = {name for route in routes if route.path_format == scope["path_template"] for name in route.methods}
        MutableScopeHeaders(message)["allow"] = ", ".join(sorted(methods))
