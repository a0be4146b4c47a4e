"""The scalar types of resource fields: durations, sizes, names. Each says in a sentence what would be right.

They give the CRD's schema of themselves too, so that the API server and Python refuse the same texts.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainSerializer,
    WithJsonSchema,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from millrace import units

BAD_TEXT = "bad_text"
_LONGEST_FOR_RULES = 2048
"""Beyond so many characters a rule costs more than the API server allows; those texts get a plain pattern."""
INSTANT_PATTERN = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})$"


def refuse(sentence: str) -> PydanticCustomError:
    return PydanticCustomError(BAD_TEXT, "{sentence}", {"sentence": sentence})


def _reader(parse: Callable[[Any], Any], parsed: type | tuple[type, ...]) -> BeforeValidator:
    """Parse what was written and pass on what was parsed before; the parser's own sentence answers everything else."""

    def read(value: Any) -> Any:
        # True is an int for Python, but nobody who writes `true` means 1 byte
        if isinstance(value, parsed) and not isinstance(value, bool):
            return value
        try:
            return parse(str(value))
        except ValueError as error:
            raise refuse(str(error)) from None

    return BeforeValidator(read)


def _positive_duration(value: timedelta) -> timedelta:
    if value <= timedelta():
        raise refuse("must be longer than zero, for instance 1m")
    return value


def _cores(value: Any) -> Decimal:
    if isinstance(value, Decimal):
        return value
    try:
        return units.parse_cpu(value if not isinstance(value, bool | float) else repr(value) + " (without quotes)")
    except ValueError as error:
        raise refuse(str(error)) from None


def parse_start(text: Any) -> Any:
    """Read where a source starts: 'earliest', 'latest', or an instant with its offset from UTC."""
    if isinstance(text, datetime) or text in ("earliest", "latest"):
        return text
    try:
        if not re.match(INSTANT_PATTERN, str(text)):
            raise ValueError
        return datetime.fromisoformat(str(text)).astimezone(UTC)
    except ValueError:
        raise refuse(
            f"{text!r} is not a start: write earliest, latest or a time such as 2026-01-31T08:00:00Z"
        ) from None


def format_start(start: Literal["earliest", "latest"] | datetime) -> str:
    return start.isoformat().replace("+00:00", "Z") if isinstance(start, datetime) else start


def _matches(pattern: str, says: str) -> dict[str, str]:
    """A rule for the API server: a schema's own pattern would show the person the pattern and no sentence."""
    # \Z is Python's; RE2 means the same by $, which in Python would let a line break through
    return {"rule": f"self.matches(r'{pattern.replace(chr(92) + 'Z', '$')}')", "message": says}


def _quantity(pattern: str, longest: int, says: str) -> dict[str, Any]:
    """A number or a text with a unit, larger than zero."""
    fits = {"rule": f"type(self) == int || self.matches(r'{pattern}')", "message": says}
    some = {"rule": "type(self) == int ? self > 0 : self.matches('[1-9]')", "message": "must be greater than 0"}
    return {"x-kubernetes-int-or-string": True, "maxLength": longest, "x-kubernetes-validations": [fits, some]}


_IS_DURATION = _matches(
    units.DURATION_PATTERN,
    "is not a duration: write a number and its unit (d, h, m, s, ms), for instance 30s or 1h30m",
)
_DURATION_SCHEMA: dict[str, Any] = {
    "type": "string",
    "minLength": 2,
    "maxLength": 48,
    "x-kubernetes-validations": [_IS_DURATION],
}
_LONGER_THAN_ZERO = {"rule": "self.matches('[1-9]')", "message": "must be longer than zero, for instance 1m"}

Duration = Annotated[
    timedelta,
    _reader(units.parse_duration, timedelta),
    PlainSerializer(units.format_duration, return_type=str),
    WithJsonSchema(_DURATION_SCHEMA),
]
PositiveDuration = Annotated[
    timedelta,
    _reader(units.parse_duration, timedelta),
    AfterValidator(_positive_duration),
    PlainSerializer(units.format_duration, return_type=str),
    WithJsonSchema({**_DURATION_SCHEMA, "x-kubernetes-validations": [_IS_DURATION, _LONGER_THAN_ZERO]}),
]
ByteSize = Annotated[
    int,
    _reader(units.parse_bytes, int),
    Field(gt=0),
    PlainSerializer(units.format_bytes, return_type=str),
    WithJsonSchema(
        _quantity(units.BYTES_PATTERN, 28, "is not a size: write a number and its unit (Ki, Mi, Gi), for instance 10Gi")
    ),
]
Cpu = Annotated[
    Decimal,
    BeforeValidator(_cores),
    Field(gt=0),
    PlainSerializer(units.format_cpu, return_type=str),
    WithJsonSchema(
        _quantity(
            units.CPU_PATTERN,
            12,
            "is not an amount of CPU: write cores or thousandths of a core, for instance '2' or 500m",
        )
    ),
]
StartFrom = Annotated[
    Literal["earliest", "latest"] | datetime,
    BeforeValidator(parse_start),
    PlainSerializer(format_start, return_type=str),
    WithJsonSchema(
        {
            "type": "string",
            "maxLength": 40,
            "x-kubernetes-validations": [
                _matches(
                    f"^(earliest|latest)$|{INSTANT_PATTERN}",
                    "is not a start: write earliest, latest or a time such as 2026-01-31T08:00:00Z",
                )
            ],
        }
    ),
]


