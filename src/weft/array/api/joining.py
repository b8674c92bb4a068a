"""Other ways to join, cut, turn and index arrays, made of those in `moving`."""

from __future__ import annotations

from collections.abc import Sequence

from weft.array.api.composition import Data, arrays, one, viewed
from weft.array.api.lazy import Array
from weft.array.api.moving import concatenate, flip, nonzero, stack, swapaxes
from weft.array.building import arranging
from weft.array.building.whole import require_plain
from weft.array.expression import views


def atleast_1d(x: Data) -> Array:
    """With a dimension of size 1 where there is none."""
    return _deep(one("atleast_1d", x), 1)


def atleast_2d(x: Data) -> Array:
    """With dimensions of size 1 in front until there are two."""
    return _deep(one("atleast_2d", x), 2)


def atleast_3d(x: Data) -> Array:
    """With dimensions of size 1 until there are three: a vector is the middle one, a matrix the first two."""
    return _deep(one("atleast_3d", x), 3)


def _deep(array: Array, rank: int) -> Array:
    shape = (1,) * (min(rank, 2) - array.ndim) + array.shape
    return array.reshape(shape + (1,) * (rank - len(shape)) if rank == 3 else shape)


def _each(op: str, x: Sequence[Data], rank: int) -> list[Array]:
    if not len(x):
        raise ValueError(f"'{op}' takes at least one array")
    return [_deep(array, rank) for array in arrays(op, *x)]


def vstack(x: Sequence[Data]) -> Array:
    """The arrays one below the other; vectors are rows."""
    return concatenate(_each("vstack", x, 2), 0)


def hstack(x: Sequence[Data]) -> Array:
    """The arrays side by side: along the second axis, vectors along the first."""
    given = _each("hstack", x, 1)
    return concatenate(given, 0 if given[0].ndim == 1 else 1)


def dstack(x: Sequence[Data]) -> Array:
    """The arrays one behind the other, along the third axis."""
    return concatenate(_each("dstack", x, 3), 2)


def column_stack(x: Sequence[Data]) -> Array:
    """The arrays side by side; vectors are columns."""
    given = _each("column_stack", x, 0)
    return concatenate([a.reshape(a.size, 1) if a.ndim < 2 else a for a in given], 1)


def array_split(x: Data, parts: int | Sequence[int], axis: int = 0) -> list[Array]:
    """Pieces along ``axis``: a number of them, the first ones an element longer where they cannot be equal, or cut at places."""
    array = one("array_split", x)
    require_plain("array_split", parts, axis)
    along = views.axis_of(axis, array.ndim, "array_split")
    size = array.shape[along]
    if isinstance(parts, Sequence):
        places = [slice(0, place).indices(size)[1] for place in parts]
    elif parts > 0:
        least, more = divmod(size, parts)
        places = [i * least + min(i, more) for i in range(1, parts)]
    else:
        raise ValueError(f"'array_split' takes a number of pieces above 0, found {parts}")
    pairs = zip([0, *places], [*places, size], strict=True)
    return [viewed(array, arranging.cut(array.node, along, a, max(a, b))) for a, b in pairs]


def rot90(x: Data, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """Turned by ``k`` quarters in the plane of two axes, from the first toward the second."""
    array = one("rot90", x)
    require_plain("rot90", k, axes)
    if array.ndim < 2:
        raise ValueError(f"'rot90' takes arrays of two dimensions or more, found {array.ndim}")
    a, b = (views.axis_of(axis, array.ndim, "rot90") for axis in axes)
    if a == b:
        raise ValueError(f"'rot90' takes two axes, found {axes}")
    match k % 4:
        case 0:
            return array
        case 1:
            return swapaxes(flip(array, b), a, b)
        case 2:
            return flip(array, (a, b))
        case _:
            return flip(swapaxes(array, a, b), b)


def flipud(x: Data) -> Array:
    """The rows in reverse order."""
    return flip(_of_rank("flipud", x, 1), 0)


def fliplr(x: Data) -> Array:
    """The columns in reverse order."""
    return flip(_of_rank("fliplr", x, 2), 1)


def _of_rank(op: str, x: Data, rank: int) -> Array:
    array = one(op, x)
    if array.ndim < rank:
        raise ValueError(f"'{op}' takes arrays of {rank} dimensions or more, found {array.ndim}")
    return array


def broadcast_arrays(*x: Data) -> list[Array]:
    """The arrays in the one shape they broadcast to."""
    given = arrays("broadcast_arrays", *x)
    shape = views.broadcast_shape("broadcast_arrays", *(a.shape for a in given))
    return [a.broadcast_to(shape) for a in given]


def argwhere(x: Data) -> Array:
    """The indices of the elements that are not zero, a row for each. Their number depends on the values, which are computed."""
    array = one("argwhere", x)
    found = nonzero(array if array.ndim else array.reshape(1))
    return stack(found, -1) if array.ndim else found[0].reshape(found[0].size, 1)[:, :0]


def flatnonzero(x: Data) -> Array:
    """The places in row-major order of the elements that are not zero."""
    array = one("flatnonzero", x)
    return nonzero(array.reshape(array.size))[0]
