"""Rules for bolts of whole epochs and committers, checked when they are added (law X9). ``where`` opens error
messages."""

from __future__ import annotations

from typing import Any, cast

from stormlet.core.state.codecs import unfit
from stormlet.errors import InvalidTopology
from stormlet.model.logic import component_class, what_is_called
from stormlet.model.state.committers import Committer, CommitterFactory, RowSpec, row_type
from stormlet.model.state.epoch_bolts import EpochBolt


def rows_of(where: str, logic: object) -> RowSpec | None:
    """Return the rows of a committer; None for any other bolt. Raise :class:`InvalidTopology` for rows of a type that
    cannot be kept."""
    factory = what_is_called(logic)
    if isinstance(factory, CommitterFactory):
        return factory.rows_kept
    made = component_class(logic)
    if made is None or not issubclass(made, Committer):
        return None
    kind = row_type(cast("type[Committer[Any]]", cast("object", made)))
    fault = None if kind is Any else unfit(kind)
    if fault is not None:
        raise InvalidTopology(f"{where}: its rows: {fault}")
    return RowSpec(kind)


def works_by_epochs(where: str, logic: object, executor: str) -> bool:
    """Return True for a bolt that works on whole epochs; raise :class:`InvalidTopology` for one in threads."""
    made = component_class(logic)
    if made is None or not issubclass(made, EpochBolt):
        return False
    if executor == "thread":
        raise InvalidTopology(
            f'{where} works on epochs, which end on the loop\'s thread, and cannot run with executor="thread"; make it '
            f"asynchronous, and await asyncio.to_thread(...) for what blocks"
        )
    return True


def check_alone(where: str, parallelism: int, concurrency: int, executor: str) -> None:
    """Raise :class:`InvalidTopology` for a committer that epochs could come to out of order."""
    for name, given, only in (
        ("parallelism", parallelism, 1),
        ("concurrency", concurrency, 1),
        ("executor", executor, "loop"),
    ):
        if given != only:
            raise InvalidTopology(
                f"{where} is a committer, which gets one epoch after another, and cannot have {name}={given!r}; leave "
                f"that out, and do several things at once within commit, by asyncio.gather or asyncio.to_thread"
            )
