"""Where a client talks to and with which key: argument, then environment, then embedded. Deciding reads no file."""

from __future__ import annotations

import ipaddress
import os
import re
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from urllib.parse import SplitResult, quote, unquote, urlsplit

from pydantic import SecretStr

from kronmem.errors import ConfigError

KRONVEX = "https://api.kronvex.io"


class InsecureUrlWarning(UserWarning):
    """A key travels over plain http to another machine."""


@dataclass(frozen=True)
class Settings:
    """The resolved settings. `scheme` is http, https, sqlite or postgresql; `path` is the embedded engine's file."""

    url: str = field(repr=False)  # a database's url may hold a password
    scheme: str
    key: SecretStr | None = None
    path: str = ""

    @property
    def embedded(self) -> bool:
        """Does the engine run inside this process?"""
        return self.scheme not in ("http", "https")

    @property
    def kronvex(self) -> bool:
        """Is it the vendor's own service?"""
        return _is_kronvex(urlsplit(self.url))


def resolve(url: str | os.PathLike[str] | None, api_key: str | None, env: Mapping[str, str] | None = None) -> Settings:
    """Decide where to go; a path is an embedded database. A key is sent only to the service that it belongs to."""
    env = os.environ if env is None else env
    url = f"sqlite:///{quote(os.fspath(url))}" if isinstance(url, os.PathLike) else url
    ours, vendors = env.get("KRONMEM_URL") or None, env.get("KRONVEX_API_KEY") or None
    chosen = url or ours or (KRONVEX if vendors else None)
    if chosen is None:
        if api_key or env.get("KRONMEM_API_KEY"):
            raise ConfigError(
                "there is a key but no url to send it to: pass the url of the service it belongs to, such as "
                f'Client("{KRONVEX}", api_key=…), or set KRONMEM_URL'
            )
        chosen = f"sqlite:///{quote(str(default_file(env)))}"
    parts = _split(chosen)
    if parts.scheme not in ("http", "https"):
        return Settings(chosen, parts.scheme, path=_file(chosen, parts))
    key = api_key or _key(parts, ours, vendors, env.get("KRONMEM_API_KEY"))
    _check_key(key, parts)
    return Settings(chosen.rstrip("/"), parts.scheme, SecretStr(key) if key else None)


def home(env: Mapping[str, str] | None = None) -> Path:
    """The directory for kronmem's files: $KRONMEM_HOME, else the platform's user data directory."""
    env = os.environ if env is None else env
    if chosen := env.get("KRONMEM_HOME"):
        return Path(chosen)
    if sys.platform == "win32":
        return Path(env.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "kronmem"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "kronmem"
    return Path(env.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "kronmem"


def default_file(env: Mapping[str, str] | None = None) -> Path:
    """The embedded engine's database when none is named."""
    return home(env) / "memory.db"


def address_of(url: str) -> str:
    """Scheme, host and port of a service, for messages; a database in this process has none."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        return "the embedded engine"
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}:{parts.port or (443 if parts.scheme == 'https' else 80)}"


@lru_cache(maxsize=1)
def installed_version() -> str:
    """The version of the installed package."""
    from importlib.metadata import PackageNotFoundError, version  # slow to import, and seldom asked

    try:
        return version("kronmem")
    except PackageNotFoundError:  # a checkout that was never installed
        return "0"


def is_loopback(host: str) -> bool:
    """Does this host name mean this machine?"""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _split(url: str) -> SplitResult:
    if not isinstance(url, str):  # pyright: ignore[reportUnnecessaryIsInstance] -- callers may not be typed
        raise ConfigError(f"the url must be a string or a Path, not {type(url).__name__}")
    try:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https"):  # a database's url may name several hosts, each with a port
            _ = parts.port
            (parts.hostname or "").encode("idna")  # no host has an empty part, or one of more than 63 characters
    except ValueError:
        raise ConfigError("the url cannot be read") from None
    if parts.scheme not in ("http", "https", "sqlite", "postgresql", "postgres"):
        raise ConfigError(f"the url must start with http://, https://, sqlite:// or postgresql://{_meant(url)}")
    if parts.scheme in ("http", "https"):
        if not parts.hostname:
            raise ConfigError("the url names no host")
        if parts.username or parts.password:
            raise ConfigError("the url holds a user or password; pass the key as api_key= or in the environment")
        if parts.query or parts.fragment:
            raise ConfigError("the url must not have a query or a fragment")
    return parts


def _meant(url: str) -> str:
    """The url that was probably meant. Nothing that may be a secret is repeated."""
    if url.startswith("kv-"):
        return "; this looks like a key: pass it as api_key="
    if "@" in url or "://" in url:
        return ""
    if re.search(r"[/\\~]|\.(db|sqlite3?)$", url) and not re.match(r"[\w.-]+:\d", url):
        return f"; for a file write sqlite:///{url} or pass Path({url!r})"
    scheme = "http" if re.match(r"(localhost|[\d.]+|[\w-]+)(:\d|$)", url) else "https"
    return f"; did you mean {scheme}://{url}?"


def _file(url: str, parts: SplitResult) -> str:
    """As everywhere: sqlite:///relative.db, sqlite:////absolute.db, sqlite:// in memory."""
    if parts.scheme != "sqlite":
        return ""
    if parts.netloc or not url[len("sqlite:") :].startswith("//"):
        raise ConfigError("write sqlite:///path/file.db, with three slashes")
    return unquote(url[len("sqlite:///") :]) or ":memory:"


def _key(parts: SplitResult, ours: str | None, vendors: str | None, our_key: str | None) -> str | None:
    if ours is not None and _origin(urlsplit(ours)) == _origin(parts) and our_key:
        return our_key
    return vendors if _is_kronvex(parts) else None


def _is_kronvex(parts: SplitResult) -> bool:
    host = parts.hostname or ""
    return parts.scheme == "https" and (host == "kronvex.io" or host.endswith(".kronvex.io"))


def _origin(parts: SplitResult) -> tuple[str, str | None, int | None]:
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def _check_key(key: str | None, parts: SplitResult) -> None:
    if key is None:
        if _is_kronvex(parts):
            raise ConfigError("Kronvex needs a key: pass api_key= or set KRONVEX_API_KEY")
        return
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigError("the key holds characters that no key has (line break, space or non-ASCII)")
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        text = "the key travels over plain http to another machine; use https"
        warnings.warn(text, InsecureUrlWarning, stacklevel=4)
