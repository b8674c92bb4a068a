"""A launch that is prepared once and repeated: ``again = kernel[grid].bind(*args)``, then ``again()``.

`bind` decides all that a launch decides: the code, the grid, the place, the numbers, where arrays lie. A repetition looks whether
that still holds, and calls native code:

| held                                   | at a repetition                                                       |
|----------------------------------------|-----------------------------------------------------------------------|
| arrays                                 | stay alive; their elements are read and written anew                  |
| where NumPy's arrays and tensors lie   | compared: a kernel must not write where an array was before           |
| shapes, strides and dtypes             | as they were: a kernel gets addresses, and its code is for the dtypes |
| numbers, compile-time values, the grid | as they were                                                          |
| globals and helpers that kernels read  | compared, as launches do                                              |
| whether launches are emulated          | compared                                                              |

Where something was compared and differs, RuntimeError says what, and nothing runs.

Native code compares all this and repeats the launch where it can (`weft.runtime.plans`). Elsewhere, as for tensors that have no
exchange interface, Python does. In the main thread a small launch of one thread then has memory for native code of its own,
which is a copy of what was packed once. Where that is in use (a launch within a signal handler), or was when something was
raised, and in other threads, a repetition is an ordinary launch from there on.
"""

from __future__ import annotations

import threading
from _thread import get_ident
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from weft.runtime import addresses
from weft.runtime.executable import Executable
from weft.runtime.executor import pool
from weft.runtime.memory import is_numpy_array
from weft.runtime.place import CURRENT
from weft.runtime.plans import Call, Plans

if TYPE_CHECKING:
    from weft.frontend.source import References
    from weft.runtime.arguments import Bound
    from weft.runtime.binding import Grid
    from weft.runtime.jit import Launchable

_current: Final = CURRENT.get


class Held(NamedTuple):
    """What a captured launch holds: of the kernel its name, and what the code was compiled from."""

    kernel: str
    references: References
    executable: Launchable
    bound: Bound
    grid: Grid


def captured(held: Held) -> Callable[[], None]:
    """What repeats a launch. Raises `ValueError` for a read-only array that the kernel writes through."""
    kernel, references, executable, bound, grid = held
    asked = _asked(bound)
    look, source = _look(list(asked.values()))
    known, place = look(source), _current()
    was = {name: ask() for name, ask in asked.items()}
    looks = tuple(references.looks)

    def check() -> None:
        if look(source) != known or _current() is not place or references.moved():
            reason = _changed({name: (was[name], ask()) for name, ask in asked.items()}, place)
            raise RuntimeError(f"kernel '{kernel}': {reason} since the launch was bound; bind it again")

    if not all(grid):
        return check
    code = executable
    if not (isinstance(code, Executable) and code.is_small and pool().share(grid)[2] == 1):

        def launch() -> None:
            check()
            executable.launch(bound, grid)

        return _direct(held, launch)

    main = threading.main_thread().ident
    entry, workspace = code.entry, code.standing(bound, grid)
    memory, whole = memoryview(workspace.block).cast("B")[workspace.offset :], slice(None)
    packed = bytes(memory)
    launch_words, thread_words = workspace.launch, workspace.thread
    free = [main]  # empty while a launch runs, and for good where an exception left it

    def launch_small() -> None:
        if look(source) != known or _current() is not place:
            check()
        for ask, name, value in looks:  # as `References.moved`, whose every call would be felt here
            if ask(name) is not value:
                check()
        if get_ident() not in free:
            code.launch(bound, grid)
            return
        mine = free.pop()
        memory[whole] = packed
        watch = pool().watch
        watch.leading = workspace  # as `Pool.lead`
        if watch.asleep:
            watch.wake()
        status = entry(launch_words, thread_words)
        watch.leading = None
        if watch.handler.installed:
            watch.disarm()
        if status:
            code.end(workspace, status)
        free.append(mine)

    return _direct(held, launch_small)


def _direct(held: Held, launch: Callable[[], None]) -> Callable[[], None]:
    """``launch``, in native code where that can be (`weft.runtime.plans`)."""
    _, references, executable, bound, grid = held
    if not isinstance(executable, Executable):
        return launch
    values = tuple(bound.values)
    plans = Plans(launch, (grid, *values))
    plans.add(executable, references, Call(values, {}, bound.parameters, bound.key))
    return plans.function


def _asked(bound: Bound) -> dict[str, Callable[[], Any]]:
    """What gives the address of each array that can be asked, by the parameter's name."""
    result: dict[str, Callable[[], Any]] = {}
    for parameter, value in zip(bound.parameters, bound.values, strict=True):
        if is_numpy_array(value):
            result[parameter.name] = partial(addresses.address_of, value)
        elif callable(ask := getattr(value, "data_ptr", None)):
            result[parameter.name] = ask
    return result


def _look(asked: Sequence[Callable[[], Any]]) -> tuple[Callable[[Any], Any], Any]:
    """A function and its argument that give all addresses, in the cheapest way."""
    arrays = [ask.args[0] for ask in asked if isinstance(ask, partial)]
    if addresses.WORDS is not None and arrays and len(arrays) == len(asked):
        return itemgetter(*(id(array) >> 3 for array in arrays)), addresses.WORDS
    return (lambda asked: [ask() for ask in asked]) if asked else id, asked


def _changed(where: Mapping[str, tuple[Any, Any]], place: object) -> str:
    """What differs, given where each array was and is, and where launches were run."""
    for name, (was, now) in where.items():
        if was != now:
            return f"parameter '{name}': the array's memory has moved"
    if _current() is not place:
        return "launches are run elsewhere (weft.emulate)"
    return "a global or a helper has changed"
