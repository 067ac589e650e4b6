"""What the documents show can be typed: commands, calls, settings and programs in their code blocks exist."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from curl_commands import Curl
from documents import PAGES, ROOT, Block, blocks, code_in_text, commands
from reference_pages.rest_page import REFERENCE, calls_of, openapi_document
from typer.main import get_command

from extproc.apis import APIS
from extproc.cli import memproxy
from memory.settings.loader import load

LANGUAGES = {"sh", "json", "yaml", "python", "text", "{toctree}"}
MEMPROXY = {"memproxy", ".venv/bin/memproxy"}
PYTHON = ".venv/bin/python"
ELSEWHERE = {"vllm", "docker", "kubectl", "export"}  # programs that are not ours
API_PORT, PROXY_PORT = 8081, 8080
PLACEHOLDER = re.compile(r"[A-Z][A-Z_]*")


@cache
def shell_commands() -> list[tuple[str, list[str]]]:
    return [(str(block), words) for block in blocks("sh") for words in commands(block.text)]


def commands_of(program: set[str]) -> list[tuple[str, list[str]]]:
    """Of these programs, without redirections; each with the place where it stands."""
    return [
        (place, words[: words.index(">")] if ">" in words else words)
        for place, words in shell_commands()
        if words[0] in program
    ]


def test_every_block_says_its_language() -> None:
    assert len(blocks()) > 40
    assert [str(block) for block in blocks() if block.language not in LANGUAGES] == []


@pytest.mark.parametrize("block", blocks("json", "python"), ids=str)
def test_json_and_python_are_what_they_claim(block: Block) -> None:
    if block.language == "json":
        json.loads(block.text)
    else:
        ast.parse(block.text)


@pytest.mark.parametrize("block", blocks("yaml"), ids=str)
def test_a_configuration_is_accepted_as_the_product_reads_it(block: Block, tmp_path: Path) -> None:
    file = tmp_path / "memproxy.yaml"
    file.write_text(block.text, encoding="utf-8")
    load(file, {}, {})


def test_programs_are_known() -> None:
    known = MEMPROXY | ELSEWHERE | {PYTHON, "make", "curl", "pre-commit"}
    assert sorted({f"{place}: {words[0]}" for place, words in shell_commands() if words[0] not in known}) == []


def test_targets_of_make_and_scripts_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    made = [(place, words[1]) for place, words in commands_of({"make"})]
    assert made
    assert [one for one in made if one[1] not in targets] == []
    scripts = [(place, word) for place, words in commands_of({PYTHON}) for word in words if word.endswith(".py")]
    assert scripts
    assert [one for one in scripts if not (ROOT / one[1]).exists()] == []


def wrong_words(words: list[str]) -> list[str]:
    """What the parser would refuse: a command or an option that is not there."""
    command: Any = get_command(memproxy)
    rest = words[1:]
    while below := getattr(command, "commands", None):
        if not rest or rest[0] not in below:
            return rest[:1] or [f"{words[-1]} needs a command"]
        command, rest = below[rest[0]], rest[1:]
    options = {name for one in command.params for name in (*one.opts, *one.secondary_opts)} | {"--help"}
    return [word for word in rest if word.startswith("-") and word.partition("=")[0] not in options]


def test_commands_in_shell_blocks_exist_with_their_options() -> None:
    found = commands_of(MEMPROXY)
    assert len(found) > 10
    assert [(place, wrong) for place, words in found if (wrong := wrong_words(words))] == []


def test_commands_that_the_text_names_exist() -> None:
    """`memproxy search|list` names two; a word in capitals stands for any."""
    root: Any = get_command(memproxy)
    named = {
        (str(page.relative_to(ROOT)), name)
        for page in PAGES
        if "Status: replaced" not in page.read_text(encoding="utf-8")
        for text in code_in_text(page)
        if text.startswith("memproxy ")
        for name in text.split()[1].split("|")
    }
    assert len(named) > 20
    assert sorted(one for one in named if not PLACEHOLDER.fullmatch(one[1]) and one[1] not in root.commands) == []


@cache
def openapi() -> dict[str, Any]:
    return openapi_document()


def described(method: str, path: str) -> dict[str, Any] | None:
    """The operation that serves it: parts in capitals stand for any value."""
    for call in calls_of(openapi()):
        parts = zip(call.path.split("/"), path.split("/"), strict=False)
        fits = all(known == part or (known.startswith("{") and PLACEHOLDER.fullmatch(part)) for known, part in parts)
        if fits and call.path.count("/") == path.count("/") and call.method == method.lower():
            return dict(call.described)
    return None


def problems_of(curl: Curl) -> Iterator[str]:
    url = urlsplit(curl.url)
    yield from (f"an option that this check does not know: {word}" for word in curl.unknown)
    if url.port == PROXY_PORT and not url.path.startswith("/v1/memory"):
        if url.path not in {api.requests.path for api in APIS} or curl.method != "POST":
            yield f"no chat: {curl.method} {url.path}"
        json.loads(curl.body)
        return
    operation = described(curl.method, url.path)
    if operation is None or url.port not in {API_PORT, PROXY_PORT}:
        yield f"not served: {curl.method} {curl.url}"
        return
    known = {one["name"] for one in operation.get("parameters", ())} | {"user_id"}
    yield from (f"unknown parameter {name}" for name in parse_qs(url.query) if name not in known)
    if curl.body and not curl.body.startswith("@"):
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        fields = openapi()["components"]["schemas"][schema["$ref"].removeprefix(REFERENCE)]["properties"]
        yield from (f"unknown field {name}" for name in json.loads(curl.body) if name not in fields)


def test_calls_name_routes_parameters_and_fields_that_exist() -> None:
    found = commands_of({"curl"})
    assert len(found) > 20
    assert [(place, problem) for place, words in found for problem in problems_of(Curl(words))] == []
