"""The files of the web page, as they are served: types, policy, caching; and its words in both languages."""

from __future__ import annotations

import html
import json
import re

import httpx
import pytest
from api_parts import api_of
from library_parts import Parts

from memory.api.page_files import BASE, FILES, TYPES, page_files

WORDS = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in FILES.glob("words.*.json")}
NAMED = re.compile(r'\bt\(\s*"([a-z_.]+)"')
PLACES = re.compile(r"\{(\w+)\}")


@pytest.mark.parametrize("mode", ["development", "header", "jwt"])
async def test_every_file_has_its_type_and_a_strict_policy_and_one_the_mode(parts: Parts, mode: str) -> None:
    async with api_of(parts, identity_mode=mode) as api:
        answers = {name: await api.get(f"{BASE}/{name}") for name in page_files()}
        assert (await api.get(f"{BASE}/identity.json")).json() == {"mode": mode}
    for name, answer in answers.items():
        assert (answer.status_code, answer.content) == (200, (FILES / name).read_bytes())
        assert answer.headers["content-type"] == TYPES[name[name.rindex(".") :]]
        policy = dict(one.strip().split(" ", 1) for one in answer.headers["content-security-policy"].split(";"))
        assert (policy["default-src"], policy["script-src"], policy["style-src"]) == ("'none'", "'self'", "'self'")
        assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
        assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["/docs", "/docs/", "/v1/memory/docs"])
async def test_the_page_about_the_api_tells_every_call_and_loads_only_our_style(parts: Parts, path: str) -> None:
    async with api_of(parts, identity_mode="jwt") as api:
        shown = await api.get(path)
        document = (await api.get("/openapi.json")).json()
        [loaded] = re.findall(r'(?:src|href)="([^#"]*)"', shown.text)
        assert (await api.get(str(shown.url.join(loaded)))).content == (FILES / "docs.css").read_bytes()
    assert (shown.status_code, shown.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "default-src 'none'" in shown.headers["content-security-policy"]
    assert "<script" not in shown.text
    calls = {f"{method.upper()} {path}" for path, calls in document["paths"].items() for method in calls}
    assert calls == set(map(html.unescape, re.findall("<summary><code>(.*?)</code>", shown.text)))
    assert set(re.findall(r'href="#(.*?)"', shown.text)) <= set(re.findall(r'id="(.*?)"', shown.text))
    assert "separated by commas" in shown.text


async def test_an_unchanged_file_is_not_sent_again(api: httpx.AsyncClient) -> None:
    first = await api.get(f"{BASE}/")
    etag = first.headers["etag"]
    for known in (etag, f"W/{etag}", f'"other", {etag}'):
        again = await api.get(f"{BASE}/", headers={"if-none-match": known})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)
    assert (await api.get(f"{BASE}/", headers={"if-none-match": '"other"'})).status_code == 200
    head = await api.head(f"{BASE}/style.css")
    assert (head.status_code, head.content) == (200, b"")
    assert int(head.headers["content-length"]) == (FILES / "style.css").stat().st_size


async def test_the_page_is_found_without_its_last_slash_and_nothing_else_is_there(api: httpx.AsyncClient) -> None:
    moved = await api.get(BASE)
    assert (moved.status_code, moved.headers["location"]) == (308, "ui/")
    assert (await api.get(f"{BASE}/")).text == (FILES / "index.html").read_text(encoding="utf-8")
    for path in ("nothing.js", "../rest.py", "..%2frest.py", "pages/index.html", "index.html/x"):
        assert (await api.get(f"{BASE}/{path}")).status_code == 404
    assert (await api.post(f"{BASE}/index.html")).status_code in (404, 405)


def test_both_languages_say_the_same_things_and_have_every_text_of_the_page() -> None:
    assert set(WORDS) == {"words.en.json", "words.zh.json"}
    english, chinese = WORDS["words.en.json"], WORDS["words.zh.json"]
    assert english.keys() == chinese.keys()
    assert all(english.values())
    assert all(chinese.values())
    for key, text in english.items():
        places, translated = set(PLACES.findall(text)), set(PLACES.findall(chinese[key]))
        assert places <= translated or key.endswith(".one"), key
        assert translated <= places | {"count"}, key
    named = set(NAMED.findall("".join(path.read_text(encoding="utf-8") for path in FILES.glob("*.js"))))
    assert len(named) > 60
    assert {key for key in named if key not in english and f"{key}.other" not in english} == set()


def test_no_script_parses_text_as_html_and_no_page_has_inline_code() -> None:
    for kind, refused in (
        ("*.js", r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"),
        ("*.html", r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=|https?://"),
    ):
        assert [path for path in FILES.glob(kind) if re.search(refused, path.read_text(encoding="utf-8"))] == []
