"""Calls that documents show as commands of curl, for tests that look at them or make them."""

from __future__ import annotations

from argparse import ArgumentParser

import httpx


class Curl:
    """What curl would send. `unknown`: options that this class does not know."""

    def __init__(self, words: list[str]) -> None:
        parser = ArgumentParser(add_help=False, allow_abbrev=False)
        parser.add_argument("-i", "-N", action="store_true")
        parser.add_argument("-X", dest="method")
        parser.add_argument("-H", dest="headers", action="append", default=[])
        parser.add_argument("-d", "--data-binary", dest="body", default="")
        parser.add_argument("url", nargs="?", default="")
        given, self.unknown = parser.parse_known_args(words[1:])
        self.body, self.url = given.body, given.url
        self.method = given.method or ("POST" if self.body else "GET")
        self.headers = dict(header.split(": ", 1) for header in given.headers)

    def send(self) -> httpx.Response:
        return httpx.request(self.method, self.url, headers=self.headers, content=self.body or None, timeout=130)
