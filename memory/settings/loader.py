"""Loads the settings: flags override environment, environment overrides file, file overrides defaults.

The only module that reads the environment. It opens only the file it is given, refuses unknown keys, and never writes a
secret. `load` depends on its arguments (and the named file) only; `from_process` adds this process's environment.
"""

from __future__ import annotations

import os
import typing
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import attrgetter
from pathlib import Path, PurePath
from typing import Any

import msgspec
import yaml

from memory.errors import BadSetting
from memory.settings import ExternalModel, ServiceTokenSettings, Settings, UpstreamSignal, every_setting
from memory.settings.catalogue import ENVIRONMENT_PREFIX, SettingDoc, is_section, unknown, without_secrets
from memory.settings.checks import check
from memory.settings.retention import CategoryRetention
from memory.settings.router_file import FILE_KEYS, Unread, without_router_keys
from memory.typed import converted

CONFIG_VARIABLE = "MEMPROXY_CONFIG"  # names the file, like `--config`; not a setting itself

# Lists whose items have keys of their own.
_ITEMS: Mapping[str, type[msgspec.Struct]] = {
    "external_models": ExternalModel,
    "memory.life.categories": CategoryRetention,
    "memory.upstream_signals": UpstreamSignal,
    "service_tokens": ServiceTokenSettings,
}


class _OnceOnly(yaml.SafeLoader):
    """A YAML loader that refuses duplicate keys, since one of the two values would be ignored.

    Keys merged by `<<` may be overridden, as in YAML.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001 - as in the class above
        seen: set[object] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == "tag:yaml.org,2002:merge":
                continue
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    problem=f"the key {key.value:.60} occurs twice; remove one", problem_mark=key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


@dataclass(frozen=True, slots=True)
class _Given:
    value: object
    source: str
    is_text: bool  # from the environment, so that "8080" may stand for 8080


def load(file: Path | None, flags: Mapping[str, object], environ: Mapping[str, str]) -> Settings:
    """The effective settings. `flags`: values by dotted path (None: not given). Raises `BadSetting`."""
    known = {doc.path: doc for doc in every_setting()}
    given: dict[str, _Given] = {}
    if file is not None:
        given.update(_from_file(file, known))
    given.update(_from_environment(environ, known))
    given.update(_from_flags(flags, known))
    tree: dict[str, Any] = {}
    for path, one in given.items():
        *sections, name = path.split(".")
        section = reduce(lambda above, key: above.setdefault(key, {}), sections, tree)
        section[name] = _converted(known[path], one)
    settings = converted(tree, Settings)
    check(settings)
    return settings


def from_process(file: Path | None, flags: Mapping[str, object]) -> Settings:
    """`load` with this process's environment; `MEMPROXY_CONFIG` names the file where no flag does."""
    environ = os.environ  # noqa: TID251 - this is the one place that reads it
    if file is None and environ.get(CONFIG_VARIABLE):
        file = Path(environ[CONFIG_VARIABLE])
    settings = load(file, flags, environ)
    return settings if settings.models_dir else msgspec.structs.replace(settings, models_dir=_cached_models(environ))


def unread_by_us(file: Path | None) -> list[Unread]:
    """The keys of the file that `from_process` reads which belong to vLLM Semantic Router and have no counterpart."""
    named = file or os.environ.get(CONFIG_VARIABLE)  # noqa: TID251 - likewise
    return _tree_of(Path(named))[1] if named else []


def _cached_models(environ: Mapping[str, str]) -> str:
    """The cache folder by the XDG convention; "" without a home directory, as in some containers."""
    home = environ.get("XDG_CACHE_HOME") or (f"{environ['HOME']}/.cache" if environ.get("HOME") else "")
    return f"{home}/memproxy/models" if home else ""


def child_environment(settings: Settings, extra: Mapping[str, str]) -> dict[str, str]:
    """The environment of a part that gets its settings by `--config`: ours without settings, plus secrets and `extra`.

    Our variables are removed because they would override the file, which already contains their values.
    """
    environ = {k: v for k, v in os.environ.items() if not k.startswith(ENVIRONMENT_PREFIX)}  # noqa: TID251 - likewise
    secrets = {doc.environment: str(attrgetter(doc.path)(settings)) for doc in every_setting() if doc.is_secret}
    return {**environ, **{name: value for name, value in secrets.items() if value}, **extra}


def dump(settings: Settings) -> str:
    """The effective settings as YAML for `load`, without secrets."""
    return yaml.safe_dump(without_secrets(settings), sort_keys=False, allow_unicode=True)


