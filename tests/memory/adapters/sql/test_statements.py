"""Every named statement is called, with the parameters that it names, and both engines understand it."""

from __future__ import annotations

import ast
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from postgres_server import postgres_server

import memory.adapters.sql as package
from memory.adapters.sql.dialect import postgres_statement, sqlite_schema, sqlite_statement
from memory.adapters.sql.migrations import schema
from memory.adapters.sql.postgres_database import prepare_tables
from memory.adapters.sql.postgres_pool import PostgresAddress
from memory.adapters.sql.statements import texts_in

FOLDER = Path(package.__file__).parent
FILES = sorted(file.stem for file in FOLDER.glob("*.sql") if not file.stem.startswith("schema"))

TYPED = {  # parameters whose type PostgreSQL cannot tell from the statement
    "model_capabilities": {"passed_seconds_max": 0.0, "failed_seconds_max": 0.0},
    "recorded_rows": {"trace": b""},
    "recording_times": {"after_loss": 0.0, "seconds": 0.0},
    "turn_log": {"receipt_id": b""},
}


def calls_in(module: str) -> list[tuple[str, set[str]]]:
    """The statements that a module calls by name, with the parameters that it gives; "" for some that are not known."""
    calls = []
    for node in ast.walk(ast.parse((FOLDER / f"{module}.py").read_text())):
        if not isinstance(node, ast.Call):
            continue
        match node.func:
            case ast.Attribute(ast.Name("SQL"), name):
                calls.append((name, {word.arg or "" for word in node.keywords}))
            case ast.Attribute(ast.Attribute(ast.Name("SQL"), name), "exists" | "column" | "one" | "value"):
                calls.append((name, {word.arg or "" for word in node.keywords}))
            case ast.Attribute(ast.Attribute(ast.Name("SQL"), name), "many"):
                keys = [key for one in ast.walk(node) if isinstance(one, ast.Dict) for key in one.keys]
                calls.append((name, {key.value if isinstance(key, ast.Constant) else "" for key in keys}))
            case ast.Call(ast.Name("getattr"), [ast.Name("SQL"), ast.JoinedStr([ast.Constant(start), *_])]):
                given = {word.arg or "" for word in node.keywords}
                calls += [(name, given) for name in texts_in(module) if name.startswith(start)]
    return calls


@pytest.mark.parametrize("module", FILES)
def test_statements_are_called_with_the_parameters_that_they_name_and_sqlite_understands_them(module: str) -> None:
    texts, calls = texts_in(module), calls_in(module)
    assert {name for name, _ in calls} == set(texts), "each is called, and no other"
    for name, given in calls:
        named = set(re.findall(r"(?<!:):([a-z_]\w*)", texts[name]))
        assert "" in given or given == named, name
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in schema():
            connection.execute(sqlite_schema(statement))
        for statement in map(sqlite_statement, texts.values()):
            connection.execute(f"EXPLAIN {statement}", dict.fromkeys(re.findall(r":([a-z_]\w*)", statement)))


@pytest.mark.parametrize("module", FILES)
def test_postgresql_understands_every_statement(module: str) -> None:
    server, typed = postgres_server(), TYPED.get(module, {})
    prepare_tables(PostgresAddress(server.url))
    with server.connect() as connection:
        for statement in map(postgres_statement, texts_in(module).values()):
            named = {name: typed.get(name) for name in re.findall(r"%\((\w+)\)s", statement)}
            connection.execute(f"EXPLAIN {statement}", named)
