"""Schemas are read without Spark, and refused with a sentence where Spark would refuse them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.resources import ddl
from millrace.resources.ddl import Column, DdlError

pytestmark = pytest.mark.unit

SIMPLE = ["string", "int", "bigint", "double", "boolean", "timestamp", "date", "binary", "decimal(10,2)"]
TYPES = st.recursive(
    st.sampled_from(SIMPLE),
    lambda inner: st.one_of(
        inner.map(lambda t: f"array<{t}>"),
        st.tuples(st.sampled_from(SIMPLE), inner).map(lambda t: f"map<{t[0]},{t[1]}>"),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda ts: "struct<" + ",".join(f"f{i}:{t}" for i, t in enumerate(ts)) + ">"
        ),
    ),
    max_leaves=6,
)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("user string, at timestamp", [("user", "string"), ("at", "timestamp")]),
        ("a LONG, b Integer NOT NULL, c real", [("a", "bigint"), ("b", "int"), ("c", "float")]),
        ("`my col` string COMMENT 'it''s, <odd>'", [("my col", "string")]),
        ("`a``b` string", [("a`b", "string")]),
        (
            "d decimal, e dec(12), f numeric(12, 3)",
            [("d", "decimal(10,0)"), ("e", "decimal(12,0)"), ("f", "decimal(12,3)")],
        ),
        ("tags array<string>, m map<string, array<int>>", [("tags", "array<string>"), ("m", "map<string,array<int>>")]),
        (
            "s struct<a: int, b string COMMENT 'x', c: struct<d: date>>",
            [("s", "struct<a:int,b:string,c:struct<d:date>>")],
        ),
        ("  a\n string ,\n b int\n", [("a", "string"), ("b", "int")]),
    ],
)
def test_schemas(text: str, columns: list[tuple[str, str]]) -> None:
    assert ddl.parse(text) == tuple(Column(name, kind) for name, kind in columns)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "ends where a column's name should stand"),
        ("user", "gives column 'user' no type; write for instance 'user string'"),
        ("user, at timestamp", "gives column 'user' no type"),
        ("user string at timestamp", "after a column comes a comma"),
        ("user string,", "ends where a column's name should stand"),
        ("user: string", "write the type right after the name"),
        ("user strng", "the unknown type 'strng'; did you mean 'string'?"),
        ("user varchar(10)", "the unknown type 'varchar'; known are array, bigint"),
        ("7 string", "a column starts with its name"),
        ("a string, A int", "names column 'A' twice"),
        ("d decimal(39)", "at most 38 digits"),
        ("d decimal(3,5)", "at most 38 digits"),
        ("d decimal(x)", "a number goes there"),
        ("a array<string", "does not parse at the end: '>' goes there"),
        ("a array string", "does not parse at 'string': '<' goes there"),
        ("m map<string>", "',' goes there"),
        ("a string NOT", "only NOT NULL is known"),
        ("a string COMMENT x", "the comment's text goes into quotes"),
        ("a string; b int", "does not parse at '; b int'"),
        ("a string COMMENT 'open", "does not parse at"),
    ],
)
def test_what_does_not_parse_is_a_sentence(text: str, says: str) -> None:
    with pytest.raises(DdlError) as refused:
        ddl.parse(text)
    assert says in str(refused.value)


@given(st.lists(TYPES, min_size=1, max_size=5))
def test_a_type_in_the_one_spelling_reads_as_itself(types: list[str]) -> None:
    text = ", ".join(f"c{i} {kind}" for i, kind in enumerate(types))
    assert [column.type for column in ddl.parse(text)] == types


@given(st.text(alphabet="ab `'<>(),:string int1\\\n", max_size=30))
def test_no_text_gives_anything_but_columns_or_a_sentence(text: str) -> None:
    try:
        assert all(column.name and column.type for column in ddl.parse(text))
    except DdlError as error:
        assert len(str(error)) > 10


@pytest.mark.parametrize(
    ("name", "hint"), [("URL", "did you mean 'url'?"), ("ulr", "did you mean 'url'?"), ("xyz", "it has user, url")]
)
def test_the_nearest_column_is_offered(name: str, hint: str) -> None:
    assert ddl.no_such_column(name, ["user", "url"]).endswith(hint)
