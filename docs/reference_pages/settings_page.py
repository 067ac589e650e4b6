"""The configuration reference, from the declarations of the settings."""

from __future__ import annotations

from memory.settings import SettingDoc, every_setting
from reference_pages.markdown import code, document, prose
from reference_pages.notes import notes

INTRODUCTION = """[Settings](../run.md#settings) says how they are given: by a flag, the environment or a file."""


def page() -> str:
    blocks = ["# Configuration reference", INTRODUCTION]
    sections: dict[str, list[SettingDoc]] = {}
    for doc in every_setting():
        sections.setdefault(doc.path.rpartition(".")[0], []).append(doc)
    said = notes("settings.md", sections.keys() | {doc.path for doc in every_setting()})
    for section, docs in sections.items():
        blocks += [f"## {code(section) if section else 'Top level'}", said.get(section, "")]
        for doc in docs:
            blocks += [*_setting(doc), said.get(doc.path, "")]
    return document(*blocks)


def _setting(doc: SettingDoc) -> list[str]:
    facts = [f"Takes {_type(doc)}", f"default: {_default(doc)}", f"environment: {code(doc.environment)}"]
    if doc.is_secret:
        facts.append("from the environment only")
    return [f"### {code(doc.path)}", prose(doc.meaning), f"{'; '.join(facts)}."]


def _type(doc: SettingDoc) -> str:
    words, _, choices = doc.type.partition("one of ")
    return f"{words}one of {', '.join(code(choice) for choice in choices.split(', '))}" if choices else doc.type


def _default(doc: SettingDoc) -> str:
    if doc.default is None or doc.default in ("", ()):
        return "none"
    if isinstance(doc.default, tuple):
        return ", ".join(code(str(one)) for one in doc.default)
    return code(str(doc.default).lower() if isinstance(doc.default, bool) else str(doc.default))
