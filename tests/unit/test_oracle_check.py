"""The checker finds nothing wrong with a faultless job, and notices every single fault that is put into one."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

import pytest

from tests.oracle.cases import Case, make_case, matrix
from tests.oracle.check import Observed, check
from tests.oracle.model import Policy, WindowType
from tests.oracle.perfect import even_batches, perfect
from tests.oracle.reading import Delivered

pytestmark = pytest.mark.unit

CASES = {(case.job.window.type, case.job.policy): case for case in matrix("c") if case.job.window}
SMALL = {(case.job.window.type, case.job.policy): case for case in matrix("c", variant="small") if case.job.window}
CORRECTED = SMALL["session", "correct"]
ASIDE = SMALL["hopping", "aside"]
# A fault in the output is found in the same way for every window; corrections and none are the two that differ.
FAULTY = [SMALL["tumbling", "drop"], SMALL["sliding", "aside"], CORRECTED, SMALL["hopping", "correct"]]


_faultless: dict[tuple[str, int], Observed] = {}


def after(case: Case, batches: int = 8) -> Observed:
    if (case.name, batches) not in _faultless:
        _faultless[case.name, batches] = perfect(case.job, case.log, even_batches(case.log, batches))
    return _faultless[case.name, batches]


def differences(case: Case, observed: Observed) -> list[str]:
    return check(case.job, case.log, observed)


@pytest.mark.parametrize("batches", [1, 5])
@pytest.mark.parametrize("policy", get_args(Policy))
@pytest.mark.parametrize("window", get_args(WindowType))
def test_nothing_is_wrong_with_a_faultless_job(window: WindowType, policy: Policy, batches: int) -> None:
    case = SMALL[window, policy]
    assert differences(case, after(case, batches)) == []


@pytest.mark.parametrize(
    ("window", "variant"), [("tumbling", "keyed"), ("hopping", "micros"), ("sliding", "ahead"), ("session", "clocks")]
)
def test_nothing_is_wrong_with_a_faultless_job_over_any_log(window: WindowType, variant: str) -> None:
    case = make_case("c", window, "correct", variant=variant)
    assert differences(case, after(case)) == []


@pytest.mark.parametrize("case", CASES.values(), ids=lambda case: case.name)
def test_the_logs_are_hard_enough(case: Case) -> None:
    """Every verdict and every fate occurs, and so does every reason for being malformed."""
    expectation = case.expect()
    fates = {"drop": {"dropped"}, "aside": {"aside"}, "correct": {"corrected", "dropped"}}[case.job.policy]
    assert all(expectation.totals[name] > 0 for name in ("malformed", "future", "on_time", *fates))
    assert {dict(side.headers)["reason"] for side in expectation.malformed} == {"unparsable", "no-event-time", "future"}
    assert len(expectation.table) > 50


@pytest.mark.parametrize("window", get_args(WindowType))
def test_the_logs_make_corrections_when_read_in_batches(window: WindowType) -> None:
    """Otherwise the matrix would not test a single one."""
    values = [json.loads(record.value) for record in after(CASES[window, "correct"]).output if record.value]
    assert sum(bool(value["retracts"]) for value in values) > 10


def test_the_session_log_merges_withdraws_and_opens_again() -> None:
    output = after(CASES["session", "correct"]).output
    values = [json.loads(record.value) for record in output if record.value]
    assert any(len(value["retracts"]) > 1 for value in values)
    assert any(record.value is None for record in output)


Fault = Callable[[list[Delivered]], list[Delivered]]


def lose(number: int) -> Fault:
    return lambda records: records[:number] + records[number + 1 :]


def double(number: int) -> Fault:
    return lambda records: [*records[: number + 1], *records[number:]]


def on_value(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Fault:
    """Changes the first value for which the change makes a difference."""

    def spoil(records: list[Delivered]) -> list[Delivered]:
        for number, record in enumerate(records):
            found = json.loads(record.value or b"{}")
            if record.value and change(found) != found:
                return [
                    *records[:number],
                    replace(record, value=json.dumps(change(found)).encode()),
                    *records[number + 1 :],
                ]
        raise AssertionError("the change changed nothing")

    return spoil


OUTPUT_FAULTS: dict[str, tuple[Fault, str]] = {
    "lost": (lose(7), "result missing|result wrong|of its own"),
    "doubled": (double(7), "published 2 times|follows revision"),
    "wrong count": (on_value(lambda row: row | {"events": row["events"] + 1}), "events is|of its own"),
    "wrong mean": (on_value(lambda row: row | {"mean": row["mean"] + 1e-9}), "mean is|of its own"),
    "count as text": (on_value(lambda row: row | {"events": str(row["events"])}), "not a long"),
    "null total": (on_value(lambda row: row | {"total": None}), "total is None|of its own"),
    "set out of order": (on_value(lambda row: row | {"kinds": row["kinds"][::-1]}), "kinds is|of its own"),
    "window end off": (
        on_value(lambda row: row | {"window_end": "2026-01-01T00:00:00.001Z"}),
        "window_end is|is not the one",
    ),
    "extra field": (on_value(lambda row: row | {"more": 1}), "nobody asked for: more"),
    "other key": (
        lambda records: [replace(records[0], key=records[1].key), *records[1:]],
        "is not the one of its value",
    ),
    "not JSON": (lambda records: [replace(records[0], value=b"{"), *records[1:]], "is not JSON"),
    "key moved": (
        lambda records: [replace(records[0], partition=9), *records],
        "in several partitions",
    ),
}


@pytest.mark.parametrize(("fault", "told"), OUTPUT_FAULTS.values(), ids=list(OUTPUT_FAULTS))
@pytest.mark.parametrize("case", FAULTY, ids=lambda case: case.name)
def test_a_fault_in_the_output_is_noticed(case: Case, fault: Fault, told: str) -> None:
    good = after(case)
    # Without the ledger, so that it is seen from the records alone.
    found = differences(case, replace(good, output=fault(list(good.output)), entries=None))
    assert any(part in sentence for sentence in found for part in told.split("|")), found


def retracting(change: Callable[[list[Any]], list[Any]]) -> Fault:
    return on_value(lambda row: row | {"retracts": change(row["retracts"])} if row["retracts"] else row)


CHAIN_FAULTS: dict[str, tuple[Fault, str]] = {
    "nothing retracted": (retracting(lambda _: []), "retracts"),
    "retracted twice": (retracting(lambda entries: [*entries, *entries]), "retracts"),
    "wrong value retracted": (retracting(lambda entries: [entries[0] | {"events": 99}, *entries[1:]]), "retracts"),
    "no list": (on_value(lambda row: {name: row[name] for name in row if name != "retracts"}), "has no retracts"),
    "revision not raised": (
        on_value(lambda row: row | {"revision": 0} if row["retracts"] else row),
        "follows revision|revision is",
    ),
    "revision missing": (on_value(lambda row: row | {"revision": None}), "revision None follows"),
}


@pytest.mark.parametrize(("fault", "told"), CHAIN_FAULTS.values(), ids=list(CHAIN_FAULTS))
@pytest.mark.parametrize("window", get_args(WindowType))
def test_a_fault_in_the_chain_of_corrections_is_noticed(window: WindowType, fault: Fault, told: str) -> None:
    case = SMALL[window, "correct"]
    good = after(case)
    found = differences(case, replace(good, output=fault(list(good.output)), entries=None))
    assert any(part in sentence for sentence in found for part in told.split("|")), found


def test_a_withdrawal_that_is_lost_or_doubled_is_noticed() -> None:
    good = after(CORRECTED)
    number = next(number for number, record in enumerate(good.output) if record.value is None)
    for fault, told in ((lose(number), "of its own, but there stood"), (double(number), "nothing stood there")):
        found = differences(CORRECTED, replace(good, output=fault(list(good.output)), entries=None))
        assert any(told in sentence for sentence in found), found


def test_a_correction_that_is_lost_on_the_way_to_the_last_is_noticed_by_its_batch() -> None:
    case = SMALL["tumbling", "correct"]
    good = after(case, 20)
    first = next(
        number for number, record in enumerate(good.output) if record.value and json.loads(record.value)["retracts"]
    )
    found = differences(case, replace(good, output=lose(first - 1)(list(good.output))))
    assert any("publications of" in sentence for sentence in found), found


def on_headers(**changes: bytes | None) -> Fault:
    def spoil(records: list[Delivered]) -> list[Delivered]:
        kept = tuple((name, value) for name, value in records[3].headers if name not in changes)
        added = tuple((name, value) for name, value in changes.items() if value is not None)
        return [*records[:3], replace(records[3], headers=kept + added), *records[4:]]

    return spoil


SIDE_FAULTS: dict[str, tuple[Fault, str]] = {
    "lost": (lose(3), "is missing"),
    "doubled": (double(3), "is there 2 times"),
    "other bytes": (lambda records: [replace(records[0], value=b"x"), *records[1:]], "has key and value"),
    "empty for none": (lambda records: [replace(one, value=one.value or b"") for one in records], "has key and value"),
    "other key": (lambda records: [replace(records[0], key=b"x"), *records[1:]], "has key and value"),
    "other offset": (on_headers(offset=b"99999"), "should not be there"),
    "header more": (on_headers(more=b"1"), "has the headers"),
}
MALFORMED_FAULTS = SIDE_FAULTS | {"wrong reason": (on_headers(reason=b"because"), "has the headers")}
ASIDE_FAULTS = {name: fault for name, fault in SIDE_FAULTS.items() if name != "empty for none"} | {
    "late by more": (on_headers(late_by_ms=b"99999999"), "has the headers"),
    "no window": (on_headers(window_end=None), "has the headers"),
    "other window": (on_headers(window_end=b"2026-01-01T00:00:00Z"), "has the headers"),
}


@pytest.mark.parametrize(("fault", "told"), MALFORMED_FAULTS.values(), ids=list(MALFORMED_FAULTS))
def test_a_fault_in_the_malformed_topic_is_noticed(fault: Fault, told: str) -> None:
    good = after(ASIDE)
    found = differences(ASIDE, replace(good, malformed=fault(list(good.malformed))))
    assert any(told in sentence and sentence.startswith("malformed") for sentence in found), found


@pytest.mark.parametrize(("fault", "told"), ASIDE_FAULTS.values(), ids=list(ASIDE_FAULTS))
def test_a_fault_in_the_aside_topic_is_noticed(fault: Fault, told: str) -> None:
    good = after(ASIDE)
    found = differences(ASIDE, replace(good, aside=fault(list(good.aside))))
    assert any(told in sentence and sentence.startswith("aside") for sentence in found), found


@pytest.mark.parametrize("name", [*ASIDE.expect().totals, "late_idle", "lost"])
def test_a_count_of_the_report_that_is_off_by_one_is_noticed(name: str) -> None:
    good = after(ASIDE)
    report = json.loads(json.dumps(good.report))
    report["sources"]["events"][name] += 1
    assert any(f"report: {name} is" in sentence for sentence in differences(ASIDE, replace(good, report=report)))


@pytest.mark.parametrize(
    ("path", "value"),
    [("watermark", None), ("sinks", {"out": {"written": 1}}), ("side", {"malformed": 0, "aside": 0}), ("sources", {})],
)
def test_a_report_that_says_something_else_is_noticed(path: str, value: Any) -> None:
    good = after(ASIDE)
    assert differences(ASIDE, replace(good, report={**(good.report or {}), path: value})) != []


def test_a_fault_in_an_entry_of_the_ledger_is_noticed() -> None:
    good = after(ASIDE)
    first, *rest = good.entries or ()
    faults = {
        "late is": [replace(first, counts={**first.counts, "late": 99}), *rest],
        "the equation does not hold": [replace(first, counts={**first.counts, "read": 99}), *rest],
        "high is": [replace(first, high=7), *rest],
        "has a batch twice": [first, first, *rest],
        "starts at": rest,
        "ends at": [first, *rest][:-4],
    }
    for told, entries in faults.items():
        found = differences(ASIDE, replace(good, entries=entries))
        assert any(told in sentence for sentence in found), (told, found)
