"""Networks of permutes executed for all threads at once, on the parts of words: as a thread would, and with nothing else.

A *value* is an array of shape (warps, lanes, parts): which part of which element lies in each part of a word. Parts are bytes, or
elements below a byte. -1 is what no register holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weft.layout.planning.permutes import WORD_BITS, Network, Permute, Words, digit_bits

if TYPE_CHECKING:
    from numpy.typing import NDArray


def words_of(elements: NDArray[Any], words: Words) -> list[NDArray[Any]]:
    """The values that threads hold whose registers are ``elements``, numbers of shape (warps, lanes, registers)."""
    import numpy as np

    warps, lanes, registers = elements.shape
    cells = words.cells(int(registers))
    each = words.parts
    parts = WORD_BITS // min(8, words.bits)
    count = -(-(int(cells.max()) + 1) // parts)
    held = np.full((warps, lanes, count * parts), -1)
    held[:, :, cells] = elements[..., None] * each + np.arange(each)
    return [held[:, :, word * parts : (word + 1) * parts] for word in range(count)]


def elements_of(values: Sequence[NDArray[Any]], words: Words, registers: int, what: object) -> NDArray[Any]:
    """The elements in the registers of words. `RuntimeError` where parts of several elements come together."""
    import numpy as np

    cells = words.cells(registers)
    each = words.parts
    found: NDArray[Any] = np.concatenate(values, axis=2)[:, :, cells]
    whole: NDArray[Any] = found == found[..., :1] + np.arange(each)
    if not whole.all() or (found[..., 0] % each).any() or found.min() < 0:
        raise RuntimeError(f"{what}: the parts of an element come from several")
    return found[..., 0] // each


def executed(network: Network, sources: Sequence[NDArray[Any]], threads: NDArray[Any]) -> list[NDArray[Any]]:
    """All values of a network, first the words of ``sources`` that it names; ``threads`` are the numbers that thread bits count
    in, (warps, lanes)."""
    values = list(sources[: network.sources])
    for permute in network.permutes:
        values.append(_permuted(permute, values, threads, network.parts))
    return values


def _permuted(permute: Permute, values: Sequence[NDArray[Any]], threads: NDArray[Any], parts: int) -> NDArray[Any]:
    import numpy as np

    number: NDArray[Any] = sum(
        ((threads >> bit & 1) << place for place, bit in enumerate(permute.thread_bits)), threads * 0
    )
    digit = digit_bits(parts)
    places, mask = range(parts), (1 << digit) - 1
    digits: NDArray[Any] = np.array([[s >> digit * place & mask for place in places] for s in permute.selectors])
    # A byte of a selector moves several elements below a byte.
    each = int(values[permute.a].shape[2]) // parts
    named: NDArray[Any] = digits[:, :, None] * each + np.arange(each)
    taken: NDArray[Any] = named.reshape(len(digits), -1)[number]
    return np.take_along_axis(np.concatenate([values[permute.a], values[permute.b]], axis=2), taken, axis=2)
