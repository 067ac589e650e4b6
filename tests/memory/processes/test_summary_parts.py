"""The summarizer of a worker: the model that reads messages writes summaries, and only once it may read."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from chat_server import FakeModelServer, running_chat_server
from hashing_embedder import HashingEmbedder
from plain_reader import PlainReader
from prometheus_client import CollectorRegistry
from turn_logs import DEPLOYMENTS, Deployment, Process, a_turn, lease_at

from memory.adapters.models.wordpiece import WordPieceTokens
from memory.learn.readers import Readers
from memory.model import SessionSummary, TurnStatus
from memory.processes.summary_parts import open_summarizer
from memory.runtime.instruments import Instruments
from memory.runtime.metrics import Metrics
from memory.settings import ExternalModel, ModelEndpoint
from memory.settings.learning import LearnSettings
from memory.settings.tree import MemorySettings, Settings

WRITTEN = "The user wants a boat for Nils."


@dataclass
class Parts:
    process: Process
    deployment: Deployment
    server: FakeModelServer

    async def summarised(self, readers: Readers, reader: str = "auto") -> SessionSummary:
        address, _, port = self.server.url.rpartition(":")
        model = ExternalModel(
            model_role="memory_extraction",
            llm_endpoint=ModelEndpoint(address=address, port=int(port)),
            llm_model_name="qwen",
        )
        settings = Settings(memory=MemorySettings(learn=LearnSettings(reader=reader)), external_models=(model,))
        self.server.content = json.dumps({"title": "A boat", "summary": WRITTEN})
        for number, text in enumerate(("I want a boat for Nils.", "My budget for it is small.")):
            turn = a_turn(f"t{number}", text=text, status=TurnStatus.CLOSED)
            await self.process.log.append(turn)
        while lease := await lease_at(self.process.log, self.deployment.clock.now + 1):
            await self.process.log.acknowledge(lease)
        await self.process.summaries.end("ann", "s1")
        instruments = Instruments(self.deployment.clock, Metrics(CollectorRegistry()))
        async with open_summarizer(
            settings,
            readers,
            instruments,
            traces=self.process.traces,
            summaries=self.process.summaries,
            embedding=(HashingEmbedder(), WordPieceTokens()),
        ) as summarizer:
            assert await summarizer.work() == 1
        found = await self.process.summaries.of_session("ann", "s1")
        assert found is not None
        return found


@pytest.fixture
async def parts(tmp_path: Path) -> AsyncIterator[Parts]:
    deployment = DEPLOYMENTS["sqlite"](tmp_path)
    async with deployment.start() as process, running_chat_server() as server:
        yield Parts(process, deployment, server)


async def test_a_model_that_reads_writes_summaries(parts: Parts) -> None:
    found = await parts.summarised(Readers(PlainReader(), PlainReader()))
    assert parts.server.asked
    assert found.text == WRITTEN
    assert found.made_by.startswith("qwen summary-")
    assert parts.server.asked[0]["model"] == "qwen"


async def test_one_that_has_not_passed_its_exam_is_not_asked(parts: Parts) -> None:
    found = await parts.summarised(Readers(PlainReader()))
    assert (found.title, found.made_by) == ("I want a boat for Nils.", "plain 1")
    assert parts.server.asked == []


async def test_none_is_asked_where_the_settings_want_the_trained_reader(parts: Parts) -> None:
    found = await parts.summarised(Readers(PlainReader(), PlainReader()), reader="trained")
    assert found.made_by == "plain 1"
    assert parts.server.asked == []
