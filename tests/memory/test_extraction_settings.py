"""What the settings of extraction lead to: which way of learning, and what goes over the wire. On a scripted server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from chat_server import FakeModelServer, running_chat_server
from prometheus_client import CollectorRegistry
from scripted_model import scripted
from turn_logs import a_turn

from memory import app
from memory.config import load
from memory.errors import BadSetting, Unavailable
from memory.learn.extraction import VerbatimLearner
from memory.learn.llm.model_learner import DraftLearner, JudgeLearner
from memory.metrics import Metrics
from memory.settings import Settings
from memory.tuning import extraction_strategy

UNSURE = "I teach chemistry at a night school."


def settings_with(
    folder: Path, *, url: str = "http://127.0.0.1:1", model: Mapping[str, Any], **extraction: Any
) -> Settings:
    """As an operator writes them."""
    address, _, port = url.rpartition(":")
    endpoint = {"address": address, "port": int(port)}
    named = {"model_role": "memory_extraction", "llm_endpoint": endpoint, "llm_model_name": "m", **model}
    file = folder / "settings.yaml"
    file.write_text(json.dumps({"memory": {"extraction": extraction}, "external_models": [named]}))
    return load(file, {}, {})


@pytest.mark.parametrize(
    ("name", "strategy"),
    [
        ("qwen2.5-7b-instruct", "draft"),
        ("Qwen/Qwen2.5-32B-Instruct-AWQ", "draft"),
        ("mistral-nemo-12.2b", "draft"),
        ("qwen2.5-coder-1.5b-instruct", "judge"),
        ("smollm2-135m", "judge"),
        ("llama-3.2-3b-int4", "judge"),
        ("gpt-oss", "judge"),  # nobody knows how large it is
    ],
)
def test_a_model_drafts_by_itself_only_if_its_name_says_that_it_is_large(
    tmp_path: Path, name: str, strategy: str
) -> None:
    assert extraction_strategy(settings_with(tmp_path, model={"llm_model_name": name})) == strategy


def test_a_strategy_that_is_set_goes_before_the_name_and_without_a_model_learning_is_verbatim(tmp_path: Path) -> None:
    large = {"llm_model_name": "qwen2.5-7b-instruct"}
    assert extraction_strategy(settings_with(tmp_path, model=large, strategy="judge")) == "judge"
    assert extraction_strategy(settings_with(tmp_path, model=large, strategy="verbatim")) == "verbatim"
    assert extraction_strategy(load(None, {"memory.extraction.strategy": "draft"}, {})) == "verbatim"


@pytest.mark.parametrize(
    ("strategy", "kind"), [("judge", JudgeLearner), ("draft", DraftLearner), ("verbatim", VerbatimLearner)]
)
async def test_each_strategy_has_its_learner_and_needs_no_server_to_start(
    tmp_path: Path, strategy: str, kind: type
) -> None:
    settings = settings_with(tmp_path, model={}, strategy=strategy)
    async with app.open_extraction(settings, Metrics(CollectorRegistry())) as extraction:
        assert isinstance(extraction.learner, kind)
        assert (extraction.arbiter is None) == (strategy == "verbatim")


async def test_no_arbitrations_means_no_arbiter(tmp_path: Path) -> None:
    settings = settings_with(tmp_path, model={}, arbitrations_max=0)
    async with app.open_extraction(settings, Metrics(CollectorRegistry())) as extraction:
        assert extraction.arbiter is None


async def sent(server: FakeModelServer, settings: Settings) -> dict[str, Any]:
    """The body of the one call that an unsure statement costs."""
    server.says = scripted()
    async with app.open_extraction(settings, Metrics(CollectorRegistry())) as extraction:
        await extraction.learner.extract([a_turn("t", text=UNSURE)], context=[])
    return server.asked[-1]


async def test_priority_is_sent_only_if_it_is_set(tmp_path: Path) -> None:
    async with running_chat_server() as server:
        plain = await sent(server, settings_with(tmp_path, url=server.url, model={}))
        low = await sent(server, settings_with(tmp_path, url=server.url, model={}, priority=10))
    assert "priority" not in plain
    assert low["priority"] == 10


async def test_model_temperature_tokens_topics_and_examples_reach_the_server(tmp_path: Path) -> None:
    examples = tmp_path / "examples.json"
    examples.write_text('[{"said": "the boiler is a Vaillant", "keep": true}]')
    model = {"llm_model_name": "qwen3", "temperature": 0.4, "max_tokens": 9}
    async with running_chat_server() as server:
        told = {"topics": ["boilers"], "examples": str(examples)}
        body = await sent(server, settings_with(tmp_path, url=server.url, model=model, **told))
    assert (body["model"], body["temperature"], body["max_tokens"]) == ("qwen3", 0.4, 9)
    assert "boilers" in body["messages"][0]["content"]
    assert body["messages"][-3]["content"] == "Person: the boiler is a Vaillant"


async def test_a_call_takes_no_longer_than_the_model_is_given(tmp_path: Path) -> None:
    async with running_chat_server() as server:
        server.seconds = 5.0
        settings = settings_with(tmp_path, url=server.url, model={"llm_timeout_seconds": 0.2})
        with pytest.raises(Unavailable, match=r"within 0\.2 s"):
            await sent(server, settings)


async def test_calls_and_tokens_are_counted_by_role(tmp_path: Path) -> None:
    metrics = Metrics(CollectorRegistry())
    async with running_chat_server() as server:
        server.says = scripted()
        settings = settings_with(tmp_path, url=server.url, model={})
        async with app.open_extraction(settings, metrics) as extraction:
            await extraction.learner.extract([a_turn("t", text=UNSURE)], context=[])

    def count(name: str, **labels: str) -> float | None:
        return metrics.registry.get_sample_value(name, {"role": "memory_extraction", **labels})

    assert count("memproxy_model_calls_total", outcome="answered") == 1
    tokens = {kind: count("memproxy_model_tokens_total", kind=kind) for kind in ("prompt", "cached", "answer")}
    assert tokens == {"prompt": 100, "cached": 90, "answer": 5}


@pytest.mark.parametrize("content", ["{", '[{"said": "x"}]', '[{"said": "x", "keep": true, "why": "y"}]', None])
async def test_a_file_of_examples_that_cannot_be_used_stops_the_start_and_is_named(
    tmp_path: Path, content: str | None
) -> None:
    examples = tmp_path / "examples.json"
    if content is not None:
        examples.write_text(content)
    settings = settings_with(tmp_path, model={}, examples=str(examples))
    with pytest.raises(BadSetting, match=r"memory\.extraction\.examples"):
        async with app.open_extraction(settings, Metrics(CollectorRegistry())):
            pass
