"""Measures how far our estimates of tokens are from a chat model's own tokenizer, per language.

`python bench/token_estimates.py --server http://127.0.0.1:8000 [--model NAME]`. The server, vLLM's or llama.cpp's, is
asked to `/tokenize` the questions and facts of `bench/needed`, a text a language. Beside what it counts stand the two
estimates: what notes are budgeted by (the packaged encoder's tokenizer), and what prompts are measured by against a
model's window (bytes by class). A ratio of 1.2 is an estimate a fifth too high: room is left; below 1 notes are longer
than their budget by that much.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
from report import Bar, Report, Sheet, bench_parser, ratio

from memory.adapters.models.packaged_encoder import sentence_pieces
from memory.adapters.models.sentence_pieces import sentence_piece_tokens
from memory.chat.token_estimate import estimated_tokens
from memory.settings.loader import from_process

TEXTS = Path(__file__).resolve().parent / "needed"
BARS = (Bar("notes, least ratio of a language", at_least=0.7), Bar("prompts, least ratio of a language", at_least=0.7))
SECONDS_MAX = 60.0


def main() -> int:
    parser = bench_parser("token_estimates", __doc__)
    parser.add_argument("--server", default="http://127.0.0.1:8000", help="its address, without /v1")
    parser.add_argument("--model", default="", help="as vLLM calls it; llama.cpp needs none")
    options = parser.parse_args()
    report = Report("token_estimates", BARS, options.json)
    by_encoder = sentence_piece_tokens(sentence_pieces(from_process(None, {}).models_path))
    rows: list[tuple[Any, ...]] = []
    with httpx.Client(base_url=options.server, timeout=SECONDS_MAX) as server:
        for language, text in texts():
            counted = tokens_of(server, options.model, text)
            rows.append((language, len(text), counted, by_encoder(text) / counted, estimated_tokens(text) / counted))
    columns = ("language", "characters", "tokens", "notes", "prompts")
    everything = {"languages": [dict(zip(columns, row, strict=True)) for row in rows]}
    notes, prompts = ([row[place] for row in rows] for place in (3, 4))
    figures = {"notes, least ratio of a language": min(notes), "prompts, least ratio of a language": min(prompts)}
    mean = ("mean", "", "", ratio(sum(notes), len(rows)), ratio(sum(prompts), len(rows)))
    return report.finish(everything, [Sheet("our estimate, of the server's count", columns, [*rows, mean])], figures)


def texts() -> Iterator[tuple[str, str]]:
    """Of each language its code, and its facts and questions, a line each."""
    for path in sorted(TEXTS.glob("*.jsonl")):
        lines: list[str] = []
        for user in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            lines += [*user["facts"], *(ask["text"] for ask in user["asks"])]
        yield path.stem, "\n".join(lines)


def tokens_of(server: httpx.Client, model: str, text: str) -> int:
    """As the server counts, without marks of a chat. Raises httpx.HTTPError.

    vLLM reads `prompt`, llama.cpp `content`.
    """
    body = {"model": model, "prompt": text, "content": text, "add_special_tokens": False}
    answer = server.post("/tokenize", json=body).raise_for_status().json()
    return len(answer["tokens"])


if __name__ == "__main__":
    raise SystemExit(main())
