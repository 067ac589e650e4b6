"""The web page through the real product: its files and its calls go through Envoy, with the identity of the chats."""

from __future__ import annotations

import shutil

import httpx
import pytest
from pages import MY_PAGE, chromium, press, watched
from playwright.sync_api import expect
from product import Product


def test_a_user_sees_and_forgets_through_the_proxy_what_a_chat_taught(shared_product: Product) -> None:
    if shutil.which("chromium") is None:
        pytest.skip("NO CHROMIUM ON THE PATH: THE WEB PAGE IS NOT TESTED (on Debian: apt install chromium)")
    product, user = shared_product, "page-reader"
    product.chat("My dog is called Rex", user, session_id="s1")
    assert product.flush(user) == {"pending": 0, "failed": 0}
    product.chat("What is the name of my dog?", user, session_id="s2")
    with chromium() as browser, watched(browser, product.url + MY_PAGE, user=user) as opened:
        rex = opened.page.get_by_role("article").filter(has_text="Rex")
        expect(rex).to_be_visible(timeout=15_000)
        rex.get_by_role("button", name="Details").click()
        expect(rex.locator("blockquote")).to_contain_text("Rex", timeout=15_000)
        expect(rex).to_contain_text("What is the name of my dog?")
        rex.get_by_role("button", name="Forget").click()
        press(opened.page, "Forget it")
        expect(opened.page.get_by_text("The memory was forgotten.")).to_be_visible(timeout=15_000)
        opened.assert_clean()
    left = httpx.get(f"{product.url}/v1/memory", params={"user_id": user}, headers={"x-authz-user-id": user}).json()
    assert not [one for one in left["memories"] if "Rex" in one["content"]]


def test_the_proxy_refuses_a_forged_change_and_serves_the_operator_s_calls(shared_product: Product) -> None:
    url, headers = f"{shared_product.url}/v1/memory", {"x-authz-user-id": "forged"}
    forged = httpx.delete(f"{url}?user_id=forged", headers=headers | {"origin": "http://localhost:3000"})
    assert (forged.status_code, forged.json()["error"]["code"]) == (403, "forbidden")
    assert httpx.delete(f"{url}?user_id=forged", headers=headers).status_code == 200
    parts = httpx.get(f"{url}/operator/health").json()["parts"]
    assert {one["part"]: one["ok"] for one in parts} == dict.fromkeys(
        ("store", "turn_log", "embedder", "learning", "envoy", "filter", "worker", "upstream"), True
    )
