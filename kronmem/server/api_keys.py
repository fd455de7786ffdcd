"""Named keys, and where each contract carries one; wrong keys are counted. Keys never appear in a message or log."""

from __future__ import annotations

import base64
import binascii
import hmac
import logging
import math
import os
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from kronmem.errors import ConfigError

VARIABLE = "KRONMEM_SERVE_KEYS"

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")

_log = logging.getLogger("kronmem.server")

Headers = Mapping[str, str]


class Keys:
    """The keys of a server and the owner each stands for; without any, every caller is the owner ''."""

    def __init__(self, owners: Mapping[str, str] | KeysFile | None) -> None:
        self._owners = owners or {}

    @property
    def needed(self) -> bool:
        """Must a request carry a key?"""
        return bool(self._owners)

    def owner(self, given: str) -> str | None:
        """The owner of a key. Every key is compared in constant time: the time it takes reveals nothing about them."""
        known = self._owners.read() if isinstance(self._owners, KeysFile) else self._owners
        matching = [owner for key, owner in known.items() if hmac.compare_digest(key.encode(), given.encode())]
        return matching[0] if matching else None


class KeysFile:
    """The keys of a file and those given beside it; a change of the file holds from the next request on."""

    def __init__(self, path: Path, bare: str | None, named: str | None) -> None:
        self._path, self._given = path, (bare, named)
        self._mark: tuple[int, ...] = ()
        self._owners = self._read()

    def read(self) -> Mapping[str, str]:
        """The keys that hold now; while the file cannot be read or is wrong, those given beside it alone."""
        if self._mark != (mark := self._stat()):
            try:
                self._owners = self._read()
            except ConfigError as error:
                _log.error("the keys of %s are refused until it is put right: %s", self._path, error)
                self._owners, self._mark = owners(*self._given) or {}, mark
        return self._owners

    def _read(self) -> Mapping[str, str]:
        mark = self._stat()  # before: a change while it is read is seen at the next request
        known = owners(*self._given, read_file(self._path)) or {}
        self._mark = mark
        return known

    def _stat(self) -> tuple[int, ...]:
        try:
            status = self._path.stat()
        except OSError:
            return ()
        return status.st_mtime_ns, status.st_size, status.st_ino


def owners(bare: str | None, named: str | None, lines: Iterable[str] = ()) -> dict[str, str] | None:
    """Keys to owners, from one key without a name, from `name:key,name:key`, and from lines of either form.

    None when there is no key. A name may come twice: while a key is being rotated, the old one and the new one own
    the same memories.
    """
    pairs = [("", bare)] if bare else []
    pairs += [_pair(part) for part in (named or "").split(",") if part.strip()]
    pairs += [_pair(line) if ":" in line else ("", line) for line in lines]
    by_key: dict[str, str] = {}
    for name, key in pairs:
        if by_key.setdefault(_checked(key), name) != name:
            raise ConfigError("one key was given to two names")
    return by_key or None


def read_file(path: Path | None) -> list[str]:
    """The lines of a file of keys, without blank ones and comments; none without a file."""
    if path is None:
        return []
    try:
        lines = path.read_text("utf-8").splitlines()
        loose = os.name == "posix" and path.stat().st_mode & 0o077
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the keys in {path}: {getattr(error, 'strerror', None) or error}") from error
    if loose:
        _log.warning("others can read the keys in %s: chmod 600 %s", path, path)
    keys = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    if not keys:
        raise ConfigError(f"there is no key in {path}")
    return keys


def _pair(part: str) -> tuple[str, str]:
    name, colon, key = part.strip().partition(":")
    if not colon or not _NAME.fullmatch(name):
        raise ConfigError(f"{VARIABLE} is name:key,name:key with names of letters, digits, _ . and -")
    return name, key


def _checked(key: str) -> str:
    if not key or not key.isascii() or not key.isprintable() or not set(key).isdisjoint(" ,"):
        raise ConfigError("a key holds characters that no key has (line break, space, comma or non-ASCII), or none")
    return key


def api_key(headers: Headers) -> str | None:
    """Kronvex: the key in a header of its own."""
    return headers.get("x-api-key")


def bearer(headers: Headers) -> str | None:
    """Memstore: the key after the word Bearer."""
    scheme, _, key = headers.get("authorization", "").partition(" ")
    return key.strip() if scheme == "Bearer" and key.strip() else api_key(headers)


def basic(headers: Headers) -> str | None:
    """BotWire has no keys, but an address may carry a password: that is the key."""
    scheme, _, packed = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return api_key(headers)
    try:
        user, _, password = base64.b64decode(packed, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return ""
    return password or user


def names(owners: Iterable[str]) -> str:
    """The owners of a server in words, for its first line."""
    return ", ".join(sorted(name or "(no name)" for name in set(owners)))


# Counts wrong keys by the address they come from. Right keys are never counted and reset nothing: many users may share
# an address.

ALLOWED = 20
"""Wrong keys in a window before an address gets 429: more than a program with a mistyped key tries by itself."""
WINDOW = 60.0
"""Seconds after which an address starts at zero: 20 guesses a minute find no random key."""
_ADDRESSES = 10_000
"""How many addresses are remembered, in a few megabytes; the one that was counted first goes first."""


class WrongKeys:
    """How many wrong keys each address has tried of late."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._tried: OrderedDict[str, tuple[int, float]] = OrderedDict()
        """By address: how many, and since when."""

    def count(self, address: str) -> int:
        """Note a wrong key; the seconds that the address has to wait, 0 while it may go on."""
        now = self._now()
        tried, since = self._tried.get(address, (0, now))
        if now - since >= WINDOW:
            tried, since = 0, now
        self._tried[address] = (tried + 1, since)
        if len(self._tried) > _ADDRESSES:
            self._tried.popitem(last=False)
        if tried == ALLOWED:
            _log.warning("%s tried %d wrong keys within a minute and gets 429 now", address, tried)
        return 0 if tried < ALLOWED else math.ceil(since + WINDOW - now)
