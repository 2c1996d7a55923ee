"""Spouts as the user declares them, in every form that a source may have."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping
from types import UnionType
from typing import Any, TypeAlias, TypeVar, Unpack, overload

from stormlet.errors import InvalidTopology
from stormlet.model.builder_types import SpoutOptions
from stormlet.model.checks.components import check_sharing, declared_outputs
from stormlet.model.components import Spout, TaskContext, To
from stormlet.model.configuration import configure
from stormlet.model.description import SpoutSpec
from stormlet.model.logic import check_code, source_kind
from stormlet.model.streams import DirectStream, Stream
from stormlet.topology.builder import Builder, listed

T = TypeVar("T")

AsyncValues: TypeAlias = (
    Callable[[], AsyncIterator[T | To[object]]] | Callable[[TaskContext], AsyncIterator[T | To[object]]]
)
"""An async generator function, which may take the task's context."""

Values: TypeAlias = (
    Callable[[], Iterator[T | To[object]]]
    | Callable[[TaskContext], Iterator[T | To[object]]]
    | Iterable[T | To[object]]
    | AsyncIterable[T | To[object]]
)
"""A generator function, which may take the task's context, or an iterable."""


class SpoutBuilder(Builder):
    """Declares spouts, and gives them other sources."""

    @overload
    def spout(
        self,
        id: str,
        source: Callable[[], Spout[T]],
        *,
        outputs: object = None,
        **options: Unpack[SpoutOptions],
    ) -> Stream[T]: ...
    @overload
    def spout(
        self, id: str, source: AsyncValues[T], *, outputs: object = None, **options: Unpack[SpoutOptions]
    ) -> Stream[T]: ...
    @overload
    def spout(
        self, id: str, source: Values[T], *, outputs: object = None, **options: Unpack[SpoutOptions]
    ) -> Stream[T]: ...
    @overload
    def spout(
        self, id: str, source: None = None, *, outputs: type[T], **options: Unpack[SpoutOptions]
    ) -> Stream[T]: ...
    @overload
    def spout(
        self,
        id: str,
        source: None = None,
        *,
        outputs: list[str] | tuple[str, ...] | Mapping[str, object] | DirectStream | UnionType | None = None,
        **options: Unpack[SpoutOptions],
    ) -> Stream[Any]: ...
    def spout(
        self,
        id: str,
        source: object = None,
        *,
        parallelism: int = 1,
        outputs: object = None,
        **overrides: object,
    ) -> Stream[Any]:
        """Add a spout and return its default stream.

        ``source`` is a ``Spout`` class or factory, a generator function (sync or async; it may take the
        task's :class:`~stormlet.model.components.TaskContext`), any iterable or async iterable, or nothing:
        then ``running.emit`` feeds it. ``outputs`` declares the streams: a record type, a list of field
        names, a ``DirectStream``, or a mapping of these by stream name. ``overrides`` are options for this
        spout alone, such as ``max_spout_pending``, or ``max_restarts=0``: then an exception in it crashes the
        topology at once.

        Raises :class:`~stormlet.errors.InvalidTopology` and :class:`~stormlet.errors.InvalidConfiguration`
        naming the component.
        """
        where = f"spout {id!r}"
        self._check_new(where, id, parallelism)
        kind = source_kind(id, source)
        check_sharing(id, source, kind, parallelism)
        check_code(where, source, "loop")
        options = self._options("spout", id, where, overrides)
        configure(self._configuration, options, where)
        streams = declared_outputs(where, outputs, source)
        self._spouts[id] = SpoutSpec(id, source, kind, parallelism, streams, options)
        return self._default_stream(id, streams)

    @overload
    def set_source(self, spout: Stream[T], source: Callable[[], Spout[T]]) -> None: ...
    @overload
    def set_source(self, spout: Stream[T], source: AsyncValues[T]) -> None: ...
    @overload
    def set_source(self, spout: Stream[T], source: Values[T] | None) -> None: ...
    def set_source(self, spout: Stream[Any], source: object) -> None:
        """Give an existing spout another source; its streams and options stay. It gets one task where several could
        not share that source (law S8). Runs that have begun go on with the old one.

        Raises :class:`~stormlet.errors.InvalidTopology` if ``spout`` is not a stream of a spout of this topology,
        and for an object that is not a source.
        """
        id = self._spout_of(spout)
        self._spouts[id] = self._spouts[id].with_source(source)

    def source_of(self, spout: Stream[Any]) -> object:
        """Return the source of a spout; None for one that ``running.emit`` alone feeds.

        Raises :class:`~stormlet.errors.InvalidTopology` if ``spout`` is not a stream of a spout of this topology.
        """
        return self._spouts[self._spout_of(spout)].source

    def _spout_of(self, spout: str | Stream[Any]) -> str:
        """Return the id of a spout that is named by its id or by one of its streams."""
        id: object = spout
        if isinstance(spout, Stream) and spout.topology is self:
            id = spout.component
        if not isinstance(id, str) or id not in self._spouts:
            raise InvalidTopology(
                f"{spout!r} is neither the id nor a stream of a spout of topology {self.name!r}; "
                f"spouts: {listed(self._spouts)}"
            )
        return id
