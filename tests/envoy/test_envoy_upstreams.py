"""What stands behind Envoy: upstreams that prove their name, close connections, or have templates that refuse notes."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
import template_server as shapes
from filter_stack import NOTE, FilterStack, running_stack
from template_server import TemplateServer, chat_body, running_template_server
from upstream import RecordingUpstream

from memory.model import ModelWindow, Placement

pytestmark = pytest.mark.asyncio(loop_scope="session")  # one stack of templates, and models of its own for each test
# Self-signed until 2126, all with the one key: a fresh machine need not have `openssl`. Each names another server:
# openssl req -x509 -new -key key.pem -days 36500 -subj /CN=test -addext subjectAltName=DNS:localhost -out localhost.pem
CERTIFICATES = Path(__file__).resolve().parents[1] / "data" / "tls"
LOCALHOST, ADDRESS, ELSEWHERE = (CERTIFICATES / f"{name}.pem" for name in ("localhost", "address", "elsewhere"))
QUESTION = chat_body("m", "What is my cat called?", memory_context={"user_id": "alice"})


@asynccontextmanager
async def serving(
    answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
    context: ssl.SSLContext | None = None,
) -> AsyncIterator[int]:
    """Its port."""
    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]


@asynccontextmanager
async def https_upstream(certificate: Path) -> AsyncIterator[tuple[int, list[bytes]]]:
    """Answers 204 to everything under this certificate; its port, and the request heads that it got."""
    heads: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, CERTIFICATES / "key.pem")
    async with serving(answer, context) as port:
        yield port, heads


@pytest.mark.parametrize(
    ("host", "certificate", "status"),
    [
        ("localhost", LOCALHOST, 204),
        pytest.param("127.0.0.1", ADDRESS, 204, marks=pytest.mark.full("another kind of name")),
        ("localhost", ELSEWHERE, 503),
    ],
    ids=["its name", "its address", "another name"],
)
async def test_an_upstream_is_reached_only_when_it_proves_its_name(
    host: str, certificate: Path, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    async with (
        https_upstream(certificate) as (port, heads),
        running_stack(f"https://{host}:{port}/base") as stack,
        stack.client() as client,
    ):
        assert (await client.get("/v1/models")).status_code == status
        if status == 503:
            assert heads == []
        else:
            assert heads[0].startswith(b"GET /base/v1/models HTTP/1.1\r\n")
            assert f"host: {host}:{port}\r\n".encode() in heads[0]


async def answer_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Closes the connection when its second request arrives: a race, always lost."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nkeep-alive: timeout=5, max=100\r\n\r\nok")
    await writer.drain()
    await reader.read(1)
    writer.close()


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_a_reply_with_trailers_is_passed_on_and_recorded(kind: str) -> None:
    event = b'data: {"choices":[{"index":0,"delta":{"content":"Miu"},"finish_reason":"stop"}]}\n\n'
    whole = b'{"choices":[{"index":0,"message":{"content":"Miu"},"finish_reason":"stop"}]}'
    body = event if kind.startswith("text") else whole

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n"
        writer.write(head.encode() + b"%x\r\n%s\r\n0\r\nx-sum: 1\r\n\r\n" % (len(body), body))
        await writer.drain()
        writer.close()

    async with serving(answer) as port, running_stack(f"http://127.0.0.1:{port}") as stack:
        assert (await stack.chat(QUESTION)).content == body
        [turn] = await stack.turns("alice", until=1)
        assert (turn.status, turn.answer) == ("closed", "Miu")


@pytest.mark.full("two more stacks")
@pytest.mark.parametrize(("is_kept_alive", "expected"), [(True, [200, 503]), (False, [200, 200])])
async def test_with_a_connection_a_request_nothing_meets_the_closing(is_kept_alive: bool, expected: list[int]) -> None:
    async with (
        serving(answer_once) as port,
        running_stack(f"http://127.0.0.1:{port}", upstream_keep_alive=is_kept_alive) as stack,
        stack.client() as client,
    ):
        assert [(await client.post("/v1/files")).status_code for _ in expected] == expected


async def test_an_upstream_below_a_path_gets_its_path_and_its_own_host(upstream: RecordingUpstream) -> None:
    async with running_stack(f"http://localhost:{upstream.port}/base/v1/") as stack, stack.client() as client:
        await client.post("/v1/chat/completions?x=1", content=QUESTION)
        assert upstream.received[-1].path == "/base/v1/chat/completions"
        assert upstream.received[-1].headers["host"] == f"localhost:{upstream.port}"
        assert upstream.received[-1].headers["x-forwarded-host"] == f"127.0.0.1:{stack.settings.port}"
        assert NOTE in upstream.received[-1].system_text()
        await client.get("/v1/models")
        assert upstream.received[-1].path == "/base/v1/models"


@pytest.mark.full("a stack of its own")
async def test_a_websocket_upgrade_passes() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n")
        writer.write(await reader.readexactly(5))
        await writer.drain()
        writer.close()

    async with serving(echo) as port, running_stack(f"http://127.0.0.1:{port}") as stack:
        reader, writer = await asyncio.open_connection("127.0.0.1", stack.settings.port)
        writer.write(b"GET /v1/realtime HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n")
        head = await reader.readuntil(b"\r\n\r\n")
        assert b" 101 " in head
        writer.write(b"hello")
        assert await reader.readexactly(5) == b"hello"
        writer.close()


# A chat template that refuses a system message in the middle: what it costs, and how long


MODELS = {  # each is one test's own
    "strict": shapes.FIRST,
    **dict.fromkeys(("free", "free, told", "free, short"), shapes.ANYWHERE),
    **dict.fromkeys(("none, missing", "none, llama_cpp", "none, told"), shapes.NOWHERE),
}
TALK = ("Hello", "Hello to you", "What is my cat called?")
IN_THE_MIDDLE = ["user", "assistant", "system", "user"]
WITHOUT = ["user", "assistant", "user"]


@pytest.fixture(scope="module")
def server() -> Iterator[TemplateServer]:
    with running_template_server(MODELS, shapes.MISSING) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_stack(server: TemplateServer) -> AsyncIterator[FilterStack]:
    async with running_stack(server.url) as stack:
        yield stack


@pytest.fixture
def stack(stack: FilterStack, server: TemplateServer) -> FilterStack:
    server.tokenize, server.window = shapes.MISSING, 0
    stack.recall.placement = Placement.BEFORE_LAST_USER
    return stack


async def asked(stack: FilterStack, model: str, *texts: str, **more: object) -> int:
    """The status of one chat, of a user who is called like the model."""
    return (await stack.chat(chat_body(model, *(texts or TALK), **more), **{"x-authz-user-id": model})).status_code


async def learnt(stack: FilterStack, model: str, placement: Placement) -> None:
    """Once the filter knows that notes for this model stand there."""
    async with asyncio.timeout(60):
        while await stack.recall.model_capabilities.placement(model) is not placement:
            await asyncio.sleep(0.02)


async def test_one_refusal_moves_that_model_s_notes_to_the_front(stack: FilterStack, server: TemplateServer) -> None:
    assert await asked(stack, "strict") == 400
    assert server.placed() == IN_THE_MIDDLE
    await learnt(stack, "strict", Placement.SYSTEM)
    assert await asked(stack, "strict") == 200
    assert server.placed() == ["system", "user", "assistant", "user"]
    assert NOTE in server.chats[-1]["messages"][0]["content"]
    assert await asked(stack, "free") == 200
    assert server.placed() == IN_THE_MIDDLE
    assert stack.count("memproxy_placement_switched_total", placement="system", source="refused") == 1


@pytest.mark.parametrize("shape", [shapes.MISSING, shapes.LLAMA_CPP])
async def test_after_some_refusals_notes_are_off(stack: FilterStack, server: TemplateServer, shape: str) -> None:
    server.tokenize, model, statuses = shape, f"none, {shape}", []
    async with asyncio.timeout(60):
        while await stack.recall.model_capabilities.placement(model) is not Placement.OFF:
            statuses.append(await asked(stack, model))
            await stack.turns(model, until=len(statuses))  # what it teaches is stored beside its turn, perhaps after it
    assert set(statuses) == {500 if shape == shapes.LLAMA_CPP else 400}
    assert len(statuses) >= 4
    assert await asked(stack, model) == 200
    assert server.placed() == WITHOUT


async def test_a_server_that_tells_is_asked_once_beside_a_request(stack: FilterStack, server: TemplateServer) -> None:
    server.tokenize = shapes.VLLM
    await asked(stack, "none, told")  # may be refused: nothing waits for the answer
    await learnt(stack, "none, told", Placement.OFF)
    assert await asked(stack, "none, told") == 200
    assert server.placed() == WITHOUT
    for _ in range(3):
        assert await asked(stack, "free, told") == 200
    assert [question["model"] for question in server.questions].count("free, told") == 1
    assert stack.count("memproxy_placement_switched_total", placement="off", source="asked") == 1


async def test_a_refusal_for_length_teaches_the_window_alone(stack: FilterStack, server: TemplateServer) -> None:
    server.window = 300
    for more in ({}, {"memory_config": {"auto_store": False}}):
        stack.windows._known.clear()
        assert await asked(stack, "free, short", max_tokens=290, **more) == 400
        async with asyncio.timeout(60):
            while stack.windows.glance("free, short") is None:
                await asyncio.sleep(0.02)
        assert stack.windows.glance("free, short") == ModelWindow(300)
    assert await stack.recall.model_capabilities.placement("free, short") is None
    assert await asked(stack, "free, short") == 200
