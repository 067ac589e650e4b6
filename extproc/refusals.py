"""Reads from an error of the upstream which context window it enforces, and whether it refuses the roles of messages.

vLLM and OpenAI answer 400 and say it in the message: `{"error": {"message": "This model's maximum context length is
4096 tokens. However, …", "type": "BadRequestError", "code": 400}}`, older vLLM without the outer object; llama.cpp
answers `{"error": {"type": "exceed_context_size_error", "n_ctx": 4096, …}}`. A message counts only if it begins like
that: other errors repeat what the client sent, which must not teach anything. Pure; never raises.
"""

from __future__ import annotations

import msgspec

BODY_BYTES_MAX = 64 << 10  # such an error has some hundred bytes
CONTEXT_TOKENS_MIN, CONTEXT_TOKENS_MAX = 256, 100_000_000  # anything else is no window
DIGITS_MAX = 9

_OPENING = "this model's maximum context length is "
_TOO_LARGE = "'max_tokens' or 'max_completion_tokens' is too large: "  # vLLM: then the limit asked for, and the opening
_LLAMA_CPP = "exceed_context_size_error"
_OF_TEMPLATES = ("chat template", "jinja", "system message", "system role", "roles")


class _Error(msgspec.Struct):
    message: str = ""
    type: str | None = None
    n_ctx: int | None = None


class _Refusal(_Error):
    """The error, or what holds it."""

    error: _Error | None = None


_REFUSAL = msgspec.json.Decoder(_Refusal)


def refuses_roles(body: bytes) -> bool:
    """Whether an error says that the chat template does not take these messages: llama.cpp answers 500 then, with the
    words of the template's author ("System message must be at the beginning").
    """
    error = _error(body)
    message = error.message.casefold() if error is not None else ""
    if "role" in message and "system" in message:
        return True
    return any(word in message for word in _OF_TEMPLATES)


def context_tokens(body: bytes) -> int | None:
    """Tokens of prompt and answer that the model takes together; None for an error of another kind."""
    error = _error(body)
    if error is None:
        return None
    tokens = error.n_ctx if error.type == _LLAMA_CPP else _stated(error.message.casefold())
    return tokens if tokens is not None and CONTEXT_TOKENS_MIN <= tokens <= CONTEXT_TOKENS_MAX else None


def _error(body: bytes) -> _Error | None:
    if len(body) > BODY_BYTES_MAX:
        return None
    try:
        refusal = _REFUSAL.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return refusal.error or refusal


def _stated(message: str) -> int | None:
    if message.startswith(_TOO_LARGE):
        digits, _, message = message.removeprefix(_TOO_LARGE).partition(". ")
        if not _is_number(digits):
            return None
    if not message.startswith(_OPENING):
        return None
    digits, _, rest = message.removeprefix(_OPENING).partition(" ")
    return int(digits) if _is_number(digits) and rest.startswith("token") else None


def _is_number(digits: str) -> bool:
    return digits.isascii() and digits.isdigit() and len(digits) <= DIGITS_MAX
