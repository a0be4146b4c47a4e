"""What becomes of events that come after their window could have closed, and of those that cannot be read."""

from typing import Literal

from millrace.resources.fields import Model, Rule, declared
from millrace.resources.types import Duration, PositiveDuration, TopicName


class Stragglers(Model):
    """How long windows wait for late events, and what happens to those that come later still."""

    delay: Duration = declared(
        "How long (duration, in event time) a window waits for late events before it closes.",
        change="restart",
        default="0s",
    )
    policy: Literal["drop", "aside", "correct"] = declared(
        "What happens to a straggler: drop counts it and leaves it out; aside also sends it to `topic`; correct "
        "publishes a corrected result for its window.",
        change="new-state",
        eased="neither version corrects",
        default="drop",
    )
    topic: TopicName | None = declared(
        "Topic that stragglers are sent to, with their original bytes. Only for policy aside.",
        change="restart",
        default=None,
    )
    allowed_lateness: PositiveDuration | None = declared(
        "How long (duration, in event time) after its window closed a straggler may still correct the result. "
        "Only for policy correct.",
        change="new-state",
        eased="it gets shorter",
        default=None,
    )
    idle_after: PositiveDuration = declared(
        "A partition that brought nothing for so long (duration, by the wall clock) stops holding windows open.",
        change="restart",
        default="1m",
    )

    rules = (
        Rule(
            at="topic",
            says="is missing: policy 'aside' needs the topic that stragglers are sent to, for instance pageviews-late",
            holds=lambda s: s.policy != "aside" or s.topic is not None,
            cel="self.policy != 'aside' || has(self.topic)",
        ),
        Rule(
            at="topic",
            says="belongs to policy 'aside' only; take it out, or set policy: aside",
            holds=lambda s: s.policy == "aside" or s.topic is None,
            cel="self.policy == 'aside' || !has(self.topic)",
        ),
        Rule(
            at="allowedLateness",
            says="is missing: policy 'correct' needs how long a straggler may still correct, for instance 10m",
            holds=lambda s: s.policy != "correct" or s.allowed_lateness is not None,
            cel="self.policy != 'correct' || has(self.allowedLateness)",
        ),
        Rule(
            at="allowedLateness",
            says="belongs to policy 'correct' only; take it out, or set policy: correct",
            holds=lambda s: s.policy == "correct" or s.allowed_lateness is None,
            cel="self.policy == 'correct' || !has(self.allowedLateness)",
        ),
    )


class Malformed(Model):
    """Where records go that cannot be read or come from the future."""

    topic: TopicName = declared(
        "Topic for records that cannot be read or come from the future, with the original bytes and the reason.",
        change="restart",
    )
