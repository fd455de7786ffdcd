"""The tree of errors.

KronmemError
├── ConfigError                 no key, bad url, missing extra: before anything is sent
│   ├── CertificateError        TLS that cannot be trusted: not retried, not queued
│   └── UnsupportedError        the service lacks this feature, and the version that has it
├── InvalidInputError           refused before anything is sent (ids, ttl, NUL, size)
├── TransportError              nothing usable came back
│   ├── DeadlineError           the call timed out
│   └── UnavailableError        the breaker is open: not even tried
├── ReplyError                  something came back that cannot be read
├── StoreError                  the embedded database cannot be used (corrupt, newer, full, read-only)
├── OutboxFullError             remember_later has no room left
├── FanOutError                 some of many calls failed (.partial, .causes)
└── StatusError                 the service refused (.status .message .request_id .retry_after)
    ├── InvalidRequestError     400, 422
    ├── AuthError               401, 403
    ├── QuotaError              402
    ├── NotFoundError           404
    ├── ConflictError           409
    ├── RateLimitError          429
    └── ServerError             5xx
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class KronmemError(Exception):
    """Everything kronmem raises on purpose."""


class ConfigError(KronmemError):
    """The client is not configured: no key, bad url, missing extra. Nothing was sent."""


class CertificateError(ConfigError):
    """The service's TLS cannot be trusted: wrong host, expired, unknown authority, too old. Nothing was sent."""


class UnsupportedError(ConfigError):
    """The service cannot do this; the message names the version that can. Nothing was stored or changed."""


class InvalidInputError(KronmemError):
    """An argument no service would take. Nothing was sent."""


class TransportError(KronmemError):
    """Nothing usable came back. `sent` is true if the service may have received the request.

    `partial`: only a part of the service is away, and calls about other agents go on.
    """

    def __init__(self, message: str, *, sent: bool = True, partial: bool = False) -> None:
        super().__init__(message)
        self.sent = sent
        self.partial = partial


class DeadlineError(TransportError):
    """The call timed out: its total time passed before the service had answered."""


class UnavailableError(TransportError):
    """The circuit breaker is open after repeated failures; next attempt in `retry_after` seconds. Nothing was sent."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message, sent=False)
        self.retry_after = retry_after


class ReplyError(KronmemError):
    """The service answered with something that cannot be read."""


class StoreError(KronmemError):
    """The embedded database cannot be used: corrupt, of a newer version, disk full, read-only. Names the file.

    `outage`: it is unavailable at the moment, for any content.
    """

    def __init__(self, message: str, *, damaged: bool = False, outage: bool = False) -> None:
        super().__init__(message)
        self.damaged = damaged
        self.outage = outage


class OutboxFullError(KronmemError):
    """The outbox has no room left. Nothing was queued and nothing was dropped."""


class FanOutError(KronmemError):
    """Some of many calls failed: `partial` holds the results that arrived, `causes` the failures.

    Both are keyed by the question's position (`recall_many`) or agent id (`recall_across`).
    """

    def __init__(
        self,
        message: str,
        *,
        partial: Mapping[int, object] | Mapping[str, object],
        causes: Mapping[int, BaseException] | Mapping[str, BaseException],
    ) -> None:
        super().__init__(f"{message.rstrip('.')}. .partial has {len(partial)}, .causes has {len(causes)}")
        self.partial = partial
        self.causes = causes


class StatusError(KronmemError):
    """The service refused. `unheard`: to the last attempt, and it may have carried out one before."""

    unheard: bool = False

    def __init__(
        self,
        message: str,
        *,
        status: int,
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message
        self.request_id = request_id
        self.retry_after = retry_after


class InvalidRequestError(StatusError):
    """400 or 422: the service did not accept the request."""


class AuthError(StatusError):
    """401 or 403: the key is missing, wrong or not allowed to do this."""


class QuotaError(StatusError):
    """402: the plan's memories or agents are used up."""


class NotFoundError(StatusError):
    """404: no such agent, memory or key."""


class ConflictError(StatusError):
    """409: the same id was used for something else."""


class RateLimitError(StatusError):
    """429: too many requests; `retry_after` is the seconds to wait before the next one."""


class ServerError(StatusError):
    """5xx: the service failed. `outage`: it reports that its store is away, so that this request is not to blame."""

    outage: bool = False


_BY_STATUS: dict[int, type[StatusError]] = {
    400: InvalidRequestError,
    401: AuthError,
    402: QuotaError,
    403: AuthError,
    404: NotFoundError,
    409: ConflictError,
    422: InvalidRequestError,
    429: RateLimitError,
}


def status_class(status: int) -> type[StatusError]:
    """Choose the error class by status alone; messages change, statuses do not."""
    return ServerError if status >= 500 else _BY_STATUS.get(status, StatusError)


__all__: Sequence[str] = [
    "AuthError",
    "CertificateError",
    "ConfigError",
    "ConflictError",
    "DeadlineError",
    "FanOutError",
    "InvalidInputError",
    "InvalidRequestError",
    "KronmemError",
    "NotFoundError",
    "OutboxFullError",
    "QuotaError",
    "RateLimitError",
    "ReplyError",
    "ServerError",
    "StatusError",
    "StoreError",
    "TransportError",
    "UnavailableError",
    "UnsupportedError",
]
