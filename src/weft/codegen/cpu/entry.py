"""The function that the runtime calls: claims programs from the shared counter and runs them.

`weft.codegen.kernel` states its signature.
"""

from __future__ import annotations

from llvmlite import ir

from weft.codegen.llvm.types import I32, I64, POINTER, Module


def emit_entry(module: Module, symbol: str, program: ir.Function) -> None:
    """The function the runtime calls: claims programs from the shared counter and runs them."""
    entry = ir.Function(
        module, ir.FunctionType(I32, [POINTER, POINTER, POINTER, I64, I64, I32, I32, I32, POINTER]), symbol
    )
    entry.attributes.add("nounwind")
    args, scratch, counter, total, chunk, nx, ny, nz, fault = entry.args
    start, claim, run, step, failed, done = (
        entry.append_basic_block(name) for name in ("start", "claim", "run", "step", "failed", "done")
    )
    builder = ir.IRBuilder(start)
    wide_x, wide_y = builder.zext(nx, I64), builder.zext(ny, I64)
    builder.branch(claim)
    builder.position_at_end(claim)
    first = builder.atomic_rmw("add", counter, chunk, "monotonic")
    end = builder.add(first, chunk)
    last = builder.select(builder.icmp_signed("<", end, total), end, total)
    builder.cbranch(builder.icmp_signed("<", first, total), run, done)
    builder.position_at_end(run)
    position = builder.phi(I64)
    position.add_incoming(first, claim)
    x = builder.urem(position, wide_x)
    rest = builder.udiv(position, wide_x)
    y, z = builder.urem(rest, wide_y), builder.udiv(rest, wide_y)
    ids = [builder.trunc(v, I32) for v in (x, y, z)]
    status = builder.call(program, [args, scratch, fault, *ids, nx, ny, nz])
    builder.cbranch(builder.icmp_unsigned("==", status, ir.Constant(I32, 0)), step, failed)
    builder.position_at_end(step)
    following = builder.add(position, ir.Constant(I64, 1))
    position.add_incoming(following, step)
    builder.cbranch(builder.icmp_signed("<", following, last), run, claim)
    builder.position_at_end(failed)
    builder.ret(ir.Constant(I32, 1))
    builder.position_at_end(done)
    builder.ret(ir.Constant(I32, 0))
