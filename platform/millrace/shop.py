"""A made-up shop whose visitors leave page views and orders, with everything that real devices do wrong.

The same seed gives the same events, byte for byte, relative to the moment the shop opens. Nothing here knows Kafka:
`millrace.local.feed` sends what this module makes up.
"""

import itertools
import json
import random
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal

PAGEVIEWS = "pageviews"
ORDERS = "orders"

Kind = Literal["ordinary", "offline", "ahead", "malformed"]
Fields = dict[str, str | float]

URLS = ("/", "/search", "/lamps", "/chairs", "/tables", "/lamps/arc", "/chairs/oak", "/tables/long", "/cart", "/help")
PRODUCTS = {"arc lamp": 89.0, "oak chair": 140.0, "long table": 620.0, "desk lamp": 35.5, "stool": 48.0}
ORDER_SHARE = 0.1  # the rest are page views
NETWORK_SECONDS = (0.02, 0.4)
OFFLINE_SECONDS = (20.0, 900.0)  # from "in a tunnel" to "switched off over lunch"
AHEAD_SECONDS = (2 * 3600.0, 12 * 3600.0)


@dataclass(frozen=True)
class Mix:
    """Which share of the events goes wrong, and how. The rest arrives a moment after it happened."""

    offline: float = 0.03  # kept on the device for a while, so it arrives late
    malformed: float = 0.005  # broken JSON, a missing time, or a value of another type
    ahead: float = 0.002  # stamped by a clock that was hours ahead when it happened
    wrong_clocks: float = 0.2  # share of the devices whose clock is off by minutes or hours; three clocks correct it


@dataclass(frozen=True)
class Burst:
    """Many devices come back from a dead spot at once: stragglers in a heap."""

    at_seconds: float  # after the shop opens
    events: int = 500
    late_seconds: float = 300.0
    over_seconds: float = 0.0  # they come spread over so long


@dataclass(frozen=True)
class Shop:
    """One shop. `history` is the time before the opening that is already in its books, and comes first."""

    seed: int = 1
    events_per_second: float = 200.0
    users: int = 400
    history: timedelta = timedelta()
    mix: Mix = field(default_factory=Mix)
    burst: Burst | None = None


@dataclass(frozen=True)
class Record:
    """One record for Kafka: due so many seconds after the opening (before it, for history)."""

    topic: str
    key: bytes
    value: bytes
    due_seconds: float
    kind: Kind


def records(shop: Shop, opened_at: datetime) -> Iterator[Record]:
    """The shop's records in the order they reach the log, without end."""
    chance = random.Random(shop.seed)  # noqa: S311 - repeatable on purpose
    clocks = _clocks(chance, shop)
    waiting = deque(crowd(shop, shop.burst, opened_at) if shop.burst else ())
    for number in itertools.count():
        due = number / shop.events_per_second - shop.history.total_seconds()
        while waiting and waiting[0].due_seconds <= due:
            yield waiting.popleft()
        yield _record(chance, shop.mix, clocks, opened_at, due)


def crowd(shop: Shop, burst: Burst, opened_at: datetime) -> Iterator[Record]:
    """The page views of a burst, in the order they are due. Their users are the shop's own, with the same clocks."""
    clocks = _clocks(random.Random(shop.seed), shop)  # noqa: S311 - repeatable on purpose
    chance = random.Random(shop.seed + burst.events)  # noqa: S311 - repeatable, and not the ordinary events again
    for number in range(burst.events):
        due = burst.at_seconds + number * burst.over_seconds / burst.events
        yield _pageview(chance, clocks, opened_at, due, burst.late_seconds, "offline")


def _record(chance: random.Random, mix: Mix, clocks: list[float], opened_at: datetime, due: float) -> Record:
    kind = _kind(chance, mix)
    late = chance.uniform(*OFFLINE_SECONDS) if kind == "offline" else chance.uniform(0, 1)
    make = _order if chance.random() < ORDER_SHARE else _pageview
    return make(chance, clocks, opened_at, due, late, kind)


def _kind(chance: random.Random, mix: Mix) -> Kind:
    drawn = chance.random()
    if drawn < mix.offline:
        return "offline"
    if drawn < mix.offline + mix.malformed:
        return "malformed"
    return "ahead" if drawn < mix.offline + mix.malformed + mix.ahead else "ordinary"


def _clocks(chance: random.Random, shop: Shop) -> list[float]:
    """How far off each user's clock is."""
    return [_clock_offset(chance, shop.mix) for _ in range(shop.users)]


def _clock_offset(chance: random.Random, mix: Mix) -> float:
    """Seconds by which a device's clock is off: mostly none, else minutes or hours to either side."""
    if chance.random() >= mix.wrong_clocks:
        return 0.0
    return chance.choice((-1, 1)) * chance.choice((chance.uniform(60, 900), chance.uniform(3600, 4 * 3600)))


def _pageview(
    chance: random.Random, clocks: list[float], opened_at: datetime, due: float, late: float, kind: Kind
) -> Record:
    """A view carries three clocks, so an offset of the device's clock can be seen and taken out."""
    user = chance.randrange(len(clocks))
    received = opened_at + timedelta(seconds=due)
    sent = received - timedelta(seconds=chance.uniform(*NETWORK_SECONDS))
    # A clock that was hours ahead when it happened, and set right before sending, cannot be corrected by anyone.
    jump = chance.uniform(*AHEAD_SECONDS) if kind == "ahead" else 0.0
    event: Fields = {
        "user": f"user-{user:04}",
        "url": _popular(chance),
        "occurred_at": _iso(sent + timedelta(seconds=clocks[user] + jump - late)),
        "sent_at": _iso(sent + timedelta(seconds=clocks[user])),
        "received_at": _iso(received),
    }
    return Record(PAGEVIEWS, _key(user), _value(chance, event, kind), due, kind)


def _order(
    chance: random.Random, clocks: list[float], opened_at: datetime, due: float, late: float, kind: Kind
) -> Record:
    """An order is stamped by the shop's own server, so its single clock is right, or hours ahead."""
    user = chance.randrange(len(clocks))
    product = chance.choice(tuple(PRODUCTS))
    jump = chance.uniform(*AHEAD_SECONDS) if kind == "ahead" else 0.0
    event: Fields = {
        "order_id": f"{chance.getrandbits(48):012x}",
        "user": f"user-{user:04}",
        "product": product,
        "amount": PRODUCTS[product] * chance.randint(1, 3),
        "occurred_at": _iso(opened_at + timedelta(seconds=due + jump - late)),
    }
    return Record(ORDERS, _key(user), _value(chance, event, kind), due, kind)


def _value(chance: random.Random, event: Fields, kind: Kind) -> bytes:
    if kind != "malformed":
        return json.dumps(event).encode()
    way = chance.choice(("cut off", "no time", "wrong type"))
    if way == "no time":
        event = {name: value for name, value in event.items() if name != "occurred_at"}
    elif way == "wrong type":
        event = event | {"occurred_at": "yesterday, around noon"}
    text = json.dumps(event)
    return (text[: len(text) // 2] if way == "cut off" else text).encode()


def _popular(chance: random.Random) -> str:
    """The front page gets most views, the help page the fewest."""
    return URLS[min(int(chance.expovariate(0.5)), len(URLS) - 1)]


def _key(user: int) -> bytes:
    return f"user-{user:04}".encode()


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
