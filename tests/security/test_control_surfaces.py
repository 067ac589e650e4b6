"""What the parts of a product tell each other on is open to nobody else: sockets of this user, no ports."""

from __future__ import annotations

import os
import socket
import stat
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from product import Product, eventually, listening
from upstream import RecordingUpstream


def test_only_the_proxy_the_api_and_the_metrics_listen_on_tcp(shared_product: Product) -> None:
    product = shared_product
    assert product.process is not None
    ports = {port for _, port in listening([product.process.pid, *product.children()])}
    assert ports == {product.ports[name] for name in ("proxy", "api", "metrics")}
    assert {name for name, port in product.ports.items() if port is None} == {"envoy_admin", "milvus"}


@pytest.mark.parametrize("name", ["envoy-admin.sock", "milvus.sock"])
def test_the_sockets_of_the_parts_are_of_this_user_alone(shared_product: Product, name: str) -> None:
    path = shared_product.run_folder / name
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with socket.socket(socket.AF_UNIX) as mine:
        mine.connect(str(path))
    if os.geteuid() == 0:
        os.seteuid(65_534)  # nobody
        try:
            with socket.socket(socket.AF_UNIX) as other, pytest.raises(PermissionError):
                other.connect(str(path))
        finally:
            os.seteuid(0)


def streamed(product: Product, begun: threading.Event) -> bytes:
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "Hello"}]}
    with httpx.stream("POST", f"{product.url}/v1/chat/completions", json=body, timeout=60) as answer:
        pieces = []
        for piece in answer.iter_bytes():
            begun.set()
            pieces.append(piece)
    return b"".join(pieces)


@pytest.mark.full("the listener is looked at every five seconds")
def test_an_envoy_without_its_listener_is_started_again(shared_product: Product, upstream: RecordingUpstream) -> None:
    product, begun, is_noticed = shared_product, threading.Event(), "Envoy lives without its listener"
    [envoy] = product.children("envoy -c")
    upstream.chunk_seconds, upstream.chunk_count = 0.1, 10_000  # until it is told otherwise
    with ThreadPoolExecutor() as pool, product.admin() as admin:
        carried = pool.submit(streamed, product, begun)
        assert begun.wait(60)
        assert admin.post("/drain_listeners").status_code == 200
        eventually(lambda: is_noticed in product.log(), seconds=120)
        upstream.chunk_count = 1
        assert carried.result().endswith(b"data: [DONE]\n\n")
    upstream.behave()

    def has_begun() -> bool:
        try:
            answer = httpx.get(f"{product.url}/v1/memory/proxy-alive", timeout=30)
        except httpx.TransportError:
            return False
        return answer.status_code == 200 and product.children("envoy -c") not in ([], [envoy])

    assert eventually(has_begun)

    def is_served() -> bool:  # by the filter, again
        return product.ask("Where is my boat?", "sailor").headers.get("x-memory-status") in ("empty", "used")

    assert eventually(is_served)
