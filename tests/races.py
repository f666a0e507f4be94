"""A mixed load for ThreadSanitizer (tests/races.sh): texts on threads of the core beside feeding, for some seconds;
most over HTTP, where the core writes answers to sockets while nothing is fed for a moment.

Fails where nothing was asked or fed, or where texts never ran beside each other.
"""

from __future__ import annotations

import argparse
import random
import sys
import threading
import time

from tests.container.search.routed_port import RoutedPort, get
from tests.container.search.search_nodes import remove, update
from tests.container.search.text_peers import at_once, document, peers, text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    sys.stdout.write(f"seed {options.seed}\n")
    end = time.monotonic() + options.seconds
    choice, fed_choice = random.Random(options.seed), random.Random(options.seed + 1)
    asked = fed = 0
    with peers() as found:
        found.compiled.apply(*(document(choice, number) for number in range(300)))
        found.fill_rows()

        may_feed = threading.Event()
        may_feed.set()

        def feed() -> None:
            nonlocal fed
            while time.monotonic() < end:
                may_feed.wait()
                number = fed_choice.randrange(600)
                operation = fed_choice.choice((document(fed_choice, number), update(number, year=3), remove(number)))
                found.compiled.apply(operation)
                fed += 1
                if fed % 50 == 0:
                    found.fill_rows()

        loop, port = found.compiled._loop, RoutedPort(found)
        loop.run_until_complete(_start(port))
        feeder = threading.Thread(target=feed)
        feeder.start()
        while time.monotonic() < end:
            queries = [_query(choice) for _ in range(16)]
            answers = at_once(found, queries)
            assert all(answer.status == 200 for answer in answers), [answer.body for answer in answers]
            alike = _query(choice)
            requests = [get(**alike | {"query": text(choice, 4), "timeout": "60s"}) for _ in range(16)]
            may_feed.clear()
            heads = [head for head, _ in loop.run_until_complete(port.ask(requests * 3, 8))]
            may_feed.set()
            assert all(head.startswith(b"HTTP/1.1 200 ") for head in heads), heads
            asked += len(answers) + len(heads)
        feeder.join()
        loop.run_until_complete(port.server.stop())
        assert asked and fed and found.answered and port.sent and found.service._runs.uses_threads
        by_core = len(port.sent)
        sys.stdout.write(
            f"{asked} queries, {found.answered} of them by plans, {by_core} of the core, beside {fed} operations\n"
        )


async def _start(port: RoutedPort) -> None:
    port.server.start()


def _query(choice: random.Random) -> dict[str, str]:
    index, ranking = choice.choice((("body", "body"), ("default", "both"), ("parts", "parts")))
    where = choice.choice(("userQuery()", "userQuery() and year < 20", "userQuery() and price < 30.0"))
    return {
        "yql": f"select * from music where {where}",
        "query": text(choice, 4),
        "type": choice.choice(("any", "all", "phrase", "weakAnd")),
        "ranking": ranking,
        "default-index": index,
        "nocache": "true",
    }


if __name__ == "__main__":
    main()
