"""The client's side of a login by SASL: PLAIN, and SCRAM as RFC 5802 has it. Only messages; it opens no connection.

With SCRAM the password never leaves this process, and the broker must prove that it knows it too.
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Generator

from millrace.kafka.security import Security

MOST_ITERATIONS = 1_000_000  # a broker that asks for more wants to keep us busy
_HEADER = "n,,"  # no channel binding, no other identity

Conversation = Generator[bytes, bytes, None]
"""Yields what to send, is sent what was answered; ends when the login is done."""


class RefusedError(Exception):
    """The login went wrong. Says how; never holds the password."""


def conversation(login: Security) -> Conversation:
    return _plain(login) if login.mechanism == "PLAIN" else _scram(login, secrets.token_urlsafe(24))


def _plain(login: Security) -> Conversation:
    yield f"\0{login.username}\0{login.password}".encode()


def _scram(login: Security, nonce: str) -> Conversation:
    name = login.mechanism.removeprefix("SCRAM-").replace("-", "").lower()  # as hashlib calls it: sha512
    user = login.username.replace("=", "=3D").replace(",", "=2C")
    first = f"n={user},r={nonce}"
    asked = yield (_HEADER + first).encode()
    both, salt, iterations = _challenge(asked, nonce)
    salted = hashlib.pbkdf2_hmac(name, login.password.encode(), salt, iterations)
    last = f"c={_base64(_HEADER.encode())},r={both}"
    everything = f"{first},{asked.decode()},{last}".encode()
    verdict = yield f"{last},p={_proof(name, salted, everything)}".encode()
    key = hmac.digest(salted, b"Server Key", name)
    if not hmac.compare_digest(verdict, f"v={_base64(hmac.digest(key, everything, name))}".encode()):
        raise RefusedError("the broker does not know the password itself, so it may be another one than you think")


def _challenge(asked: bytes, nonce: str) -> tuple[str, bytes, int]:
    """Nonce of both sides, salt, iterations."""
    try:
        told = dict(part.split("=", 1) for part in asked.decode().split(","))
        both, salt, iterations = told["r"], base64.b64decode(told["s"], validate=True), int(told["i"])
    except (ValueError, KeyError):
        raise RefusedError("the broker's answer to the login is not SCRAM") from None
    if not both.startswith(nonce) or not 0 < iterations <= MOST_ITERATIONS:
        raise RefusedError("the broker's answer to the login is not SCRAM")
    return both, salt, iterations


def _proof(name: str, salted: bytes, everything: bytes) -> str:
    key = hmac.digest(salted, b"Client Key", name)
    signature = hmac.digest(hashlib.new(name, key).digest(), everything, name)
    return _base64(bytes(a ^ b for a, b in zip(key, signature, strict=True)))


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
