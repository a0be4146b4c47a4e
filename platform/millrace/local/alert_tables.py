"""What alerts look like: the live panel, plain lines as they come and go, and the summary. No Alertmanager here."""

from collections.abc import Sequence
from datetime import datetime

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from millrace.local.alerts import Episode
from millrace.local.tables import seconds, titled

STYLES = {"critical": "bold red", "warning": "yellow"}


def panel(episodes: Sequence[Episode]) -> RenderableType:
    """What fires now: name, job and since on one line; the summary and the runbook's path below."""
    firing = [one for one in episodes if one.resolved is None]
    if not firing:
        return Text("Alerts: none fires", "dim")
    return Group(Text(f"Alerts: {len(firing)} firing", "bold"), *(_entry(one) for one in firing))


def started(episode: Episode) -> str:
    """One line for where there is no terminal to draw on."""
    about = f" for {episode.job}" if episode.job else ""
    return f"{clock(episode.since)} alert {episode.name} fires{about}: {episode.summary} Runbook: {episode.runbook}"


def ended(episode: Episode) -> str:
    about = f" for {episode.job}" if episode.job else ""
    return f"{clock(episode.resolved)} alert {episode.name} resolved{about}, after {_length(episode)}"


def summary(episodes: Sequence[Episode]) -> RenderableType:
    """Every alert once; one that came and went has its first and its last time, and how often it fired."""
    if not episodes:
        return Text("No alert fired.")
    table = titled("Alerts that fired", ("alert", "job", "fired", "resolved"), ("times", "firing for"))
    told: dict[tuple[str, str], list[Episode]] = {}
    for one in episodes:
        told.setdefault((one.name, one.job), []).append(one)
    for (name, job), group in told.items():
        _add(table, name, job, group)
    return table


def clock(moment: datetime | None) -> str:
    """The time of day on this machine."""
    return "" if moment is None else f"{moment.astimezone():%H:%M:%S}"


def _entry(episode: Episode) -> Text:
    first = Text(episode.name, STYLES.get(episode.severity, ""))
    first.append(f"  {episode.job}  since {clock(episode.since)}\n", "default")
    return first.append(f"  {episode.summary} {episode.runbook}", "dim")


def _add(table: Table, name: str, job: str, group: Sequence[Episode]) -> None:
    still = any(one.resolved is None for one in group)
    total = sum((one.resolved - one.since).total_seconds() for one in group if one.resolved)
    last = max((one.resolved for one in group if one.resolved), default=None)
    table.add_row(
        name,
        job,
        clock(min(one.since for one in group)),
        "[yellow]still fires[/]" if still else f"[green]{clock(last)}[/]",
        str(len(group)),
        "" if still else seconds(total),
    )


def _length(episode: Episode) -> str:
    return "" if episode.resolved is None else seconds((episode.resolved - episode.since).total_seconds())
