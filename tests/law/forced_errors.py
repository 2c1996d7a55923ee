"""Makes any call of the engine raise, and checks that no message slips (laws N1, N2).

The calls are found by tracing: a first run notes every place in ``stormlet/core`` and ``stormlet/runtime`` that calls a
function, one of ours, of Python's or of C. Each further run is the same one, as its time is simulated, and raises at
one of these places instead of calling.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import PurePath
from types import CodeType, FrameType
from typing import Any, NamedTuple

from stormlet import runtime
from stormlet.testing.loop import run_simulated
from tests.law.books import Books, Forced

ENGINE = PurePath(runtime.__file__).parents[1]
OURS = (str(ENGINE / "core"), str(ENGINE / "runtime"))
LAST_RESORT = {
    *("Run.__aexit__", "Running.leave", "Lifecycle.leave", "Lifecycle._end", "Lifecycle._until_ended"),
    *("Lifecycle._begin_to_end", "Lifecycle._end_ended", "_ring", "_Turns.turn", "_blocks"),
}
"""What starts the end of a run, and what asks a future of asyncio's how it is: if these fail, nothing can be told.
And the generator of ids: it is over once it has raised, and no restart makes another one."""
WORKING = ("BaseEventLoop.", "Engine.guarded", "_blocks", "lock.__exit__")
"""The event loop itself, the guard of its callbacks, the generator of ids, and the release of a lock, which raises only
if nobody holds it."""
FOR_EVER = 5000.0
"""Simulated seconds after which a run that has not ended never will."""

Scenario = Callable[[Books], Awaitable[None]]


class Place(NamedTuple):
    """A call in the code of the engine."""

    caller: CodeType
    instruction: int
    called: str

    def __str__(self) -> str:
        line = next(
            (line for start, end, line in self.caller.co_lines() if start <= self.instruction < end), 0
        )
        file = PurePath(self.caller.co_filename).relative_to(ENGINE)
        return f"{file}:{line} {self.caller.co_qualname} -> {self.called}"


class Strike(NamedTuple):
    """The call that raises: so many times the place was passed before."""

    place: Place
    before: int

    def __str__(self) -> str:
        return f"{self.place}, call {self.before + 1}"


class Profile:
    """Counts the calls of the engine, and has one of them raise."""

    def __init__(self, strike: Strike | None = None) -> None:
        self.calls: Counter[Place] = Counter()
        self.struck = False
        self._strike = strike

    def __call__(self, frame: FrameType, event: str, called: Any) -> None:
        if event == "call":
            caller, name = frame.f_back, frame.f_code.co_qualname
        elif event == "c_call":
            caller, name = frame, str(getattr(called, "__qualname__", called))
        else:
            return
        if caller is None or not caller.f_code.co_filename.startswith(OURS):
            return
        if caller.f_code.co_qualname in LAST_RESORT or name.startswith(WORKING):
            return
        place = Place(caller.f_code, caller.f_lasti, name)
        before = self.calls[place]
        self.calls[place] += 1
        if self._strike == (place, before):
            self.struck = True
            raise Forced(str(self._strike))

    @contextmanager
    def on(self) -> Iterator[None]:
        """While the topology runs, from its start on."""
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)


def run(scenario: Scenario, strike: Strike | None = None) -> tuple[Profile, Books]:
    """Run it, with one call that raises."""
    profile = Profile(strike)
    books = Books(profile.on)
    with_limit = _limited(scenario, books)
    run_simulated(with_limit)
    return profile, books


async def _limited(scenario: Scenario, books: Books) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda loop, context: books.unheard.append(context))
    async with asyncio.timeout(FOR_EVER):
        with suppress(Forced):  # raised at what the host itself has called
            await scenario(books)


def strikes_of(scenario: Scenario, turn: int) -> list[Strike]:
    """Every place of this scenario once, at that call of those made there."""
    run(scenario)  # fills what is cached
    profile, _ = run(scenario)
    return [Strike(place, turn % count) for place, count in profile.calls.items()]
