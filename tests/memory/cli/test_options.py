"""Commands whose options are values: what the parser is told, and what the function gets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from typer import Argument, Context, Option, Typer
from typer.testing import CliRunner

from memory.cli.options import command, group


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where."""

    city: Annotated[str, Option(help="A city.")]
    street: Annotated[str | None, Option(help="A street.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Time:
    """When."""

    year: Annotated[int, Option(min=1, help="A year.")] = 2_000
    is_late: Annotated[bool, Option("--late", help="Late.")] = False


def parsed(*words: str, code: int = 0) -> tuple[Any, ...]:
    app, got = Typer(), []

    @command(app)
    def visit(
        context: Context,
        names: Annotated[list[str], Argument(help="Who.")],
        place: Place,
        time: Time,
        *,
        loud: Annotated[bool, Option("--loud", help="Loud.")] = False,
    ) -> None:
        """Visit somebody."""
        got.append((context.info_name, names, place, time, loud))

    result = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert result.exit_code == code, result.output
    return got[0] if got else ()


def test_each_field_of_a_value_is_an_option_with_the_fields_default() -> None:
    name, names, place, time, loud = parsed("ann", "bob", "--city", "Ulm")
    assert (name, names, place, time, loud) == ("visit", ["ann", "bob"], Place(city="Ulm"), Time(), False)
    *_, place, time, loud = parsed("ann", "--city", "Ulm", "--street", "A", "--year", "7", "--late", "--loud")
    assert (place, time, loud) == (Place(city="Ulm", street="A"), Time(year=7, is_late=True), True)


@pytest.mark.parametrize("words", [(), ("ann",), ("ann", "--city", "Ulm", "--year", "0"), ("ann", "--town", "Ulm")])
def test_what_a_field_does_not_allow_is_refused_with_exit_code_2(words: tuple[str, ...]) -> None:
    assert parsed(*words, code=2) == ()


def test_a_group_without_a_command_shows_its_help() -> None:
    app = Typer()
    below = group("Fruit.")
    app.add_typer(below, name="fruit")

    @command(below)
    def apple() -> None:
        """An apple."""

    shown = CliRunner().invoke(app, ["fruit"])
    assert (shown.exit_code, "An apple." in shown.output) == (2, True)
    assert CliRunner().invoke(app, ["fruit", "apple"]).exit_code == 0
