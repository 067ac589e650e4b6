"""When and by which models turns are learnt, what is made of memories and conversations, and how secrets are handled.

Contains no secrets itself.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta


class LearnSettings(msgspec.Struct, frozen=True, kw_only=True):
    reader: Annotated[
        Literal["auto", "model", "trained", "off"],
        "Who reads messages: a chat `model` (role memory_extraction, else the upstream's first), our `trained` "
        "encoder, nobody (`off`); `auto`: the model once it has passed the exam, until then the encoder.",
    ] = "auto"
    retry_max_seconds: Annotated[float, Meta(gt=0, le=86_400), "Longest wait between two attempts."] = 300.0
    lease_seconds: Annotated[float, Meta(ge=1, le=3600), "How long a silent worker keeps its window."] = 30.0
    idle_seconds: Annotated[
        Annotated[float, Meta(ge=0, le=86_400)] | None,
        "With a model as the reader, a session is learnt this long after its last turn, 0: at once; none: 30. With "
        "the trained reader, turns are always due at once.",
    ] = None
    session_end_seconds: Annotated[
        float,
        Meta(ge=1, le=604_800),
        "A session that is idle for this long has ended and is learnt completely, however long idle_seconds is.",
    ] = 1800.0


class ProfileSettings(msgspec.Struct, frozen=True, kw_only=True):
    enabled: Annotated[bool, "Whether profiles are built from memories and go along with chats."] = True
    goes_along: Annotated[
        Literal["with_memories", "searched", "always"],
        "The question of a conversation that the profile goes along with: the first for which memories are found, "
        "for which they are searched, or any.",
    ] = "with_memories"


class SummarySettings(msgspec.Struct, frozen=True, kw_only=True):
    enabled: Annotated[
        bool, "Whether sessions that are over get a summary, and questions about past conversations are given them."
    ] = True


class CompactionSettings(msgspec.Struct, frozen=True, kw_only=True):
    enabled: Annotated[bool, "Whether long histories are compacted if a request does not say otherwise."] = False
    threshold_tokens: Annotated[
        int, Meta(ge=200, le=1_000_000), "Estimated tokens of a history from which on it is compacted."
    ] = 4_000
    writer: Annotated[
        Literal["auto", "off"],
        "Whether states are written by the chat model that reads messages, where there is one (`auto`), or always "
        "consist of sentences of the conversation (`off`).",
    ] = "auto"


How: TypeAlias = Literal["redact", "drop", "allow"]


class SecretSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Per class: `redact` it, `drop` the message that contains it, or `allow` it to be recorded and learnt."""

    api_key: Annotated[How, "Keys of services, access keys, and anything with a vendor's key format."] = "redact"
    token: Annotated[How, "Bearer tokens, session ids, and values assigned to a name such as `secret`."] = "redact"  # noqa: S105 - what becomes of tokens, none itself
    password: Annotated[
        How, "Passwords, passphrases, PINs, codes of locks, one-time and alarm codes, recovery words."
    ] = "redact"  # noqa: S105 - likewise
    private_key: Annotated[How, "Private keys in PEM."] = "redact"
    card_number: Annotated[How, "Numbers of payment cards."] = "redact"
    bank_account: Annotated[How, "IBANs and account numbers."] = "redact"
    national_id: Annotated[How, "Passports, identity cards, driving licences, social security and tax numbers."] = (
        "redact"
    )


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