def _from_file(file: Path, known: Mapping[str, SettingDoc]) -> dict[str, _Given]:
    tree, _ = _tree_of(file)
    given: dict[str, _Given] = {}
    _walk(tree, "", Settings, given, str(file), others=FILE_KEYS)
    for path in given:
        if known[path].is_secret:
            raise BadSetting(f"{path} is a secret: set {known[path].environment}, and take it out of {file}")
    return given


def _tree_of(file: Path) -> tuple[Any, list[Unread]]:
    """What the file holds, without the keys of vLLM Semantic Router; and those without a counterpart."""
    try:
        tree = _yaml(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadSetting(
            f"the configuration file {file} cannot be read: {error.strerror}; name one that exists"
        ) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadSetting(f"the configuration file {file} is not YAML that can be used: {error}") from error
    return without_router_keys(tree, str(file))


def _yaml(text: str) -> Any:  # noqa: ANN401 - whatever it holds
    """Raises `yaml.YAMLError`."""
    return yaml.load(text, Loader=_OnceOnly)  # noqa: S506 - a SafeLoader


def _walk(
    tree: object,
    prefix: str,
    struct: type[msgspec.Struct],
    given: dict[str, _Given],
    source: str,
    others: Sequence[str] = (),
) -> None:
    """Collect the leaves below `prefix`; a key without a value counts as not given. `others`: keys that were read."""
    if tree is None:
        return
    if not isinstance(tree, Mapping):
        raise BadSetting(
            f"{prefix.rstrip('.') or 'the file'} ({source}): expected keys with values, got {_shown(tree)}"
        )
    hints = typing.get_type_hints(struct, include_extras=True)
    for key, value in tree.items():
        if key not in hints:
            raise BadSetting(unknown(f"{prefix}{key}", [prefix + name for name in (*hints, *others)], source))
        if is_section(hints[key]):
            _walk(value, f"{prefix}{key}.", hints[key], given, source)
        elif value is not None:
            given[f"{prefix}{key}"] = _Given(value, source, is_text=False)


def _from_environment(environ: Mapping[str, str], known: Mapping[str, SettingDoc]) -> dict[str, _Given]:
    paths = {doc.environment: path for path, doc in known.items()}
    given = {}
    for name, value in environ.items():
        if not name.startswith(ENVIRONMENT_PREFIX) or name == CONFIG_VARIABLE:
            continue
        if name not in paths:
            raise BadSetting(unknown(name, list(paths), "environment"))
        if value:  # compose files and charts pass unset variables as ""
            given[paths[name]] = _Given(value, name, is_text=True)
    return given


def _from_flags(flags: Mapping[str, object], known: Mapping[str, SettingDoc]) -> dict[str, _Given]:
    given = {}
    for path, value in flags.items():
        if path not in known:
            raise BadSetting(unknown(path, list(known), "command line"))
        if known[path].is_secret:
            raise BadSetting(f"{path} is a secret and other users see arguments: set {known[path].environment}")
        if value is not None:
            plain = str(value) if isinstance(value, PurePath) else value
            given[path] = _Given(plain, "--" + path.replace("_", "-"), is_text=isinstance(plain, str))
    return given


def _converted(doc: SettingDoc, given: _Given) -> object:
    value = given.value
    if given.is_text and _is_list(typing.get_args(doc.annotation)[0]):
        value = _list_from_text(str(value))
    if value is False and "off" in typing.get_args(typing.get_args(doc.annotation)[0]):
        value = "off"  # YAML parses the bare word as False
    try:
        _refuse_unknown_item_keys(doc.path, value, given.source)
        return converted(value, doc.annotation, strict=not given.is_text)
    except msgspec.ValidationError as error:
        where = str(error).partition(" - at ")[2]
        came = "something else" if doc.is_secret else _shown(value)
        detail = f" ({error})" if where else ""
        raise BadSetting(
            f"{doc.path} ({given.source}): expected {doc.type}, got {came}{detail}. {doc.meaning}"
        ) from error


def _is_list(annotation: Any) -> bool:  # noqa: ANN401 - a type annotation may be anything
    """Also for optional lists."""
    return any(typing.get_origin(one) is tuple for one in (annotation, *typing.get_args(annotation)))


def _list_from_text(text: str) -> object:
    """A YAML or JSON list, or comma-separated words."""
    if not text.lstrip().startswith("["):
        return [word.strip() for word in text.split(",") if word.strip()]
    try:
        return _yaml(text)
    except yaml.YAMLError as error:
        raise BadSetting(f"expected a list, got {_shown(text)}: {error}") from error


def _refuse_unknown_item_keys(path: str, value: object, source: str) -> None:
    if path not in _ITEMS or not isinstance(value, list):
        return
    for item in value:
        given: dict[str, _Given] = {}
        _walk(item, f"{path}.", _ITEMS[path], given, source)


def _shown(value: object) -> str:
    return f"{value!r:.80}"