@dataclass(frozen=True)
class Text:
    """Marks a string that must look a certain way, with the sentence for one that does not."""

    pattern: str
    longest: int
    says: str

    def objection(self, value: str) -> str | None:
        """The sentence for a text that does not look so; None for one that does."""
        if not value:
            return "must not be empty: '' " + self.says
        return None if len(value) <= self.longest and re.match(self.pattern, value) else f"{value!r} {self.says}"

    def check(self, value: str) -> str:
        if says := self.objection(value):
            raise refuse(says)
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        bounds = {"minLength": 1, "maxLength": self.longest}
        if self.longest > _LONGEST_FOR_RULES:
            return {**handler(core), **bounds, "pattern": self.pattern.replace(r"\Z", "$")}
        return {**handler(core), **bounds, "x-kubernetes-validations": [_matches(self.pattern, self.says)]}


JOB_NAME = Text(
    r"^[a-z]([-a-z0-9]*[a-z0-9])?\Z",
    45,
    "is not a name for a job: at most 45 lower-case letters, digits and '-', first a letter, last a letter or digit",
)
"""A job's name becomes the name of a service, which starts with a letter, and of a StatefulSet with '-driver', whose
pods carry a label of the name and eleven more characters: 63 is the most for a label."""

Namespace = Annotated[
    str,
    Text(
        r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z",
        63,
        "is not a namespace: at most 63 lower-case letters, digits and '-', with a letter or digit at both ends",
    ),
]

DnsName = Annotated[
    str,
    Text(
        r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?\Z",
        253,
        "is not a Kubernetes name: only lower-case letters, digits, '-' and '.', with a letter or digit at both ends",
    ),
]
StepName = Annotated[
    str,
    Text(
        r"^[A-Za-z_][A-Za-z0-9_]*\Z",
        63,
        "is not a name for a source or step: SQL must be able to say it, so only letters, digits and '_', no digit "
        "first",
    ),
]
TopicName = Annotated[
    str,
    Text(
        r"^[a-zA-Z0-9._-]+\Z", 249, "is not a topic name: only letters, digits, '.', '_' and '-', at most 249 of them"
    ),
]
ColumnName = Annotated[
    str, Text(r"^[^`\n]+\Z", 128, "is not a column name: at most 128 characters, no backquote, no line break")
]
AggregateName = Annotated[
    str, Text(r"^[A-Za-z_][A-Za-z0-9_]*\Z", 128, "is not a column name: only letters, digits and '_', no digit first")
]
Expression = Annotated[str, Text(r"^(?s:.*\S.*)\Z", 4096, "is not an expression: write one of at most 4096 characters")]
Query = Annotated[str, Text(r"^(?s:.*\S.*)\Z", 32768, "is not a query: write one of at most 32768 characters")]
Ddl = Annotated[str, Text(r"^(?s:.*\S.*)\Z", 32768, "is not a schema: write columns as 'user string, at timestamp'")]
FunctionName = Annotated[
    str,
    Text(
        r"^[A-Za-z_][A-Za-z0-9_]*([.][A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_]*\Z",
        255,
        "does not name a function: write module:function, for instance shop.views:transform",
    ),
]
TableName = Annotated[
    str,
    Text(
        r"^([A-Za-z_][A-Za-z0-9_]*[.])?[A-Za-z_][A-Za-z0-9_]*\Z",
        127,
        "is not a table: write table or schema.table, of letters, digits and '_'",
    ),
]
ServerList = Annotated[
    str,
    Text(
        r"^[A-Za-z0-9._-]+:[0-9]{1,5}(,[A-Za-z0-9._-]+:[0-9]{1,5})*\Z",
        2048,
        "does not name brokers: write host:port, several separated by commas, for instance kafka:9092",
    ),
]
Uri = Annotated[
    str,
    Text(r"^[a-z][a-z0-9+.-]*:/[^\s]+\Z", 1024, "is not a folder's address: write for instance s3a://bucket/folder"),
]
ImageName = Annotated[
    str, Text(r"^[a-zA-Z0-9][a-zA-Z0-9._/:@-]*\Z", 512, "is not an image: write for instance shop/jobs:1.4")
]
