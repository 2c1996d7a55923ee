"""Arguments that a bolt of a stream keeps, and that cannot be saved with its state.

A class may use an argument up in its constructor. So only one that it keeps as it is counts, as far as the code of the
constructor shows: under the name of the parameter, or that name behind an underscore. What is made in there is seen
when the stream starts.
"""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Iterator, Mapping
from functools import partial
from types import CodeType, FunctionType
from typing import IO, Any, cast

from stormlet.core.shortened import shortened
from stormlet.model.components import BoltBase
from stormlet.model.description import BoltSpec
from stormlet.model.logic import what_is_called
from stormlet.model.signatures import signature_of


def unsaved(bolt: BoltSpec) -> Iterator[str]:
    """Iterate over the arguments of a bolt that a stream cannot save: a sentence for each."""
    logic: object = bolt.logic
    made = what_is_called(logic)
    if not isinstance(logic, partial) or not isinstance(made, type) or not _saves_attributes(made):
        return
    kept = _names_in(getattr(inspect.getattr_static(made, "__init__"), "__code__", None))
    for name, value in _arguments(cast("partial[object]", logic)).items():
        if kept & {name, f"_{name}"} and not can_be_saved(value):
            yield (
                f"bolt {bolt.id!r} keeps its argument {name}={shortened(value)}, and a stream cannot save that; pass a "
                "function of a module in the place of a lambda, make it in prepare, or define __getstate__"
            )


def can_be_saved(value: object) -> bool:
    """True for what can be pickled on an executor, where functions of ``__main__`` are not found."""
    try:
        _Pickler(cast("IO[bytes]", _Nowhere()), pickle.HIGHEST_PROTOCOL).dump(value)
    except Exception:
        return False
    return True


class _Nowhere:
    def write(self, data: bytes) -> None:
        """Forget it."""


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, FunctionType) and obj.__module__ == "__main__":
            raise pickle.PicklingError(obj.__qualname__)
        return NotImplemented


def _saves_attributes(made: type[Any]) -> bool:
    return (
        issubclass(made, BoltBase) and getattr(cast("Any", made), "__getstate__", None) is object.__getstate__
    )


def _arguments(logic: partial[object]) -> Mapping[str, object]:
    return signature_of(logic.func).bind_partial(*logic.args, **logic.keywords).arguments


def _names_in(code: CodeType | None) -> set[object]:
    """The names of attributes that code may set; a frozen dataclass names them in constants."""
    return set() if code is None else {*code.co_names, *code.co_consts}
