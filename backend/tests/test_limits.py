"""Limits of callers: what one of them does slows no other, and fills no memory."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic, perf_counter
from typing import Any

import pytest

from tests.support.backend_files import RESEARCH
from tests.support.backend_process import BackendProcess, site
from tests.support.callers import ReviewingServer
from tests.support.postgres_server import PostgresServer
from tests.support.stub_api_http import serve
from ultrascale_backend.authentication import Authenticator, Claims
from ultrascale_backend.callers import Caller
from ultrascale_backend.errors import (
    IdentityUnavailableError,
    LimitedError,
    UnknownCallerError,
)
from ultrascale_backend.limits import Buckets, Recent, Turns

_SECONDS = 2
_GREEDY_PER_SECOND = 1000


class Clock:
    """Seconds that tests let pass."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


class TestBuckets:
    """Requests a second."""

    def test_a_caller_that_is_put_off_is_told_until_when(self, clock: Clock) -> None:
        buckets = Buckets(2, 3, clock=clock)

        waits = [buckets.take("greedy") for _ in range(4)]

        assert waits == [0, 0, 0, 0.5]
        clock.seconds += waits[-1]
        assert buckets.take("greedy") == 0

    def test_one_caller_takes_nothing_of_anothers(self, clock: Clock) -> None:
        buckets = Buckets(1, 1, clock=clock)
        buckets.take("greedy")

        assert buckets.take("greedy") > 0
        assert buckets.take("other") == 0

    def test_callers_without_end_fill_no_memory(self) -> None:
        kept = Recent[str, int](100)
        for number in range(1000):
            kept.put(str(number), number)

        assert len(kept) == 100
        assert kept.get("999") == 999


def test_a_caller_that_waits_for_its_turn_holds_no_other_up() -> None:
    turns = Turns(2)
    order: list[str] = []

    async def ask(name: str) -> None:
        async with turns.turn(name):
            order.append(name)
            await asyncio.sleep(0)

    async def both() -> None:
        await asyncio.gather(*(ask("greedy") for _ in range(50)), ask("other"))

    asyncio.run(both())

    assert order.index("other") <= 2
    assert not turns._waiting  # pyright: ignore[reportPrivateUsage]


class Judge:
    """Knows tokens that begin with the name of their caller."""

    def __init__(self) -> None:
        self.asked: list[str] = []  # Tokens that it judged
        self.away = False  # Whether it can say nothing

    def takes(self, claims: Claims) -> bool:
        return True

    def caller(self, token: str, claims: Claims) -> Caller:
        self.asked.append(token)
        if self.away:
            raise IdentityUnavailableError("away")
        if claims.issuer != "known":
            raise UnknownCallerError("nobody")
        return Caller(name="ada", groups=frozenset(), expires=claims.expires)


def token(issuer: str = "known", **claims: Any) -> str:
    from tests.support.callers import unsigned

    return unsigned({"alg": "RS256"}, {"iss": issuer, **claims})


class TestAuthenticator:
    """Limits on questions to the issuer about a token."""

    @pytest.fixture
    def judge(self) -> Judge:
        return Judge()

    @pytest.fixture
    def door(self, judge: Judge, clock: Clock) -> Authenticator:
        return Authenticator([judge], tokens_per_second=2, clock=clock, now=clock)

    def test_requests_at_once_with_one_token_are_one_question(
        self, door: Authenticator, judge: Judge
    ) -> None:
        async def many() -> None:
            await asyncio.gather(*(door.caller(token(), "a") for _ in range(100)))
            await door.caller(token(), "a")

        asyncio.run(many())

        assert len(judge.asked) == 1

    def test_a_verdict_holds_for_half_a_minute(
        self, door: Authenticator, judge: Judge, clock: Clock
    ) -> None:
        async def twice() -> None:
            await door.caller(token(), "a")
            clock.seconds += 31
            await door.caller(token(), "a")

        asyncio.run(twice())

        assert len(judge.asked) == 2

    def test_a_token_that_has_ended_meanwhile_is_judged_again(
        self, door: Authenticator, judge: Judge, clock: Clock
    ) -> None:
        ending = token(exp=clock.seconds + 5)

        async def twice() -> None:
            await door.caller(ending, "a")
            clock.seconds += 6
            judge.away = True
            await door.caller(ending, "a")

        with pytest.raises(IdentityUnavailableError):
            asyncio.run(twice())

    def test_a_known_caller_goes_on_for_five_minutes_while_nobody_can_say(
        self, door: Authenticator, judge: Judge, clock: Clock
    ) -> None:
        async def later(seconds: float) -> Caller:
            await door.caller(token(), "a")
            clock.seconds += seconds
            judge.away = True
            try:
                return await door.caller(token(), "a")
            finally:
                judge.away = False

        assert asyncio.run(later(299)).name == "ada"
        with pytest.raises(IdentityUnavailableError):
            asyncio.run(later(301))

    def test_a_caller_whose_token_was_withdrawn_does_not_go_on(
        self, door: Authenticator, judge: Judge, clock: Clock
    ) -> None:
        async def withdrawn() -> None:
            await door.caller(token("other"), "a")

        with pytest.raises(UnknownCallerError):
            asyncio.run(withdrawn())
        judge.away = True
        with pytest.raises(UnknownCallerError):
            asyncio.run(withdrawn())

    def test_an_address_that_tries_tokens_is_put_off_and_no_other(
        self, door: Authenticator, judge: Judge
    ) -> None:
        async def tries(address: str, number: int) -> str:
            try:
                await door.caller(token("evil", jti=number), address)
            except UnknownCallerError:
                return "unknown"
            except LimitedError:
                return "limited"
            return "known"

        async def guess() -> list[str]:
            found = [await tries("evil", number) for number in range(30)]
            await door.caller(token(jti="good"), "good")
            return found

        found = asyncio.run(guess())

        assert found == ["unknown"] * 10 + ["limited"] * 20
        assert len(judge.asked) == 11

    def test_callers_that_share_an_address_use_up_nothing_of_it(self, door: Authenticator) -> None:
        async def many() -> None:
            for number in range(50):
                await door.caller(token(jti=number), "proxy")

        asyncio.run(many())


