"""YAML as the API server's tools read it, with the place of every field and with each mistake as a sentence.

It knows nothing of resources. Times stay text, as they do on the way to the API server; a key that is given twice is
a mistake here, because otherwise one of the two would silently win.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from millrace.resources.fields import Problem

Path = tuple[str | int, ...]
Place = tuple[int, int]


@dataclass(frozen=True)
class Document:
    """What one YAML document holds, and where in the file it does."""

    data: Any
    places: dict[Path, Place] = field(default_factory=dict)
    mistakes: tuple[Problem, ...] = ()

    def place(self, path: Path) -> Place:
        """Line and column of a field; of the nearest one above it where the field itself is not there."""
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, (0, 0))


@dataclass(frozen=True)
class Parsed:
    """The documents of one text, and what kept the rest from being read."""

    documents: tuple[Document, ...]
    broken: tuple[str, ...] = ()


class _Loader(yaml.SafeLoader):
    """YAML without times and without numbers to the base of sixty, which nobody means."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - the base class declares it so
        first: [pair for pair in resolvers if pair[0] != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_yaml_int(self, node: yaml.ScalarNode) -> Any:
        return node.value if ":" in node.value else super().construct_yaml_int(node)

    def construct_yaml_float(self, node: yaml.ScalarNode) -> Any:
        return node.value if ":" in node.value else super().construct_yaml_float(node)


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_yaml_int)
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.construct_yaml_float)


def parse(text: str) -> Parsed:
    """Every document that is not empty; a syntax error ends the reading, one line says where."""
    found: list[Document] = []
    try:
        loader = _Loader(text)
        while loader.check_node():
            node = loader.get_node()
            document = _document(loader, node) if node is not None else Document(None)
            if document.data is not None:
                found.append(document)
    except yaml.YAMLError as error:
        return Parsed(tuple(found), (_sentence(error),))
    except RecursionError:
        return Parsed(tuple(found), ("is nested too deeply to be read",))
    return Parsed(tuple(found))


def without_nulls(data: Any) -> Any:
    """The same data without fields that say nothing, which count as absent."""
    if isinstance(data, dict):
        return {key: without_nulls(value) for key, value in data.items() if value is not None}
    return [without_nulls(item) for item in data] if isinstance(data, list) else data


def _document(loader: _Loader, node: yaml.Node) -> Document:
    places: dict[Path, Place] = {}
    mistakes: list[Problem] = []
    # before the data is made, because that joins merged keys into the nodes
    for path, key, first in _keys(node, ()):
        if first is None:
            places[path] = _place(key)
        else:
            lines = f"in line {first.start_mark.line + 1} and in line {key.start_mark.line + 1}"
            mistakes.append(Problem(path, f"is given twice, {lines}; keep one"))
    return Document(loader.construct_document(node), places, tuple(mistakes))


def _keys(node: yaml.Node, path: Path) -> Iterator[tuple[Path, yaml.Node, yaml.Node | None]]:
    """Every field and item with its path and node, and for a repeated key the first one of that name."""
    if isinstance(node, yaml.MappingNode):
        seen: dict[str, yaml.Node] = {}
        for key, value in node.value:
            below = (*path, str(key.value))
            yield below, key, seen.get(str(key.value))
            seen.setdefault(str(key.value), key)
            yield from _keys(value, below)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield (*path, index), item, None
            yield from _keys(item, (*path, index))


def _place(node: yaml.Node) -> Place:
    return node.start_mark.line, node.start_mark.column


def _sentence(error: yaml.YAMLError) -> str:
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return f"is not YAML: {' '.join(str(error).split())}"
    problem = (error.problem or "it cannot be read").replace("'\\t'", "a tab")
    hint = "; indent with spaces" if "a tab" in problem else ""
    return f"line {error.problem_mark.line + 1}: is not YAML: {problem}{hint}"
