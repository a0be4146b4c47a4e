"""Who the job is to the brokers, and whether that has changed: the folder of a Secret, looked at again and again.

A changed Secret is taken at a batch boundary: the query ends there and starts again as the new user, in the same
process. One that cannot be used is told of; the tasks, which read it themselves, then fail until it is put right.
"""

import logging
import time
from dataclasses import replace
from pathlib import Path

from millrace.errors import UserError
from millrace.kafka.refusals import refusal
from millrace.kafka.security import Security, read_security
from millrace_jobs.failures import Failure

LOOK_EVERY_SECONDS = 2.0  # six small files; Kubernetes itself takes up to a minute to bring a change to a pod
log = logging.getLogger(__name__)


class Login:
    """Without a folder the brokers ask nobody who he is, and nothing ever changes."""

    def __init__(self, bootstrap: str, folder: Path | None) -> None:
        self._bootstrap, self._folder = bootstrap, folder
        self.security: Security | None = read_security(folder) if folder is not None else None
        self.is_old = False
        """Whether the folder holds another one by now. Spark's thread reads it."""
        self._looked_at = time.monotonic()
        self._refused: str | None = None

    def java_settings(self) -> dict[str, str]:
        """For Spark's own clients: where the values lie, never the values."""
        if self.security is None or self._folder is None:
            return {}
        return self.security.java_settings(self._folder.absolute())

    def look(self) -> bool:
        """Whether it is time to become somebody else. Looks at the folder now and then."""
        if self._folder is not None and time.monotonic() - self._looked_at >= LOOK_EVERY_SECONDS:
            self._looked_at = time.monotonic()
            found = self._found(self._folder)
            if not self.is_old and found != self.security:
                log.info("the brokers' credentials have changed", extra={"event": "credentials-changed"})
                self.is_old = True
        return self.is_old

    def renew(self) -> bool:
        """Take what the folder holds now; whether that is another one."""
        if self._folder is None:
            return False
        before, self.security, self.is_old = self.security, self._found(self._folder), False
        if self.security != before:
            log.info("the brokers' new credentials are in use", extra={"event": "credentials-taken"})
        return self.security != before

    def blame(self, failure: Failure | None) -> Failure | None:
        """A client that is refused often says only that nobody answers; the broker itself says why."""
        if failure is None or failure.blame not in ("infrastructure", "unknown"):
            return failure
        why = refusal(self._bootstrap, self.security)
        if why is None:
            return failure
        message = f"The brokers at {self._bootstrap} do not let us in: {why}. Check the Secret of kafka.authSecret."
        return replace(failure, cause="BrokerRefused", message=message, blame="infrastructure")

    def _found(self, folder: Path) -> Security | None:
        """What the folder holds, or who we are where that cannot be used; said once."""
        try:
            found, self._refused = read_security(folder), None
        except UserError as error:
            if str(error) != self._refused:
                log.warning("the changed credentials cannot be used: %s", error, extra={"event": "credentials-refused"})
            self._refused = str(error)
            return self.security
        return found
