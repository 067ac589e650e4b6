"""Users who have opted out: durable, seen by every process, and stored without their ids. On every adapter."""

from __future__ import annotations

from pathlib import Path

from turn_logs import START, Deployment

from memory.model import is_valid_id

ANN = "ann.lee@example.com"


async def test_a_user_opts_out_and_in_again_and_nobody_else_does(deployment: Deployment) -> None:
    async with deployment.start() as process:
        assert await process.opt_outs.since(ANN) is None
        assert await process.opt_outs.set(ANN, at=START) == START
        assert await process.opt_outs.since(ANN) == START
        for other in ("ann", ANN.upper(), ANN + " ", "bob"):
            assert await process.opt_outs.since(other) is None
        await process.opt_outs.clear(ANN)
        assert await process.opt_outs.since(ANN) is None


async def test_they_are_counted(deployment: Deployment) -> None:
    async with deployment.start() as process:
        assert await process.opt_outs.count() == 0
        for user in (ANN, ANN, "bob"):
            await process.opt_outs.set(user, at=START)
        assert await process.opt_outs.count() == 2
        await process.opt_outs.clear(ANN)
        assert await process.opt_outs.count() == 1


async def test_a_repeated_opt_out_keeps_its_time_and_a_repeated_opt_in_is_harmless(deployment: Deployment) -> None:
    async with deployment.start() as process:
        await process.opt_outs.set(ANN, at=START)
        assert await process.opt_outs.set(ANN, at=START + 60) == START
        await process.opt_outs.clear(ANN)
        await process.opt_outs.clear(ANN)
        assert await process.opt_outs.set(ANN, at=START + 60) == START + 60


async def test_it_is_seen_by_all_processes_at_once_and_survives_them(deployment: Deployment) -> None:
    async with deployment.start() as one, deployment.start() as two:
        assert await two.opt_outs.since(ANN) is None
        await one.opt_outs.set(ANN, at=START)
        assert await two.opt_outs.since(ANN) == START
    async with deployment.start() as third:
        assert await third.opt_outs.since(ANN) == START


async def test_the_id_of_the_user_is_not_stored(deployment: Deployment) -> None:
    assert is_valid_id(ANN)
    before = {file: file.stat().st_size for file in files_of(deployment)}
    async with deployment.start() as process:
        await process.opt_outs.set(ANN, at=START)
    stored = b"".join(file.read_bytes()[before.get(file, 0) :] for file in files_of(deployment))
    assert stored
    assert ANN.encode() not in stored


def files_of(deployment: Deployment) -> list[Path]:
    return [file for file in deployment.folder.rglob("*") if file.is_file()]
