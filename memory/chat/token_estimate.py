"""Estimates how many tokens the prompt of a request has, and how many its answer may take.

An exact count needs the model's own tokenizer, which this process does not have. So bytes are weighed by class, in
about 0.01 ms per KB, and digits count one each. Of what Qwen's tokenizer counts it says 1.02 in English, 0.79 to 0.96
in other languages of Latin letters, and 1.3 to 1.9 elsewhere (`bench/token_estimates.py`); a server that can count
corrects it.
"""

from __future__ import annotations

import string

import numpy as np

from memory.chat.api_shape import SYSTEM_ROLES
from memory.chat.completions import ChatRequest
from memory.chat.json_spans import value_of

MESSAGE_TOKENS = 8.0  # role and marks of a chat template
IMAGE_TOKENS = 1_500.0  # of one image, sound or file, whatever it costs; its bytes say nothing

_LETTER, _DIGIT, _SPACE, _SIGN, _BEYOND_ASCII = 1 / 3.3, 1.0, 0.05, 0.8, 1 / 2.2
_ANSWER_LIMITS = ("max_completion_tokens", "max_tokens", "max_output_tokens")
_DIGITS_MAX = 9  # of a limit; a longer one is no number of tokens
PARTS_BESIDES_TEXT = (
    *(b'"image_url"', b'"input_image"', b'"input_audio"', b'"file"', b'"input_file"'),
    *(b'"image"', b'"document"'),  # blocks of Anthropic's
)
_TOOL_RESULT = b'"tool_result"'  # in Anthropic's API part of a user's message
_BASE64 = b'"base64"'  # the kind of an image in a tool result
_WORD_BYTES_MAX = 1_000  # of a text; what is longer and has no space is the data of an image


def _weights() -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    weights = np.full(256, _SIGN, dtype=np.float32)
    weights[128:] = _BEYOND_ASCII
    for characters, weight in ((string.ascii_letters, _LETTER), (string.digits, _DIGIT), (string.whitespace, _SPACE)):
        weights[np.frombuffer(characters.encode(), dtype=np.uint8)] = weight
    return weights


_WEIGHTS = _weights()


def estimated_tokens(text: str) -> float:
    return _weighed(text.encode(errors="replace"))


def estimated_prompt(request: ChatRequest, *, begin: int = 0) -> float:
    """Tokens of the whole prompt: messages, tool traffic as it was sent, and the tools on offer.

    `begin`: messages before it are left out, except system messages.
    """
    assert request.conversation is not None
    total = 0.0
    messages = zip(request.conversation.messages, request.shape.message_bytes(request), strict=True)
    for index, (message, material) in enumerate(messages):
        if index < begin and message.role not in SYSTEM_ROLES:
            continue
        sent = bytes(material)
        total += MESSAGE_TOKENS
        if message.is_tool_traffic or _TOOL_RESULT in sent:
            total += _weighed(_without_images(sent)) + IMAGE_TOKENS * sent.count(_BASE64)
        else:
            others = sum(sent.count(kind) for kind in PARTS_BESIDES_TEXT)
            total += estimated_tokens(message.content) + IMAGE_TOKENS * others
    offered = [bytes(value_of(request.text, one)) for name in ("tools", "functions") if (one := request.member(name))]
    return total + sum(map(_weighed, offered))


def answer_limit(request: ChatRequest) -> int | None:
    """The tokens that the request reserves for its answer; None if it sets no limit."""
    found = [bytes(value_of(request.text, one)) for name in _ANSWER_LIMITS if (one := request.member(name))]
    limits = [int(digits) for digits in found if digits.isdigit() and len(digits) <= _DIGITS_MAX]
    return max(limits, default=None)


def _without_images(sent: bytes) -> bytes:
    if _BASE64 not in sent:
        return sent
    return b'"'.join(piece for piece in sent.split(b'"') if len(piece) <= _WORD_BYTES_MAX or b" " in piece)


def _weighed(sent: bytes) -> float:
    return float(_WEIGHTS[np.frombuffer(sent, dtype=np.uint8)].sum(dtype=np.float64))
