"""The address of a service as a client reaches it: host and port, path, proxy, trusted certificates."""

from __future__ import annotations

import json
import ssl
import time
from urllib.parse import quote, urlsplit

from pydantic import SecretBytes, SecretStr

from kronmem.core.wire import Reply, Request
from kronmem.settings import address_of
from kronmem.transport.proxy import Proxy, bracketed, proxy_for
from kronmem.transport.tls import trusted

LEAST_KEY = 6
"""Characters: a shorter key may be a part of any word, and of the names that an error's JSON is read by."""
HIDDEN = "[key]"


class Target:
    """A service's address and key, and how it is reached."""

    def __init__(self, url: str, key: SecretStr | None) -> None:
        parts = urlsplit(url)
        name = parts.hostname or ""
        self.scheme = parts.scheme
        self.host = name if name.isascii() else name.encode("idna").decode("ascii")
        self.port = parts.port or (443 if parts.scheme == "https" else 80)
        self.prefix = quote(parts.path.rstrip("/"), safe="/%:@!$&'()*+,;=~")
        self.netloc = parts.netloc if name.isascii() else parts.netloc.lower().replace(name, self.host)
        self.address = address_of(url)
        self.key = key
        self.shared_head: SecretBytes | None = None
        """The headers that do not change, encoded once by `headers`."""
        self._proxy: Proxy | None = None
        self._proxied: bool | None = None
        self._context: ssl.SSLContext | None = None

    def path(self, request: Request) -> str:
        """The request's target with its query."""
        if not request.query:
            return f"{self.prefix}{request.path}"
        query = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in request.query)
        return f"{self.prefix}{request.path}?{query}"

    def url(self, request: Request) -> str:
        """The whole address of a request."""
        return f"{self.scheme}://{self.netloc}{self.path(request)}"

    def reply(self, status: int, body: bytes, headers: dict[str, str]) -> Reply:
        """The reply as it came; an error that repeats the key comes without it."""
        key = self.key.get_secret_value() if self.key else ""
        if status >= 300 and len(key) >= LEAST_KEY:
            quoted = json.dumps(key)[1:-1]
            for written in (key, quoted, quoted.replace("/", "\\/")):
                body = body.replace(written.encode(), HIDDEN.encode())
            headers = {name: value.replace(key, HIDDEN) for name, value in headers.items()}
        return Reply(status, body, headers, time.time())

    @property
    def authority(self) -> str:
        """Host and port, as CONNECT names them."""
        return f"{bracketed(self.host)}:{self.port}"

    @property
    def proxy(self) -> Proxy | None:
        """The proxy that the environment names for this host, read once."""
        if self._proxied is None:
            self._proxy = proxy_for(self.scheme, self.host, self.port)
            self._proxied = self._proxy is not None
        return self._proxy

    @property
    def context(self) -> ssl.SSLContext:
        """The trusted certificates, read once and only where they are needed.

        Without a lock: one that another thread held at a fork would stay locked, and two contexts do no harm.
        """
        if self._context is None:
            self._context = trusted()
        return self._context
