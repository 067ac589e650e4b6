"""Serves one Milvus 2.3 standalone on loopback. Run by the interpreter of the server's own environment, not by ours.

Milvus 2.3 listens on every interface with a dozen ports and no setting changes that. So this program opens its own
listeners on 127.0.0.1, enters a network namespace of its own where only loopback exists, starts Milvus there, and
passes bytes on. The server ends with this program, and this program with whoever started it, even by SIGKILL.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import fcntl
import os
import signal
import socket
import ssl
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from milvus import MilvusServerConfig  # of the server's package, which only its own environment has

CLONE_NEWNET, CLONE_NEWUSER = 0x40000000, 0x10000000
PR_SET_PDEATHSIG = 1
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
BUFFER_BYTES = 1 << 18
CANNOT_ISOLATE = 3  # exit code
SETTINGS = {"common.gracefulStopTimeout": 5, "dataCoord.segment.maxIdleTime": 60, "log.level": "error"}

libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent() -> None:
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def listener(port: int) -> socket.socket:
    opened = socket.socket()
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    opened.bind(("127.0.0.1", port))
    opened.listen(128)
    return opened


def enter_own_network() -> None:
    """Only this process and its children see it; nothing outside can connect to it."""
    if libc.unshare(CLONE_NEWNET) and libc.unshare(CLONE_NEWUSER | CLONE_NEWNET):
        sys.exit(CANNOT_ISOLATE)
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", IFF_UP))


def started(words: argparse.Namespace) -> tuple[subprocess.Popen[bytes], int]:
    """The server, and its port within the namespace."""
    binaries, folder = words.binaries, words.folder.absolute()
    config = MilvusServerConfig(data_dir=str(folder))
    config.set("authorization_enabled", words.with_tokens)
    config.set("common.session.ttl", words.lease_seconds)
    for name, value in SETTINGS.items():
        config.set(name, value)
    config.resolve()
    environment = {
        **os.environ,  # noqa: TID251 - what a shell would pass on
        "DEPLOY_MODE": "STANDALONE",
        "METRICS_PORT": "9091",
        "MILVUS_RUN_DIR": str(folder / "run"),
        "LD_LIBRARY_PATH": str(binaries),
        "GOMAXPROCS": "2",
    }
    with (folder / "logs" / "server.log").open("ab") as log:
        server = subprocess.Popen(
            [str(binaries / "milvus"), "run", "standalone"],
            cwd=folder,
            env=environment,
            stdout=log,
            stderr=log,
            preexec_fn=die_with_parent,  # noqa: PLW1509 - there are no threads yet
        )
    (folder / "server.pid").write_text(str(server.pid))
    return server, int(config.get("proxy_port"))


def relay(port: int) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], asyncio.Future[None]]:
    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while piece := await reader.read(BUFFER_BYTES):
                writer.write(piece)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            writer.close()
            return
        for one in (writer, inner_writer):
            one.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.gather(pump(reader, inner_writer), pump(inner_reader, writer))

    return serve


async def run(server: subprocess.Popen[bytes], port: int, plain: socket.socket, encrypted: socket.socket) -> None:
    words = arguments()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(words.certificate, words.key)
    context.set_alpn_protocols(["h2"])
    await asyncio.start_server(relay(port), sock=plain)
    await asyncio.start_server(relay(port), sock=encrypted, ssl=context)
    while server.poll() is None:
        await asyncio.sleep(0.05)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    for name in ("binaries", "folder", "certificate", "key"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    for name in ("port", "tls-port"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--lease-seconds", type=int, required=True)
    parser.add_argument("--with-tokens", action="store_true")
    return parser.parse_args()


def main() -> None:
    die_with_parent()
    words = arguments()
    words.folder.mkdir(parents=True, exist_ok=True)
    plain, encrypted = listener(words.port), listener(words.tls_port)
    enter_own_network()
    server, port = started(words)
    asyncio.run(run(server, port, plain, encrypted))


if __name__ == "__main__":
    main()
