"""Why a protected cluster does not answer: asked over a connection of our own, because clients do not say it.

Called when something has failed already; it costs one connection.
"""

import struct
import time

from millrace.kafka.security import Security
from millrace.kafka.wire import Address, LoginError, Wire

DEADLINE_SECONDS = 5.0


def refusal(bootstrap: str, security: Security | None, seconds: float = DEADLINE_SECONDS) -> str | None:
    """What a broker has against us, as a clause; None when that is not why. The first that answers decides."""
    if security is None:
        return None
    wire, deadline = Wire(security), time.monotonic() + seconds
    try:
        for address in _addresses(bootstrap):
            try:
                wire.connect(address, deadline)
            except LoginError as error:
                return str(error)
            except (OSError, struct.error):
                continue
            return None
    finally:
        wire.close()
    return None


def _addresses(bootstrap: str) -> list[Address]:
    parts = (one.strip().rpartition(":") for one in bootstrap.split(","))
    return [(host.strip("[]"), int(port)) for host, _, port in parts if port.isdigit()]
