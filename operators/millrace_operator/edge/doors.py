"""Who may post alerts: whoever has the token. It is compared in constant time and never logged."""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field

from millrace_operator.settings import AlertsDoor

CLOSED = (
    "This operator takes no alerts: start it with --alerts-token-file, or with --alerts-without-token where nobody "
    "else can reach this port."
)
WRONG = "The bearer token is missing or wrong: Alertmanager's http_config.authorization must hold the operator's own."
UNREADABLE = "The operator cannot read its token file, or it is empty; the file must hold the token."


@dataclass(frozen=True)
class Objection:
    """Why a request is not let in. After a 5xx Alertmanager tries again, after a 4xx it does not."""

    status: int
    sentence: str
    headers: Mapping[str, str] = field(default_factory=dict)


class Door:
    def __init__(self, settings: AlertsDoor) -> None:
        self._settings = settings

    def objection(self, authorization: str) -> Objection | None:
        if self._settings.token_file is None:
            return None if self._settings.open else Objection(403, CLOSED)
        token = self._token()
        if not token:
            return Objection(503, UNREADABLE)
        scheme, _, given = authorization.partition(" ")
        same = hmac.compare_digest(given.strip().encode(), token)  # always done, so that time tells nothing
        if not (same and scheme.lower() == "bearer"):
            return Objection(401, WRONG, {"WWW-Authenticate": "Bearer"})
        return None

    def _token(self) -> bytes:
        try:
            return self._settings.token_file.read_bytes().strip() if self._settings.token_file else b""
        except OSError:
            return b""
