"""Whether a job keeps its goals: lag, stragglers, topics, alerts. One condition each."""

from millrace_operator.desired.target import Target
from millrace_operator.streamjobs import alerting
from millrace_operator.streamjobs.conditions import Condition
from millrace_operator.streamjobs.state import Observed


def goals(observed: Observed, target: Target) -> list[Condition]:
    return [_lag(observed, target), _stragglers(observed, target), _topics(observed), alerting.condition(observed)]


def _lag(observed: Observed, target: Target) -> Condition:
    lag, goal = observed.lag, target.job.spec.slo.lag_seconds
    if lag is None:
        return Condition("LagHealthy", "Unknown", "NotObserved", "No lag observer has seen this job yet.")
    if goal is None:
        return Condition("LagHealthy", "True", "NoGoal", "The spec names no slo.lagSeconds.")
    if lag.seconds > goal:
        message = f"The oldest unread record is {lag.seconds:.0f} s old; the goal is {goal:g} s."
        return Condition("LagHealthy", "False", "Behind", message)
    return Condition("LagHealthy", "True", "WithinGoal", f"The goal is {goal:g} s.")


def _stragglers(observed: Observed, target: Target) -> Condition:
    goal = target.job.spec.slo.straggler_ratio
    ratio = observed.progress.late_ratio if observed.progress is not None else None
    if goal is None:
        return Condition("StragglersHealthy", "True", "NoGoal", "The spec names no slo.stragglerRatio.")
    if ratio is None:
        return Condition("StragglersHealthy", "Unknown", "NotObserved", "No events were judged yet.")
    if ratio > goal:
        message = f"{ratio:.1%} of the latest events were late; the goal is {goal:.1%}."
        return Condition("StragglersHealthy", "False", "TooManyLate", message)
    return Condition("StragglersHealthy", "True", "WithinGoal", f"The goal is {goal:.1%}.")


def _topics(observed: Observed) -> Condition:
    problems = observed.topic_problems
    if problems is None:
        return Condition("TopicsReady", "Unknown", "NotObserved", "The Kafka cluster was not asked yet.")
    if problems and not problems[0].topic:  # the cluster cannot be asked from here; the job itself may see it
        return Condition("TopicsReady", "Unknown", problems[0].reason, problems[0].message)
    if problems:
        more = f" ({len(problems) - 1} more)" if len(problems) > 1 else ""
        return Condition("TopicsReady", "False", problems[0].reason, problems[0].message + more)
    return Condition("TopicsReady", "True", "AllThere", "Every topic that the job reads or writes is there.")
