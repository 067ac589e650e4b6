"""Calls that documents show as commands of curl, for tests that look at them or make them."""

from __future__ import annotations

import httpx

BODY_FLAGS = {"-d", "--data-binary"}
FLAGS_WITH_VALUE = BODY_FLAGS | {"-H", "-X"}
FLAGS = {"-i", "-N"}


class Curl:
    """What curl would send. `unknown`: options that this class does not know."""

    def __init__(self, words: list[str]) -> None:
        given = iter(words[1:])
        self.method, self.body, self.url = "", "", ""
        self.headers: dict[str, str] = {}
        self.unknown: list[str] = []
        for word in given:
            value = next(given) if word in FLAGS_WITH_VALUE else ""
            if word == "-X":
                self.method = value
            elif word == "-H":
                name, _, content = value.partition(": ")
                self.headers[name] = content
            elif word in BODY_FLAGS:
                self.body = value
            elif not word.startswith("-"):
                self.url = word
            elif word not in FLAGS:
                self.unknown.append(word)
        self.method = self.method or ("POST" if self.body else "GET")

    def send(self) -> httpx.Response:
        return httpx.request(self.method, self.url, headers=self.headers, content=self.body or None, timeout=130)
