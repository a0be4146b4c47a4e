"""Why a run ended: whose fault it is, whether trying again can help, and a cause that alerts and conditions name."""

import re
from dataclasses import dataclass
from typing import Literal

from millrace.errors import UserError
from millrace_jobs.checkpoints import CheckpointError
from millrace_jobs.sinks.kafka import SinkFailedError
from millrace_jobs.steps import UserCodeError

Blame = Literal["infrastructure", "spec", "user-code", "unknown"]


@dataclass(frozen=True)
class Failure:
    """One failure, told."""

    cause: str
    message: str
    blame: Blame

    @property
    def exit_code(self) -> int:
        return {"infrastructure": 1, "unknown": 1, "spec": 2, "user-code": 3}[self.blame]


def _any(*words: str) -> str:
    return f"(.*(?:{'|'.join(words)}).*)"


# What the engine and its clients say, from the most telling on. The text may be deep inside a chain of causes.
_SIGNS: tuple[tuple[str, str, Blame], ...] = (
    (r"SinkFailedError: (.+)", "SinkUnavailable", "infrastructure"),
    (r"UserCodeError: (.+)", "UserCodeRaised", "user-code"),
    (_any(r"\[USER_RAISED_EXCEPTION\]"), "UserCodeRaised", "user-code"),
    (_any("UnknownTopicOrPartition", "does not host this topic-partition"), "TopicMissing", "infrastructure"),
    (
        _any("SaslAuthentication", "SslAuthentication", "AuthorizationException", "_AUTHENTICATION"),
        "BrokerRefused",
        "infrastructure",
    ),
    (
        _any(
            "TimeoutException",
            "DisconnectException",
            "BrokerNotAvailable",
            "_ALL_BROKERS_DOWN",
            "_TRANSPORT",
            "new KafkaAdminClient",
        ),
        "BrokerUnreachable",
        "infrastructure",
    ),
    (_any("No space left on device", "Read-only file system", "Input/output"), "CheckpointFailing", "infrastructure"),
    (_any("ConcurrentModificationException", "concurrently using"), "CheckpointInUse", "spec"),
    (_any("ExecutorLost", "SparkContext was shut down"), "ExecutorsLost", "infrastructure"),
)


def explain(error: BaseException) -> Failure:
    """The failure behind an exception."""
    if isinstance(error, UserCodeError):
        return Failure("UserCodeRaised", str(error), "user-code")
    if isinstance(error, CheckpointError):
        return Failure("CheckpointMisfit", str(error), "spec")
    if isinstance(error, UserError):
        return Failure("SpecRefused", str(error), "spec")
    if isinstance(error, SinkFailedError):
        return Failure("SinkUnavailable", str(error), "infrastructure")
    if isinstance(error, OSError):
        return Failure("CheckpointFailing", f"{type(error).__name__}: {error}", "infrastructure")
    text = f"{type(error).__name__}: {error}"
    for sign, cause, blame in _SIGNS:
        found = re.search(sign, text)
        if found:
            return Failure(cause, found.group(1).strip()[:500], blame)
    return Failure("Unknown", _last_words(text), "unknown")


def _last_words(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return (lines[0] if lines else "no message")[:500]
