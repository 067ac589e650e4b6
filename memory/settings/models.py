"""Chat models that memory may ask, and how one is asked to read messages."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta


class ModelEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    address: str
    port: Annotated[int, Meta(ge=1, le=65535)] = 8000


class ExternalModel(msgspec.Struct, frozen=True, kw_only=True):
    """A chat model that memory may call, never inside a request's deadline unless it answers in time."""

    model_role: Literal["memory_extraction", "memory_rewrite"]
    llm_endpoint: ModelEndpoint
    llm_model_name: str
    llm_provider: str = "vllm"
    llm_timeout_seconds: Annotated[float, Meta(gt=0, le=3600)] = 30.0
    max_tokens: Annotated[int, Meta(ge=1, le=100_000)] = 500
    temperature: Annotated[float, Meta(ge=0, le=2)] = 0.1


class ExtractionSettings(msgspec.Struct, frozen=True, kw_only=True):
    topics: Annotated[tuple[str, ...], "Topics that the model should look for in particular, in a few words each."] = ()
    examples: Annotated[str, "JSON file of your own examples of chats and their claims, shown after ours."] = ""
    priority: Annotated[
        Annotated[int, Meta(ge=-1000, le=1000)] | None,
        "vLLM's `priority` of extraction calls, higher is later; only for a server that is started with "
        "`--scheduling-policy priority`, others refuse it. None: not sent.",
    ] = None
