"""A ready `redact=`: API keys, card numbers and e-mail addresses leave before anything is stored. Pure."""

from __future__ import annotations

import re

# Prefixes that their makers gave them so that they can be found; then words that announce a secret.
_KEY = re.compile(
    r"""
    \b(?:sk|pk|rk|kv|fw|gsk|tvly|pplx|xai)-[A-Za-z0-9_-]{16,200}
    | \b(?:sk|pk|rk|whsec)_(?:live|test)?_?[A-Za-z0-9]{16,200}
    | \b(?:gh[pousr]_|github_pat_|glpat-|hf_|npm_|pypi-|dop_v1_|xox[abeoprs]-|SG\.)[A-Za-z0-9_.-]{16,300}
    | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b
    | \bAIza[A-Za-z0-9_-]{35}
    | \beyJ[A-Za-z0-9_-]{8,2000}\.[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{8,1000}
    | -----BEGIN\ [A-Z ]{0,30}PRIVATE\ KEY-----[A-Za-z0-9+/=\s\\n]{0,10000}(?:-----END\ [A-Z ]{0,30}PRIVATE\ KEY-----)?
    """,
    re.VERBOSE,
)
_ANNOUNCED = re.compile(
    r"\b((?:api[ _-]?key|secret(?:[ _-]?key)?|access[ _-]?token|auth[ _-]?token|token|password|passwd|pwd)"
    r"(?:\s{0,3}(?:[:=]|\bis\b)\s{0,3}|=)[\"'`]?|\bbearer\s{1,3})([^\s\"'`,;]{6,500})",
    re.IGNORECASE,
)
_CARD = re.compile(r"(?<![\d.])\d(?:[ -]?\d){12,18}(?![\d.]?\d)")
_EMAIL = re.compile(r"[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}\b")


def redact_secrets(text: str) -> str:
    """Replace API keys, card numbers (those with a valid checksum) and e-mail addresses by [key], [card], [email].

    Pass it as `Client(redact=redact_secrets)`. It finds secrets of a known shape; it cannot know every one.
    """
    text = _KEY.sub("[key]", text)
    text = _ANNOUNCED.sub(_hide_announced, text)
    text = _EMAIL.sub("[email]", text)
    return _CARD.sub(lambda match: "[card]" if _luhn(match[0]) else match[0], text)


def _hide_announced(match: re.Match[str]) -> str:
    # "the token is invalid" announces nothing: a secret has digits or signs in it.
    secret = match[2].rstrip(".!?)")
    if secret.isalpha() or secret == "[key]":
        return match[0]
    return f"{match[1]}[key]{match[2][len(secret) :]}"


def _luhn(number: str) -> bool:
    digits = [int(sign) for sign in number if sign.isdigit()][::-1]
    if len(set(digits)) < 2:
        return False
    doubled = (2 * digit - 9 * (digit > 4) for digit in digits[1::2])
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0
