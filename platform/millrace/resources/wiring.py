"""Rules between the parts of a job: names, inputs, columns and topics that must fit together.

What can be known without Spark is judged here; what only Spark can know (the columns of a query) is left to the run.
Parts that are wrong in themselves are passed over: they have their own mistakes, and nothing is said twice.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from millrace.resources import ddl, graph
from millrace.resources.fields import Model, Problem, UnknownValueError, judged
from millrace.resources.sinks import Sink
from millrace.resources.steps import CORRECTION_COLUMNS, Step

if TYPE_CHECKING:
    from millrace.resources.jobs import StreamJobSpec

Part = TypeVar("Part", bound=Model)
Value = TypeVar("Value")
Path = tuple[str | int, ...]


def problems(spec: "StreamJobSpec") -> Iterator[Problem]:
    """Every way in which the parts do not fit together."""
    rules = (_names, _inputs, _loose_ends, _topics, _sinks, _event_times, _group_columns, _key_columns, _corrections)
    return chain.from_iterable(judged(rule(spec)) for rule in rules)


def known(parts: Iterable[Part], value: Callable[[Part], Value]) -> Iterator[tuple[int, Part, Value]]:
    """Number, part and value, of those parts whose value can be told."""
    for index, part in enumerate(parts):
        try:
            yield index, part, value(part)
        except UnknownValueError:
            continue


def _names(spec: "StreamJobSpec") -> Iterator[Problem]:
    """One name, one thing: SQL would otherwise silently take one of the two."""
    named: list[tuple[Path, str | None]] = [
        (("sources", i, "name"), name) for i, _, name in known(spec.sources, lambda s: s.name)
    ]
    named += [(("transform", i, "name"), name) for i, _, name in known(spec.transform, lambda s: s.name)]
    seen: dict[str, Path] = {}
    for path, name in named:
        if name is None:
            continue
        if name.lower() == graph.INPUT:
            yield Problem(path, f"must not be {name!r}: a sql step calls its own input so; choose another name")
        elif name.lower() in seen:
            yield Problem(
                path, f"is {name!r} again, as {_where(seen[name.lower()])} is; give each source and step its own name"
            )
        seen.setdefault(name.lower(), path)


def _inputs(spec: "StreamJobSpec") -> Iterator[Problem]:
    for index, step, wanted in known(spec.transform, lambda s: s.input):
        visible = graph.visible(spec, index)
        if wanted is None:
            yield from judged(_default_input(spec, index, step))
        elif wanted not in visible:
            yield Problem(("transform", index, "input"), _no_such_input(spec, index, wanted, visible))


def _default_input(spec: "StreamJobSpec", index: int, step: Step) -> Iterator[Problem]:
    needed = step.sql is None or graph.INPUT in graph.tables(step.sql)
    if index == 0 and len(spec.sources) > 1 and needed:
        names = ", ".join(graph.visible(spec, 0))
        yield Problem(("transform", 0, "input"), f"is missing: there are several sources; name one of {names}")


def _no_such_input(spec: "StreamJobSpec", index: int, wanted: str, visible: list[str]) -> str:
    later = [name for _, _, name in known(spec.transform[index:], lambda s: s.name)]
    if wanted in later:
        return f"names {wanted!r}, which is not before this step; move the step, or name one of {', '.join(visible)}"
    return f"names {wanted!r}, but there is no such source or earlier step; {ddl.nearest(wanted, visible, 'there is')}"


def _loose_ends(spec: "StreamJobSpec") -> Iterator[Problem]:
    """A source or step that nothing takes is a slip: its events would be read, held against the watermark, and lost."""
    if not spec.transform:
        if len(spec.sources) > 1:
            says = "is missing: with several sources a step must say how they come together, for instance a sql step"
            yield Problem(("transform",), says)
        return
    used = graph.used(spec)
    for index, _, name in known(spec.sources, lambda s: s.name):
        if name not in used:
            yield Problem(("sources", index), f"is used by no step; name {name!r} as a step's input or take it out")
    for index in graph.unused_steps(spec):
        yield Problem(("transform", index), "has a result that no later step takes; name it as an input or take it out")


def _topics(spec: "StreamJobSpec") -> Iterator[Problem]:
    """Each topic has one part to play in a job."""
    seen: dict[str, Path] = {}
    for index, _, topic in known(spec.sources, lambda s: s.topic):
        path: Path = ("sources", index, "topic")
        if topic in seen:
            says = (
                f"is {topic!r} again, which {_where(seen[topic])} reads already; read it once, and use it in both steps"
            )
            yield Problem(path, says)
        seen.setdefault(topic, path)
    for path, topic in _written(spec):
        if seen.get(topic, ("",))[0] == "sources":
            says = f"must not be {topic!r}, which the job reads: it would read its own output; name another topic"
            yield Problem(path, says)
        elif topic in seen:
            says = f"must not be {topic!r}: {_where(seen[topic])} writes to it already; name another topic"
            yield Problem(path, says)
        seen.setdefault(topic, path)


def _written(spec: "StreamJobSpec") -> Iterator[tuple[Path, str]]:
    """Every topic that the job writes, with the field that names it."""
    for index, _, topic in known(spec.sinks, lambda s: s.topic):
        if topic is not None:
            yield ("sinks", index, "topic"), topic
    for _, _, malformed in known([spec], lambda s: s.malformed.topic if s.malformed is not None else None):
        if malformed is not None:
            yield ("malformed", "topic"), malformed
    for _, _, aside in known([spec], lambda s: s.stragglers.topic):
        if aside is not None:
            yield ("stragglers", "topic"), aside


def _sinks(spec: "StreamJobSpec") -> Iterator[Problem]:
    tables: dict[tuple[str, str], Path] = {}
    for index, _, at in known(spec.sinks, _table):
        if at is None:
            continue
        path: Path = ("sinks", index, "postgres", "table")
        if at in tables:
            says = f"must not be {at[1]!r}: {_where(tables[at])} writes to it already; name another table"
            yield Problem(path, says)
        tables.setdefault(at, path)


def _table(sink: Sink) -> tuple[str, str] | None:
    return (sink.postgres.secret.name, sink.postgres.table) if sink.postgres is not None else None


def _event_times(spec: "StreamJobSpec") -> Iterator[Problem]:
    """A window needs to know when each event that reaches it happened."""
    at = graph.window_index(spec)
    feeding = graph.feeding(spec, at) if at is not None else set()
    for index, source, name in known(spec.sources, lambda s: s.name):
        without = any(event_time is None for _, _, event_time in known([source], lambda s: s.event_time))
        if without and (name in feeding or len(spec.sources) == 1) and at is not None:
            says = (
                "is missing, and a window needs it: say which column tells when an event happened, "
                "for instance eventTime: {column: occurred_at}"
            )
            yield Problem(("sources", index, "eventTime"), says)


def _group_columns(spec: "StreamJobSpec") -> Iterator[Problem]:
    at = graph.window_index(spec)
    window = spec.transform[at].window if at is not None else None
    columns = graph.input_columns(spec, at) if at is not None else None
    if window is None or columns is None:
        return
    for index, column in enumerate(window.by):
        if column not in columns:
            yield Problem(("transform", at or 0, "window", "by", index), ddl.no_such_column(column, columns))


def _key_columns(spec: "StreamJobSpec") -> Iterator[Problem]:
    columns = graph.result_columns(spec)
    for index, sink, keys in known(spec.sinks, lambda s: s.key_columns):
        path: Path = ("sinks", index, *(("postgres",) if sink.postgres is not None else ()), "key")
        for number, column in enumerate(keys):
            if column in keys[:number]:
                yield Problem((*path, number), f"names column {column!r} again; take it out")
            elif columns is not None and column not in columns:
                yield Problem((*path, number), ddl.no_such_column(column, columns))


def _corrections(spec: "StreamJobSpec") -> Iterator[Problem]:
    """A correction replaces a result by its key, so the key must tell every result from every other."""
    at = graph.window_index(spec)
    if at is None:
        if spec.stragglers.policy != "drop":
            says = f"is {spec.stragglers.policy!r}, but without a window step no event is late; take it out"
            yield Problem(("stragglers", "policy"), says)
        return
    window = spec.transform[at].window
    if spec.stragglers.policy != "correct" or window is None:
        return
    last = at == len(spec.transform) - 1
    if window.type == "session" and not last:
        says = (
            "must be the last step: with policy 'correct' a session may be withdrawn, and later steps cannot follow it"
        )
        yield Problem(("transform", at, "window"), says)
    if last:
        yield from _whole_keys(spec, window.by)


def _whole_keys(spec: "StreamJobSpec", by: tuple[str, ...]) -> Iterator[Problem]:
    for index, sink, keys in known(spec.sinks, lambda s: s.key_columns):
        path: Path = ("sinks", index, *(("postgres",) if sink.postgres is not None else ()), "key")
        missing = [column for column in by if column not in keys]
        if not {"window_start", "window_end"} & set(keys):
            missing.insert(0, "window_start")
        if missing:
            says = f"lacks {', '.join(missing)}: with policy 'correct' a newer result replaces the one of the same key"
            yield Problem(path, says)
        for column in set(keys) & set(CORRECTION_COLUMNS):
            yield Problem(path, f"must not have {column!r}, which differs between a result and its correction")


def _where(path: Path) -> str:
    """A path as people write it: sources[0].name."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")
