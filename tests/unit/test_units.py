"""Durations, sizes and CPU amounts are read as people write them and printed so that they read the same again."""

from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace import units

pytestmark = pytest.mark.unit

MILLISECONDS = st.integers(0, 10**12)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30),
        ("1h30m", 5400),
        ("500ms", 0.5),
        ("7d", 604_800),
        ("1d1h1m1s1ms", 90_061.001),
        ("0s", 0),
        ("90m", 5400),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert units.parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "30", "s", "30 s", "1m1h", "-1s", "1.5s", "1w", "30s ", "30s\n", "PT1M", "1M"])
def test_what_is_no_duration_is_refused_with_what_would_be_right(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration: write a number and its unit"):
        units.parse_duration(text)


def test_a_duration_beyond_all_bounds_is_refused() -> None:
    with pytest.raises(ValueError, match="too long"):
        units.parse_duration("999999999d999999999d"[:10] + "999999999h")


@given(MILLISECONDS)
def test_a_duration_survives_printing(milliseconds: int) -> None:
    value = timedelta(milliseconds=milliseconds)
    assert units.parse_duration(units.format_duration(value)) == value


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("10Gi", 10 * 1024**3),
        ("500M", 500_000_000),
        ("1.5Ki", 1536),
        ("7", 7),
        (7, 7),
        ("1k", 1000),
        ("2Pi", 2 * 1024**5),
    ],
)
def test_sizes(text: str | int, size: int) -> None:
    assert units.parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "10 Gi", "10GB", "Gi", "-1", "1e3", "1Ki\n", "10gi"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size"):
        units.parse_bytes(text)


def test_a_part_of_a_byte_is_refused() -> None:
    with pytest.raises(ValueError, match="whole number of bytes"):
        units.parse_bytes("1.5")


@given(st.integers(0, 2**60))
def test_a_size_survives_printing(size: int) -> None:
    assert units.parse_bytes(units.format_bytes(size)) == size


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0"), (1024, "1Ki"), (1000, "1k"), (10 * 1024**3, "10Gi"), (1001, "1001")]
)
def test_a_size_is_printed_in_its_largest_exact_unit(size: int, text: str) -> None:
    assert units.format_bytes(size) == text


@pytest.mark.parametrize(("text", "cores"), [("500m", "0.5"), ("2", "2"), (2, "2"), ("0.25", "0.25"), ("1500m", "1.5")])
def test_cpu(text: str | int, cores: str) -> None:
    assert units.parse_cpu(text) == Decimal(cores)


@pytest.mark.parametrize("text", ["", "many", "1 core", "-1", "0.0001", "2\n"])
def test_what_is_no_cpu_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not an amount of CPU"):
        units.parse_cpu(text)


@given(st.integers(1, 9_999_999))
def test_cpu_survives_printing(thousandths: int) -> None:
    cores = Decimal(thousandths) / 1000
    assert units.parse_cpu(units.format_cpu(cores)) == cores


@settings(max_examples=200)
@given(st.text(alphabet="0123456789dhmskMGTiP. -\n", max_size=12))
def test_no_text_gives_anything_but_a_value_or_a_sentence(text: str) -> None:
    for parse in (units.parse_duration, units.parse_bytes, units.parse_cpu):
        try:
            parse(text)
        except ValueError as error:
            assert repr(text)[1:-1] in str(error)
