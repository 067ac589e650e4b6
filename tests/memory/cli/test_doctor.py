"""What the doctor sees of parts that are well, missing or broken, with real parts, and what it tells to do."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from chat_server import running_chat_server
from reading_parts import examined_with
from served_app import served
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from token_issuer import TokenIssuer
from turn_logs import START, leased, sqlite_deployment, tell
from typer.testing import CliRunner
from written_settings import written_settings

from memory.cli.main import commands
from memory.processes import doctor_checks
from memory.processes.composition import SYSTEM_CLOCK
from memory.processes.findings import Finding, Level
from memory.processes.identity_findings import identity_finding
from memory.settings import Settings


def settings_of(folder: Path, **written: Any) -> Settings:
    (folder / "data").mkdir(exist_ok=True)
    return written_settings(folder, data_dir=str(folder / "data"), **written)


async def looked(settings: Settings) -> dict[str, Finding]:
    return {one.check: one for one in await doctor_checks.look(settings)}


async def test_on_a_machine_that_is_prepared_nothing_fails(tmp_path: Path) -> None:
    found = await looked(settings_of(tmp_path))
    assert set(found) == {
        *("identity", "embedding model", "trained reader", "data directory", "turn log", "version", "opt-outs"),
        *("queue", "milvus", "upstream", "clock", "reader"),
    }
    well = {name for name, one in found.items() if one.level is Level.OK}
    assert well | {"data directory"} == set(found) - {"milvus"}  # a disk is as full as it may be
    assert found["milvus"].level is Level.WARN
    assert "memproxy up" in found["milvus"].advice
    assert "384" in found["embedding model"].says


async def test_models_that_are_not_ready_or_damaged_are_told_and_not_made(tmp_path: Path) -> None:
    found = await looked(settings_of(tmp_path, models_dir=str(tmp_path / "models")))
    for name in ("embedding model", "trained reader"):
        assert found[name].level is Level.WARN
        assert "memproxy prepare" in found[name].advice
    assert not (tmp_path / "models").exists()


async def test_another_size_or_a_log_that_is_no_database_fails_and_stops_no_other_check(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, memory={"embedding": {"dimension": 512}, "milvus": {"dimension": 512}})
    settings.turn_log_path.write_bytes(b"something else" * 400)
    found = await looked(settings)
    assert (found["embedding model"].level, found["turn log"].level) == (Level.FAIL, Level.FAIL)
    assert "512" in found["embedding model"].says
    assert "queue" not in found
    assert found["reader"].level is Level.OK


async def test_dead_letters_and_an_upstream_that_is_away_are_warnings_and_no_milvus_a_failure(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, upstream="http://127.0.0.1:1", milvus_uri="http://127.0.0.1:1")
    async with sqlite_deployment(Path(settings.data_dir)).start() as process:
        for user in ("ann", "bob"):
            await process.opt_outs.set(user, at=1.0)
        await tell(process.log, "t")
        await process.log.move_to_dead_letters(await leased(process.log, START + 1), now=START + 1, reason="junk")
    found = await looked(settings)
    assert "dlq" in found["queue"].advice
    assert {found[name].level for name in ("queue", "upstream", "reader")} == {Level.WARN}
    assert (found["milvus"].level, "milvus" in found["milvus"].advice) == (Level.FAIL, True)
    assert found["opt-outs"].says == "2 users have opted out"


@pytest.mark.parametrize(
    ("result", "level", "words"),
    [
        (None, Level.WARN, ["trained reader reads", "scripted", "not sat"]),
        ({"has_passed": True, "score": 0.93}, Level.OK, ["scripted reads", "0.93"]),
        ({"has_passed": False, "score": 0.41, "failures": ("a diet",)}, Level.WARN, ["trained", "0.41", "a diet"]),
    ],
)
async def test_it_says_who_reads(tmp_path: Path, result: dict[str, Any] | None, level: Level, words: list[str]) -> None:
    async with running_chat_server() as server:
        settings = settings_of(tmp_path, upstream=server.url)
        deployment = sqlite_deployment(Path(settings.data_dir))
        deployment.clock.now = SYSTEM_CLOCK()
        async with deployment.start() as process:
            if result is not None:
                await examined_with(settings, process.exams, **result)
        found = await looked(settings)
        assert server.asked == []  # it asks the model nothing
    assert found["upstream"].level is Level.OK
    assert found["reader"].level is level
    assert all(word in found["reader"].says for word in words)


async def test_a_check_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang(_: Settings) -> Finding:
        await asyncio.sleep(60)
        raise AssertionError

    monkeypatch.setattr(doctor_checks, "CHECK_SECONDS_MAX", 0.1)
    monkeypatch.setattr(doctor_checks, "_upstream", hang)
    assert (await looked(settings_of(tmp_path)))["upstream"].level is Level.FAIL


def run(folder: Path, *words: str, code: int) -> str:
    result = CliRunner().invoke(commands, ["doctor", "--config", str(folder / "settings.yaml"), *words])
    assert result.exit_code == code
    return result.stdout


def test_the_command_prints_a_line_for_each_check_and_its_exit_code_says_whether_one_fails(tmp_path: Path) -> None:
    settings_of(tmp_path)
    lines = run(tmp_path, code=0).splitlines()
    checks = [line.split(":")[0].split(maxsplit=1)[1] for line in lines]
    assert checks[:3] == ["settings", "identity", "embedding model"]
    settings_of(tmp_path, milvus_uri="http://127.0.0.1:1")
    answer = json.loads(run(tmp_path, "--json", code=1))
    assert answer["is_well"] is False
    assert {one["check"] for one in answer["checks"] if one["level"] == "fail"} == {"milvus"}


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ({"memry": {}}, "memory"),
        ({"host": "0.0.0.0"}, "loopback only"),
        ({"api_host": "0.0.0.0"}, "loopback only"),
        ({"identity": "jwt", "jwt": {"issuer": "i", "jwks_url": "http://x", "user_claim": ""}}, "jwt.user_claim"),
    ],
)
def test_settings_that_cannot_be_are_the_only_line(tmp_path: Path, written: dict[str, Any], said: str) -> None:
    (tmp_path / "settings.yaml").write_text(json.dumps(written))
    shown = run(tmp_path, code=1)
    assert (len(shown.splitlines()), shown.startswith("FAIL  settings: ")) == (1, True)
    assert said in shown


@pytest.mark.parametrize(
    ("written", "level", "words"),
    [
        ({}, Level.OK, ["development", "127.0.0.1"]),
        ({"identity": "header"}, Level.OK, ["header", "127.0.0.0/8"]),
        ({"identity": "header", "trusted_peers": []}, Level.FAIL, ["nobody", "trusted_peers"]),
        ({"identity": "header", "trusted_peers": ["0.0.0.0/0"]}, Level.WARN, ["restrict trusted_peers"]),
    ],
)
async def test_it_says_who_identifies(tmp_path: Path, written: dict[str, Any], level: Level, words: list[str]) -> None:
    found = await identity_finding(settings_of(tmp_path, **written))
    assert found.level is level
    assert all(word in found.says + found.advice for word in words)


def of_issuer(folder: Path, **jwt: Any) -> Settings:
    return settings_of(folder, identity="jwt", jwt={"issuer": "https://login.example", "audiences": ["chat"]} | jwt)


async def test_it_reads_the_keys_of_the_issuer_and_says_what_the_claims_are(tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    keys.write_text(TokenIssuer().key_set())
    for source in ({"jwks_file": str(keys)}, {"jwks": keys.read_text()}):
        found = await identity_finding(of_issuer(tmp_path, tenant_claim="org.id", **source))
        assert found.level is Level.OK
        for said in ("https://login.example", "2 keys", "claim sub", "tenant from org.id", "no claim, so any"):
            assert said in found.says
    found = await identity_finding(of_issuer(tmp_path, jwks_file=str(keys), audiences=[]))
    assert (found.level, "jwt.audiences" in found.advice) == (Level.WARN, True)


async def test_keys_that_are_missing_broken_or_out_of_reach_fail(tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    for content, words in (("no JSON", "no JWK set"), ('{"keys": [{"kty": "EC", "d": "x"}]}', "private")):
        broken.write_text(content)
        found = await identity_finding(of_issuer(tmp_path, jwks_file=str(broken)))
        assert (found.level, words in found.says) == (Level.FAIL, True)
    away = {"jwks_url": "http://127.0.0.1:9/keys"}
    for source, words in (
        ({"jwks_file": str(tmp_path / "none")}, "does not start"),
        (away, "without memory"),
        (away | {"required": True}, "401"),
    ):
        found = await identity_finding(of_issuer(tmp_path, **source))
        assert (found.level, words in found.advice) == (Level.FAIL, True)


@pytest.mark.parametrize(
    ("status", "content", "level"),
    [
        (200, None, Level.OK),
        (503, None, Level.FAIL),
        (302, None, Level.FAIL),
        (200, "<html>", Level.FAIL),
        (200, " " * (2 << 20), Level.FAIL),
    ],
)
async def test_it_fetches_keys_as_envoy_would(tmp_path: Path, status: int, content: str | None, level: Level) -> None:
    async def answer(_: Request) -> Response:
        return Response(TokenIssuer().key_set() if content is None else content, status_code=status)

    with served(Starlette(routes=[Route("/keys", answer)])) as port:
        settings = of_issuer(tmp_path, jwks_url=f"http://127.0.0.1:{port}/keys")
        assert (await identity_finding(settings)).level is level
