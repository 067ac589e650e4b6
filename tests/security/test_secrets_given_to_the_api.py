"""What applications and agents store follows the policy of what is said in chats, but for who may keep secrets."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from api_parts import ANN, SECRET, add_one, api_of, assert_refused, service_token, with_token
from library_parts import library_parts

from memory.api import mcp
from memory.api.callers import CallerRules
from memory.api.identity import Caller, Forbidden
from memory.secrets.redaction import REDACT_ALL, SecretPolicy, redact
from memory.secrets.secret_classes import SecretClass

TOLD = "The wifi password is Tulip!Garden9, and the router is in the hall"
KEPT = "The wifi password is [redacted password], and the router is in the hall"
OPERATOR, WRITER = "mpt_operator-0123456789", "mpt_writer-0123456789"
RULES = CallerRules(
    tokens=(service_token("operator", OPERATOR, "write", "operate"), service_token("writer", WRITER, "write"))
)
DROPPING = {**REDACT_ALL, SecretClass.PASSWORD: SecretPolicy.DROP}


async def content(api: httpx.AsyncClient, memory_id: str) -> str:
    return str((await api.get(f"/v1/memory/{memory_id}")).json()["content"])


async def test_rest_stores_and_corrects_without_secrets(tmp_path: Path) -> None:
    async with library_parts(tmp_path, intake_redact=redact) as parts, api_of(parts, headers=ANN) as api:
        memory_id = await add_one(api, TOLD)
        assert await content(api, memory_id) == KEPT
        await api.patch(f"/v1/memory/{memory_id}", json={"content": "x"})
        await api.patch(f"/v1/memory/{memory_id}", json={"content": TOLD})
        assert await content(api, memory_id) == KEPT


async def test_an_agent_stores_without_secrets_and_may_not_ask_for_them(tmp_path: Path) -> None:
    async with library_parts(tmp_path, intake_redact=redact) as parts:
        saved = await mcp.save(parts.library, Caller("ann"), mcp.SaveInput(TOLD))
        assert (await parts.library.get("ann", saved["id"])).content == KEPT
        with pytest.raises(Forbidden, match="operate"):
            await mcp.save(parts.library, Caller("ann"), mcp.SaveInput(TOLD, redact=False))
        owner = Caller("ann", may_keep_secrets=True)
        saved = await mcp.save(parts.library, owner, mcp.SaveInput(TOLD, redact=False))
        assert (await parts.library.get("ann", saved["id"])).content == TOLD


@pytest.mark.parametrize(
    ("mode", "headers", "may"),
    [
        ("development", ANN, True),
        ("header", {**ANN, "x-memory-edge-secret": SECRET}, False),
        ("header", {**ANN, **with_token(OPERATOR)}, True),
        ("header", {**ANN, **with_token(WRITER)}, False),
        ("development", {**ANN, **with_token(WRITER)}, False),
    ],
)
async def test_who_may_stores_them_as_given(mode: str, headers: Mapping[str, str], may: bool, tmp_path: Path) -> None:
    body: dict[str, Any] = {"memories": [{"content": TOLD}], "redact": False}
    async with (
        library_parts(tmp_path, intake_redact=redact) as parts,
        api_of(parts, identity_mode=mode, rules=RULES) as api,
    ):
        answer = await api.post("/v1/memory", json=body, headers=headers)
        if not may:
            assert_refused(answer, 403, "forbidden", "operate")
            return
        [memory_id] = answer.json()["ids"]
        assert (await parts.library.get("ann", memory_id)).content == TOLD


async def test_what_the_policy_drops_is_refused_in_words(tmp_path: Path) -> None:
    async with (
        library_parts(tmp_path, intake_redact=partial(redact, policy=DROPPING)) as parts,
        api_of(parts, headers=ANN) as api,
    ):
        answer = await api.post("/v1/memory", json={"memories": [{"content": "I like tea"}, {"content": TOLD}]})
        assert_refused(answer, 400, "memories[1]", "memory.secrets")
        assert (await api.get("/v1/memory")).json()["memories"] == []
