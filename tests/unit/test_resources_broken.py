"""Every mistake has one line, at the right field, with a sentence that says what would be right."""

from collections.abc import Iterator

import pytest

from millrace.resources import SpecError, StreamJobSpec, TopicSpec, parse_object
from millrace.resources.checking import model_in, models_in
from millrace.resources.fields import Model
from tests.unit.specs.broken import BROKEN, BROKEN_RULES, Broken
from tests.unit.specs.builders import JOB, TOPIC

pytestmark = pytest.mark.unit


def lines(case: Broken) -> tuple[str, ...]:
    with pytest.raises(SpecError) as refused:
        parse_object(case.document)
    return refused.value.lines


@pytest.mark.parametrize("good", [JOB, TOPIC], ids=["job", "topic"])
def test_what_the_table_starts_from_is_right(good: dict[str, object]) -> None:
    assert parse_object(good).metadata.namespace == "shop"


@pytest.mark.parametrize("case", BROKEN, ids=str)
def test_one_mistake_is_one_line_at_its_field(case: Broken) -> None:
    (line,) = lines(case)
    _title, path, sentence = line.split(": ", 2)
    assert path == case.path
    assert case.says in sentence


def test_every_rule_of_every_model_is_in_the_table() -> None:
    said = "\n".join(line for case in BROKEN_RULES for line in lines(case))
    rules = [rule for model in (*_models(StreamJobSpec), *_models(TopicSpec)) for rule in model.rules]
    assert len(rules) > 20
    assert [rule.says for rule in rules if rule.says not in said] == []


def _models(model: type[Model]) -> Iterator[type[Model]]:
    yield model
    for field in model.model_fields.values():
        if inner := model_in(field.annotation) or models_in(field.annotation):
            yield from _models(inner)
