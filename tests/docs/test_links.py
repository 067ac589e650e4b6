"""Links of the documents lead somewhere: files, headings, tests. Addresses on the web are checked for form only."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from documents import GENERATED, PAGES, ROOT, anchors, code_in_text, links

OWN_HOSTS = {"127.0.0.1", "localhost"}
TEST_NAME = re.compile(r"test_\w+")


def problem_of(page: Path, link: str) -> str:
    """Why this link leads nowhere; "" if it does not."""
    url = urlsplit(link)
    if url.scheme:
        is_well_formed = url.scheme == "https" and "." in (url.hostname or "") and " " not in link
        return "" if is_well_formed or url.hostname in OWN_HOSTS else "no address on the web"
    target = (page.parent / url.path).resolve() if url.path else page
    if target.is_relative_to(GENERATED):
        return ""  # the build of the site checks these, page and heading
    if not target.exists() or not target.is_relative_to(ROOT):
        return "no such file"
    if url.fragment and url.fragment not in anchors(target):
        return "no such heading"
    return ""


def test_links_of_the_documents_lead_somewhere() -> None:
    found = [(page, link) for page in PAGES for link in links(page)]
    assert len(found) > 100
    assert [(str(page.relative_to(ROOT)), link, why) for page, link in found if (why := problem_of(page, link))] == []


@pytest.mark.parametrize(
    "link", ["docs/none.md", "docs/operations.md#none", "#none", "http://x", "https://x y.z", "../x"]
)
def test_the_check_itself_sees_links_that_lead_nowhere(link: str) -> None:
    assert problem_of(ROOT / "README.md", link)


@cache
def functions_in_tests() -> set[str]:
    files = (ROOT / "tests").rglob("test_*.py")
    nodes = (node for path in files for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    return {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_every_test_that_the_documents_name_exists() -> None:
    named = {(page.name, text) for page in PAGES for text in code_in_text(page) if TEST_NAME.fullmatch(text)}
    assert len(named) > 30
    assert sorted(one for one in named if one[1] not in functions_in_tests()) == []
