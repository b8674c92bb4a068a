"""What passes and code generators say about an op that they do not support, or that they fail at."""

from __future__ import annotations

from xdsl.ir import Operation

from weft.ir.errors import CompilationError
from weft.ir.location import positions


class UnsupportedOpError(CompilationError):
    """weft does not support an op where it stands; ``why`` completes a sentence that begins with the op's name."""

    def __init__(self, op: Operation, why: str, *, hint: str | None = None) -> None:
        super().__init__(f"{op.name} {why}", positions(op), hint=hint)

    def __reduce__(self) -> tuple[object, ...]:
        _, arguments, state = super().__reduce__()
        return (_without_op, arguments, state)


def _without_op(message: str) -> UnsupportedOpError:
    """A copy before its places are set: an op cannot be pickled."""
    copy = UnsupportedOpError.__new__(UnsupportedOpError)
    CompilationError.__init__(copy, message)
    return copy


def name_op(error: Exception, op: Operation) -> None:
    """Adds the op and the user's line to an error that has none: to any but a `CompilationError`, as a note. The innermost caller
    comes first and is the one that counts."""
    if not isinstance(error, CompilationError) and not getattr(error, "__notes__", None):
        error.add_note("\n".join([f"while weft compiled {op.name}", *(p.render() for p in positions(op))]))
