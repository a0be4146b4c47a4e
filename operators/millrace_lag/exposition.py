"""A snapshot as the text that Prometheus reads, fast enough for a hundred thousand series.

prometheus_client builds an object for each sample and sorts its labels each time; here the text of each set of labels
is made once and kept. Only gauges and counters: the observer has no histogram.
"""

import math
from collections.abc import Iterator, Mapping

from millrace.metrics import Labels, Metric, Snapshot, Value

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


class Renderer:
    """Remembers the text of labels between two renderings."""

    def __init__(self) -> None:
        self._known: dict[tuple[Labels, Labels], str] = {}

    def render(self, snapshot: Snapshot) -> bytes:
        """The whole snapshot. Labels that are gone are forgotten."""
        before, self._known = self._known, {}
        return "".join(
            line for metric, samples in snapshot.items() for line in self._metric(metric, samples, before)
        ).encode()

    def _metric(
        self, metric: Metric, samples: Mapping[Labels, Value], before: Mapping[tuple[Labels, Labels], str]
    ) -> Iterator[str]:
        if metric.kind == "histogram":
            raise TypeError(f"{metric.name} is a histogram, which this text does not hold")
        yield f"# HELP {metric.name} {metric.help}\n# TYPE {metric.name} {metric.kind}\n"
        names, name, known = metric.labels, metric.name, self._known
        for values, value in samples.items():
            key = (names, values)
            text = known.get(key) or before.get(key) or label_text(names, values)
            known[key] = text
            yield f"{name}{text} {number(value)}\n"


def label_text(names: Labels, values: Labels) -> str:
    """The labels in braces; nothing when there are none."""
    pairs = ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in zip(names, values, strict=True))
    return f"{{{pairs}}}" if pairs else ""


def number(value: Value) -> str:
    """A number as Prometheus writes it. Never NaN: a series that knows nothing is left out instead."""
    if not isinstance(value, int | float) or value != value:
        raise TypeError(f"a sample needs a number, not {value}")
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) else repr(value)
