"""Dead code elimination of what loops carry: each condition for dropping a value, and what the new loop keeps of the old."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp, UnitAttr

from weft.ir.location import Position, location, positions
from weft.transforms import Dce

Kernel = Callable[[str, str], ModuleOp]
Body = Callable[[ModuleOp], str]
SIGNATURE = "%x: !tile.ptr<f32>, %n: i32, %m: i32"


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


def test_a_carried_value_that_the_body_reads_stays(kernel: Kernel, body_of: Body) -> None:
    """The results of %p, %v, %d and %c are unread. A store reads %p as its operand 0, the position of %p, and %v as its operand
    1; %v is yielded at its own position as well. %d and %c, which nothing reads, go; %k, whose result is read, does not."""
    module = kernel(
        SIGNATURE,
        """
        %z = tile.constant 1.0 : f32
        %u, %w, %e, %f, %g = scf.for %i = %n to %m step %n iter_args(%p = %x, %v = %z, %d = %n, %c = %m, %k = %n)
            -> (!tile.ptr<f32>, f32, i32, i32, i32) : i32 {
          tile.store %p, %v : !tile.ptr<f32>, f32
          scf.yield %x, %v, %d, %c, %k : !tile.ptr<f32>, f32, i32, i32, i32
        }
        %q = tile.addptr %x, %g : !tile.ptr<f32>, i32 to !tile.ptr<f32>
        tile.store %q, %z : !tile.ptr<f32>, f32
        """,
    )
    Dce().apply(Context(), module)
    module.verify()
    assert lines(body_of(module)) == lines(
        """
        %z = tile.constant 1.0 : f32
        %u, %w, %g = scf.for %i = %n to %m step %n iter_args(%p = %x, %v = %z, %k = %n) -> (!tile.ptr<f32>, f32, i32) : i32 {
          tile.store %p, %v : !tile.ptr<f32>, f32
          scf.yield %x, %v, %k : !tile.ptr<f32>, f32, i32
        }
        %q = tile.addptr %x, %g : !tile.ptr<f32>, i32 to !tile.ptr<f32>
        tile.store %q, %z : !tile.ptr<f32>, f32
        """
    )


def test_a_loop_that_carries_less_keeps_attributes_and_location(kernel: Kernel) -> None:
    """The user's line is what an error of code generation shows; attributes say how to pipeline the loop."""
    module = kernel(
        SIGNATURE,
        """
        %z = tile.constant 1.0 : f32
        %d = scf.for %i = %n to %m step %n iter_args(%a = %n) -> (i32) : i32 {
          tile.store %x, %z : !tile.ptr<f32>, f32
          scf.yield %a : i32
        }
        """,
    )
    loop = next(op for op in module.walk() if isinstance(op, scf.ForOp))
    loop.attributes["mine"] = UnitAttr()
    line = Position("kernel.py", 7, 4, "kernel")
    loop.location = location([line])
    Dce().apply(Context(), module)
    after = next(op for op in module.walk() if isinstance(op, scf.ForOp))
    assert after is not loop
    assert not after.results
    assert after.attributes == {"mine": UnitAttr()}
    assert positions(after) == (line,)
