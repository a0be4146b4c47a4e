"""A small, careful reader of Spark's schema language: top-level columns and their types, with no JVM.

It refuses what Spark would refuse, with a sentence; it does not turn a schema into Spark types.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from difflib import get_close_matches

_TOKEN = re.compile(
    r"\s*(?:(?P<quoted>`(?:[^`]|``)+`)|(?P<text>'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\")|(?P<word>\w+)|(?P<mark>[<>(),:]))"
)
_SAME_TYPE = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "dec": "decimal",
    "numeric": "decimal",
    "timestamp_ltz": "timestamp",
}
_SIMPLE = frozenset(
    [
        "boolean",
        "tinyint",
        "smallint",
        "int",
        "bigint",
        "float",
        "double",
        "decimal",
        "string",
        "binary",
        "date",
        "timestamp",
        "timestamp_ntz",
    ]
)
_KNOWN = sorted(_SIMPLE | {"array", "map", "struct"})


class DdlError(ValueError):
    """The schema does not parse; the text says where and what would be right."""


@dataclass(frozen=True)
class Column:
    name: str
    type: str
    """The type in one spelling: lower case, 'bigint' for long, nested types written out."""


def parse(text: str) -> tuple[Column, ...]:
    """Read 'user string, at timestamp, tags array<string>'."""
    columns = _Reader(text).columns()
    seen: set[str] = set()
    for column in columns:
        # Spark finds columns without regard to case, so two that differ in case alone would be ambiguous
        if column.name.lower() in seen:
            raise DdlError(f"names column {column.name!r} twice; each column needs a name of its own")
        seen.add(column.name.lower())
    return columns


def no_such_column(name: str, columns: Collection[str]) -> str:
    """The sentence for a column that the schema lacks, with the nearest one that it has."""
    return f"names column {name!r}, which its input does not have; {nearest(name, columns, 'it has')}"


def nearest(name: str, choices: Collection[str], otherwise: str) -> str:
    """A hint for somebody who wrote a name that does not exist: the nearest that does, or all of them."""
    lower = {choice.lower(): choice for choice in choices}
    near = [lower[match] for match in get_close_matches(name.lower(), lower, n=1)]
    return f"did you mean {near[0]!r}?" if near else f"{otherwise} {', '.join(choices)}"


class _Reader:
    """Reads tokens from left to right; one instance per schema."""

    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._at = 0

    def columns(self) -> tuple[Column, ...]:
        columns = [self._column()]
        while self._take(","):
            columns.append(self._column())
        if self._peek():
            raise DdlError(
                f"does not parse at {self._peek()!r}: after a column comes a comma, as in 'user string, at timestamp'"
            )
        return tuple(columns)

    def _column(self) -> Column:
        name = self._name()
        if self._peek() == ":":
            raise DdlError(f"does not parse at ':': write the type right after the name, as in '{name} string'")
        column = Column(name, self._type(name))
        self._options()
        return column

    def _options(self) -> None:
        if self._take("not") and not self._take("null"):
            raise DdlError("does not parse after 'NOT': only NOT NULL is known")
        if self._take("comment") and self._next()[:1] not in ("'", '"'):
            raise DdlError("does not parse after 'COMMENT': the comment's text goes into quotes")

    def _name(self) -> str:
        token = self._next()
        if token.startswith("`"):
            return token[1:-1].replace("``", "`")
        if not re.fullmatch(r"\w+", token) or token.isdigit():
            raise DdlError(
                f"does not parse at {token!r}: a column starts with its name"
                if token
                else "ends where a column's name should stand"
            )
        return token

    def _type(self, column: str) -> str:
        written = self._next()
        if not written or written == ",":
            raise DdlError(f"gives column {column!r} no type; write for instance '{column} string'")
        kind = _SAME_TYPE.get(written.lower(), written.lower())
        if kind in ("array", "map", "struct"):
            return self._nested(kind, column)
        if kind not in _SIMPLE:
            hint = nearest(kind, _KNOWN, "known are")
            raise DdlError(f"gives column {column!r} the unknown type {written!r}; {hint}")
        return self._decimal(column) if kind == "decimal" else kind

    def _decimal(self, column: str) -> str:
        if not self._take("("):
            return "decimal(10,0)"
        precision = self._number(column)
        scale = self._number(column) if self._take(",") else 0
        self._expect(")", column)
        if not 1 <= precision <= 38 or scale > precision:
            raise DdlError(
                f"gives column {column!r} decimal({precision},{scale}); at most 38 digits, "
                "and no more of them after the point than in all"
            )
        return f"decimal({precision},{scale})"

    def _nested(self, kind: str, column: str) -> str:
        self._expect("<", column)
        if kind == "array":
            inner = self._type(column)
        elif kind == "map":
            key = self._type(column)
            self._expect(",", column)
            inner = f"{key},{self._type(column)}"
        else:
            inner = self._fields(column)
        self._expect(">", column)
        return f"{kind}<{inner}>"

    def _fields(self, column: str) -> str:
        fields = []
        while True:
            name = self._name()
            self._take(":")
            fields.append(f"{name}:{self._type(f'{column}.{name}')}")
            self._options()
            if not self._take(","):
                return ",".join(fields)

    def _number(self, column: str) -> int:
        token = self._next()
        if not token.isdigit():
            raise DdlError(f"gives column {column!r} a type that does not parse at {token!r}: a number goes there")
        return int(token)

    def _expect(self, mark: str, column: str) -> None:
        token = self._next()
        if token != mark:
            found = repr(token) if token else "the end"
            raise DdlError(f"gives column {column!r} a type that does not parse at {found}: {mark!r} goes there")

    def _take(self, word: str) -> bool:
        found = self._peek().lower() == word
        self._at += found
        return found

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        self._at += 1
        return token


def _tokens(text: str) -> Iterator[str]:
    at, text = 0, text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise DdlError(
                f"does not parse at {text[at:].strip()[:12]!r}: write columns as 'user string, at timestamp'"
            )
        yield match.group().strip()
        at = match.end()
