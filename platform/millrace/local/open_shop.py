"""`python -m millrace.local.open_shop`: the made-up shop alone, for a broker that is there, until it is asked to stop.

It sends only to topics that exist, and goes on looking for them: whoever declares them decides how they are made.
"""

import argparse
import sys
from collections.abc import Sequence

from millrace.errors import UserError
from millrace.kafka.topics import look
from millrace.local.feed import Feed
from millrace.local.signals import StopRequests
from millrace.shop import ORDERS, PAGEVIEWS, Shop

LOOK_SECONDS = 3.0
SAY_SECONDS = 30.0


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m millrace.local.open_shop", description=__doc__)
    parser.add_argument("--bootstrap", required=True, help="the brokers, as host:port")
    parser.add_argument("--events-per-second", type=float, default=200.0, help="how many it sends (default: 200)")
    chosen = parser.parse_args(words)
    with StopRequests() as requests:
        topics = _wait_for_topics(chosen.bootstrap, requests)
        try:
            if topics:
                _sell(chosen.bootstrap, Shop(events_per_second=chosen.events_per_second), topics, requests)
        except UserError as error:
            print(error, file=sys.stderr)
            return 1
    return 0


def _wait_for_topics(bootstrap: str, requests: StopRequests) -> frozenset[str]:
    wanted = frozenset((PAGEVIEWS, ORDERS))
    said = ""
    while not requests.count:
        try:
            found = look(bootstrap).topics & wanted
        except UserError as error:
            news = str(error)
        else:
            if found:
                return found
            news = f"no topic {' or '.join(sorted(wanted))} yet: apply an example"
        if news != said:
            print(news, flush=True)
        said = news
        requests.wait(LOOK_SECONDS)
    return frozenset()


def _sell(bootstrap: str, shop: Shop, topics: frozenset[str], requests: StopRequests) -> None:
    with Feed(bootstrap, shop, topics=topics) as feed:
        while not requests.count:
            requests.wait(SAY_SECONDS)
            feed.check()
            print(", ".join(f"{sum(kinds.values())} {topic}" for topic, kinds in feed.sent().items()), flush=True)


if __name__ == "__main__":
    sys.exit(main())
