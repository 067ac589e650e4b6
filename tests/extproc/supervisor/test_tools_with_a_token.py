"""The commands that call the API of a running product, and `memproxy mcp`, where clients are not believed."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from product import Product, running_product
from token_issuer import AUDIENCE, ISSUER, TokenIssuer
from upstream import RecordingUpstream

MEMPROXY = str(Path(sys.executable).with_name("memproxy"))
TOKEN = "mpt_a-token-of-the-operator-0123456789"
USER, KEPT = "ada", "User's bicycle is green"


@pytest.fixture(params=["header", "jwt"], scope="module")
def product(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, shared_upstream: RecordingUpstream
) -> Iterator[Product]:
    folder = tmp_path_factory.mktemp("product")
    keys, config = folder / "keys.json", folder / "settings.yaml"
    keys.write_text(TokenIssuer().key_set())
    modes: dict[str, dict[str, Any]] = {
        "header": {"identity": "header", "trusted_peers": ["127.0.0.2/32"]},
        "jwt": {"identity": "jwt", "jwt": {"issuer": ISSUER, "audiences": [AUDIENCE], "jwks_file": str(keys)}},
    }
    digest = hashlib.sha256(TOKEN.encode()).hexdigest()
    programs = [{"name": "operator", "sha256": digest, "scopes": ["read", "write"], "users": [USER]}]
    config.write_text(json.dumps({**modes[request.param], "service_tokens": programs}))
    with running_product(folder / "data", upstream=shared_upstream.url, config=config) as running:
        yield running


def called(product: Product, *words: str, token: str = TOKEN, user: str = USER) -> subprocess.CompletedProcess[str]:
    inherited = os.environ  # noqa: TID251 - what a shell would pass on
    environment = {**inherited, **({"MEMPROXY_TOKEN": token} if token else {})}
    command = [MEMPROXY, *words, "--user", user, "--api", product.api]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)


async def test_with_a_token_memories_are_saved_listed_moved_and_erased(product: Product, tmp_path: Path) -> None:
    bridge = StdioServerParameters(
        command=MEMPROXY, args=["mcp", "--api", product.api, "--user", USER], env={"MEMPROXY_TOKEN": TOKEN}
    )
    async with Client(bridge) as model:
        assert not (await model.call_tool("memory_save", {"content": KEPT})).is_error
    assert KEPT in called(product, "list", "--json").stdout
    file = tmp_path / "ada.jsonl"
    exported = called(product, "export", "--output", str(file))
    assert exported.returncode == 0, exported.stderr
    erased = called(product, "forget", "--all", "--yes")
    assert erased.returncode == 0, erased.stderr
    assert KEPT not in called(product, "list", "--json").stdout
    imported = called(product, "import", str(file))
    assert imported.returncode == 0, imported.stderr
    assert KEPT in called(product, "list", "--json").stdout


def test_without_a_token_the_message_says_how_to_identify(product: Product) -> None:
    refused = called(product, "list", token="")
    assert refused.returncode != 0
    assert "MEMPROXY_TOKEN" in refused.stderr
    assert "MEMPROXY_TOKEN" in called(product, "list", token=TOKEN + "x").stderr
    assert called(product, "list", user="grace").returncode != 0
