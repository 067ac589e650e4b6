"""An https upstream is reached only when it proves its name."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from filter_stack import running_stack

# Self-signed until 2126, all with the one key: a fresh machine need not have `openssl`. Each names another server:
# openssl req -x509 -new -key key.pem -days 36500 -subj /CN=test -addext subjectAltName=DNS:localhost -out localhost.pem
CERTIFICATES = Path(__file__).resolve().parents[1] / "data" / "tls"
KEY = CERTIFICATES / "key.pem"
LOCALHOST, ADDRESS, ELSEWHERE = (CERTIFICATES / f"{name}.pem" for name in ("localhost", "address", "elsewhere"))


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
    context.load_cert_chain(certificate, KEY)
    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1], heads


async def test_an_upstream_with_the_right_name_is_reached_under_its_own_host() -> None:
    async with (
        https_upstream(LOCALHOST) as (port, heads),
        running_stack(f"https://localhost:{port}/base", root_certificates=LOCALHOST) as stack,
        stack.client() as client,
    ):
        assert (await client.get("/v1/models")).status_code == 204
        assert heads[0].startswith(b"GET /base/v1/models HTTP/1.1\r\n")
        assert f"host: localhost:{port}\r\n".encode() in heads[0]


async def test_an_upstream_with_a_certificate_for_its_address_is_reached() -> None:
    async with (
        https_upstream(ADDRESS) as (port, _),
        running_stack(f"https://127.0.0.1:{port}", root_certificates=ADDRESS) as stack,
        stack.client() as client,
    ):
        assert (await client.get("/v1/models")).status_code == 204


async def test_an_upstream_with_another_name_gets_nothing() -> None:
    async with (
        https_upstream(ELSEWHERE) as (port, heads),
        running_stack(f"https://localhost:{port}", root_certificates=ELSEWHERE) as stack,
        stack.client() as client,
    ):
        assert (await client.get("/v1/models")).status_code == 503
        assert heads == []
