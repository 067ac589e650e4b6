"""An https upstream is reached only when it proves its name."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from filter_stack import running_stack


@asynccontextmanager
async def https_upstream(folder: Path, name: str) -> AsyncIterator[tuple[int, list[bytes]]]:
    """Answers 204 to everything under a fresh certificate for `name`; its port, and the request heads that it got."""
    assert shutil.which("openssl"), "this test makes a certificate: install openssl"
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test"]
    command += ["-addext", f"subjectAltName={name}", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    heads: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1], heads


async def test_an_upstream_with_the_right_name_is_reached_under_its_own_host(tmp_path: Path) -> None:
    async with (
        https_upstream(tmp_path, "DNS:localhost") as (port, heads),
        running_stack(f"https://localhost:{port}/base", root_certificates=tmp_path / "certificate.pem") as stack,
        stack.client() as client,
    ):
        assert (await client.get("/v1/models")).status_code == 204
        assert heads[0].startswith(b"GET /base/v1/models HTTP/1.1\r\n")
        assert f"host: localhost:{port}\r\n".encode() in heads[0]


async def test_an_upstream_with_a_certificate_for_its_address_is_reached(tmp_path: Path) -> None:
    async with (
        https_upstream(tmp_path, "IP:127.0.0.1") as (port, _),
        running_stack(f"https://127.0.0.1:{port}", root_certificates=tmp_path / "certificate.pem") as stack,
        stack.client() as client,
    ):
        assert (await client.get("/v1/models")).status_code == 204


async def test_an_upstream_with_another_name_gets_nothing(tmp_path: Path) -> None:
    async with (
        https_upstream(tmp_path, "DNS:elsewhere.example") as (port, heads),
        running_stack(f"https://localhost:{port}", root_certificates=tmp_path / "certificate.pem") as stack,
        stack.client() as client,
    ):
        assert (await client.get("/v1/models")).status_code == 503
        assert heads == []
