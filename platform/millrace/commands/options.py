"""Readers of command-line values: each gives a sentence that says what would be right."""

import re
from argparse import ArgumentTypeError
from datetime import timedelta

from millrace.units import parse_duration

ADDRESS = re.compile(r"[A-Za-z0-9._-]+:[0-9]{1,5}")


def address(text: str) -> str:
    """HOST:PORT, or several of them with commas between."""
    if not all(ADDRESS.fullmatch(one) for one in text.split(",")):
        raise ArgumentTypeError(f"{text!r} does not name brokers: write HOST:PORT, for instance localhost:9092")
    return text


def port(text: str) -> int:
    if not text.isdigit() or not 0 <= int(text) <= 65535:
        raise ArgumentTypeError(f"{text!r} is not a port: write a number up to 65535, or 0 for a free one")
    return int(text)


def duration(text: str) -> timedelta:
    try:
        value = parse_duration(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None
    if not value:
        raise ArgumentTypeError("must be longer than zero, for instance 60s")
    return value