@pytest.fixture
def backend(tmp_path: Path, postgres: PostgresServer, database: str) -> Iterator[BackendProcess]:
    with serve(server := ReviewingServer()):
        here = site(tmp_path, postgres, database, server)
        environment = {"CALLER_REQUESTS_PER_SECOND": "20", "ADDRESS_TOKENS_PER_SECOND": "5"}
        with here.replica(**environment) as replica:
            replica.other = server.token_of("web:other")
            yield replica


class Client:
    """A connection that is kept, of one caller."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str
    ) -> None:
        self._reader, self._writer = reader, writer
        self._head = f"Host: backend\r\nAuthorization: Bearer {token}\r\n\r\n"

    async def ask(self, path: str) -> tuple[int, float]:
        """Return the status of an answer, and the seconds that it took."""
        began = perf_counter()
        self._writer.write(f"GET {path} HTTP/1.1\r\n{self._head}".encode())
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.split("content-length: ")[1].split("\r\n")[0])
        await self._reader.readexactly(length)
        return int(head.split()[1]), perf_counter() - began


@asynccontextmanager
async def connected(port: int, token: str) -> AsyncGenerator[Client]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield Client(reader, writer, token)
    finally:
        writer.close()


async def greed(port: int, token: str, seconds: float) -> list[int]:
    """Return what became of a thousand requests a second, over ten connections."""
    each = _GREEDY_PER_SECOND / 10

    async def one(number: int) -> list[int]:
        statuses: list[int] = []
        async with connected(port, token) as client:
            began = monotonic()
            while (passed := monotonic() - began) < seconds:
                status, _ = await client.ask("/requests")
                statuses.append(status)
                if (ahead := len(statuses) / each - passed) > 0:
                    await asyncio.sleep(ahead)
        return statuses

    found = await asyncio.gather(*(one(number) for number in range(10)))
    return [status for statuses in found for status in statuses]


async def calm(port: int, token: str, count: int) -> list[tuple[int, float]]:
    found: list[tuple[int, float]] = []
    async with connected(port, token) as client:
        for _ in range(count):
            found.append(await client.ask("/requests"))
            await asyncio.sleep(0.06)
    return found


@pytest.mark.postgres
def test_a_thousand_requests_a_second_of_one_caller_slow_no_other(
    backend: BackendProcess,
) -> None:
    greedy = backend.token
    assert greedy is not None
    backend.ask("POST", "/requests", RESEARCH, key="one", token=backend.other)

    async def beside() -> tuple[list[int], list[tuple[int, float]]]:
        flood = asyncio.ensure_future(greed(backend.port, greedy, _SECONDS))
        await asyncio.sleep(0.2)
        other = await calm(backend.port, backend.other, 20)
        return await flood, other

    alone = asyncio.run(calm(backend.port, backend.other, 10))
    flood, other = asyncio.run(beside())

    median = sorted(seconds for _, seconds in other)[len(other) // 2]
    slowest = max(seconds for _, seconds in other)
    quiet = sorted(seconds for _, seconds in alone)[len(alone) // 2]
    print(
        f"{len(flood) / _SECONDS:.0f} requests a second; another's took {quiet * 1e3:.1f} ms alone "
        f"and {median * 1e3:.1f} ms beside them, {slowest * 1e3:.1f} ms at most"
    )
    assert {status for status, _ in other} == {200}
    # What it may at once, and in these seconds, and no more.
    assert flood.count(200) <= 20 * (5 + _SECONDS + 1)
    assert {*flood} == {200, 429}
    # On machines that do much else beside.
    assert median < 0.25
    lines = [line for line in backend.logged() if line.get("decision") == "limited"]
    assert len(lines) < 50


@pytest.mark.postgres
def test_an_address_that_guesses_tokens_does_not_wear_the_api_server_out(
    backend: BackendProcess,
) -> None:
    statuses = [
        backend.ask("GET", "/requests", token=f"{backend.token}{number}").status
        for number in range(60)
    ]

    assert statuses.count(429) > 20
    # Whoever is known goes on, from the same address too.
    assert backend.ask("GET", "/requests", token=backend.token).status in (200, 429)
