"""The console script: what a start costs before it does anything, what goes where, and exit codes."""

from __future__ import annotations

import subprocess
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from extproc.cli import main, memproxy

HEAVY = "aiohttp grpc httpx mcp onnxruntime prometheus_client pymilvus rich starlette uvicorn".split()


def test_the_version_is_one_line_and_a_start_imports_nothing_heavy() -> None:
    code = "import sys, extproc.cli; from typer.main import get_command; get_command(extproc.cli.memproxy); "
    code += f"print([name for name in {HEAVY!r} if name in sys.modules])"
    for words, shown in ((("-c", code), "[]"), (("-m", "extproc", "--version"), "memproxy, version ")):
        done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True)
        assert (done.stdout.startswith(shown), done.stdout.count("\n")) == (True, 1)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("list", "--user", "ann", "--api", "http://127.0.0.1:1"), 1, "memproxy: the REST API is unavailable"),
        (("list", "--user", " ann"), 2, "memproxy: user_id"),
        (("list",), 2, "Missing option"),
        (("lsit",), 2, "No such command"),
        (("dlq", "drop"), 2, "give window ids, or --all"),
        (("up", "--port", "x"), 2, "memproxy: "),
        (("filter",), 2, "either on --socket PATH or on --listen HOST:PORT"),
        (("filter", "--socket", "/x", "--listen", "127.0.0.1:1"), 2, "either on --socket"),
        (("filter", "--listen", "0.0.0.0:1"), 2, "listens on loopback only"),
        (("envoy", "--to", "/x"), 2, "envoy_admin_port is needed"),
        (("probe", "grpc:127.0.0.1:1"), 1, ""),
        (("probe", "http://127.0.0.1:1/healthz"), 1, ""),
        (("restart", "--data-dir", "/none"), 2, "no `memproxy up` runs on /none"),
        (("doctor", "--config", "/none.yaml"), 1, ""),
        (("dlq", "list", "--config", "{deep}"), 2, "memproxy: the input is nested too deeply"),
    ],
)
def test_errors_go_to_standard_error_and_have_their_exit_code(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    words: tuple[str, ...],
    code: int,
    said: str,
) -> None:
    deep = tmp_path / "deep.yaml"
    deep.write_text("[" * 10_000)
    monkeypatch.setattr(sys, "argv", ["memproxy", *(word.format(deep=deep) for word in words)])
    with pytest.raises(SystemExit) as ended:
        main()
    shown = capsys.readouterr()
    assert (ended.value.code, said in shown.err) == (code, True), shown.err
    assert words[0] == "doctor" or shown.out == ""


def test_what_users_said_is_printed_in_any_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = BytesIO()
    monkeypatch.setattr(sys, "stdout", TextIOWrapper(shown, encoding="iso-8859-1"))
    monkeypatch.setattr(sys, "argv", ["memproxy", "--version"])
    with pytest.raises(SystemExit):
        main()
    sys.stdout.write("café 北京")
    sys.stdout.flush()
    assert shown.getvalue().endswith(b"caf\xe9 \\u5317\\u4eac")


def test_every_command_of_the_console_script_has_its_help() -> None:
    def complain(command: Any, path: str) -> list[str]:
        missing = [] if command.help else [path]
        missing += [f"{path} {parameter.name}" for parameter in command.params if not parameter.help]
        return missing + [
            one for name, sub in getattr(command, "commands", {}).items() for one in complain(sub, f"{path} {name}")
        ]

    commands = get_command(memproxy)
    assert complain(commands, "memproxy") == []
    named = "up filter worker api mcp search list forget export import turns dlq eval doctor bootstrap"
    assert set(named.split()) <= set(vars(commands)["commands"])
