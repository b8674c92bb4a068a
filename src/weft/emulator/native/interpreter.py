"""The text of the native interpreter: LLVM IR of every handler, and of what calls them (`weft.emulator.native.running`).

Everything is reached through one function, ``weft_emulator(which, a, b, c, d, e)``, because the loader exports one.
"""

from __future__ import annotations

from typing import Final

from weft.emulator.native import global_memory, running, shared
from weft.emulator.native.handlers import BITS, HANDLERS, VECTORS, Handler
from weft.emulator.native.running import Row
from weft.emulator.native.scalar import SUPPORT, translated


def _spelled(body: str) -> str:
    for name, element in VECTORS.items():
        body = body.replace(f"{name} ", f"<32 x {element}> ").replace(f"{name},", f"<32 x {element}>,")
        body = body.replace(f"{name})", f"<32 x {element}>)").replace(f"{name}\n", f"<32 x {element}>\n")
    return body + "\n"


def _vector(name: str) -> str:
    return f"<32 x {VECTORS[name]}>"


def _word(name: str, word: int, kind: str) -> str:
    return f"  %{name}.p = getelementptr i64, ptr %row, i64 {word}\n  %{name} = load {kind}, ptr %{name}.p\n"


def _load(name: str, vector: str) -> str:
    memory = "<32 x i8>" if vector == "V1" else _vector(vector)
    text = f"""
  %{name}.o = mul i64 %{name}.s, %warp
  %{name}.a = getelementptr i8, ptr %{name}.q, i64 %{name}.o
"""
    if vector == "V1":
        return (
            text
            + f"  %{name}.b = load {memory}, ptr %{name}.a, align 1\n  %{name} = trunc {memory} %{name}.b to <32 x i1>\n"
        )
    return text + f"  %{name} = load {memory}, ptr %{name}.a, align {BITS[vector] // 8}\n"


def _store(vector: str) -> str:
    size = max(BITS[vector], 8) // 8
    memory = "<32 x i8>" if vector == "V1" else _vector(vector)
    extend = "  %stored = zext <32 x i1> %r to <32 x i8>\n" if vector == "V1" else ""
    value = "%stored" if vector == "V1" else "%r"
    return f"""{extend}
  %d.o = mul i64 %warp, {32 * size}
  %d.a = getelementptr i8, ptr %d.q, i64 %d.o
  %d.old = load {memory}, ptr %d.a, align {size}
  %d.m = bitcast i32 %mask to <32 x i1>
  %d.new = select <32 x i1> %d.m, {memory} {value}, {memory} %d.old
  store {memory} %d.new, ptr %d.a, align {size}
"""


_WARPS: Final = """
  br label %warps
warps:
  %at = phi i64 [0, %entry], [%at.next, %warps]
  %at.word.p = getelementptr i64, ptr %list, i64 %at
  %at.word = load i64, ptr %at.word.p
  %warp = and i64 %at.word, 4294967295
  %lanes = lshr i64 %at.word, 32
  %mask = trunc i64 %lanes to i32
"""

_NEXT: Final = """
  %at.next = add i64 %at, 1
  %at.more = icmp slt i64 %at.next, %warps.n
  br i1 %at.more, label %warps, label %done
done:
  ret void
}
"""


def _handler(number: int, handler: Handler) -> str:
    """A function that runs its row for a list of ``n`` warps, at least one."""
    text = f"define internal void @h{number}(ptr %row, ptr %list, i64 %warps.n) {{\nentry:\n" + _word(
        "d.q", Row.RESULT, "ptr"
    )
    if "%immediate" in handler.body:
        text += _word("immediate", Row.IMMEDIATE, "i64")
    operands = list(zip("abc", handler.operands, (Row.A, Row.B, Row.C), strict=False))
    for name, _, word in operands:
        text += _word(f"{name}.q", word, "ptr") + _word(f"{name}.s", word + 1, "i64")
    text += _WARPS + "".join(_load(name, vector) for name, vector, _ in operands)
    return text + _spelled(handler.body + "\n") + _store(handler.result) + _NEXT


_ENTRY: Final = """
define i64 @weft_emulator(i64 %which, i64 %a, i64 %b, i64 %c, i64 %d, i64 %e) {
  switch i64 %which, label %table [i64 1, label %rows i64 2, label %region i64 3, label %shared
    i64 4, label %places i64 5, label %copy]
table:
  %address = ptrtoint ptr @handlers to i64
  ret i64 %address
rows:
  call i64 @rows(i64 %a, i64 %b, i64 %c, i64 %d)
  ret i64 0
region:
  call i64 @region(i64 %a)
  ret i64 0
shared:
  %made = call i64 @shared_access(i64 %a, i64 %b, i64 %c, i64 %d, i64 %e)
  ret i64 %made
places:
  %clean = call i64 @global_places(i64 %a, i64 %b, i64 %c, i64 %d, i64 %e)
  ret i64 %clean
copy:
  call i64 @global_copy(i64 %a, i64 %b, i64 %c, i64 %d, i64 %e)
  ret i64 0
}
"""

SYMBOL: Final = "weft_emulator"
"""The function of the object."""


def text() -> str:
    """The module. Its table of handlers is in the order of `HANDLERS`."""
    parts = [_handler(number, handler) for number, handler in enumerate(HANDLERS.values())]
    table = ", ".join(f"ptr @h{number}" for number in range(len(parts)))
    parts.append(f"@handlers = internal constant [{len(parts)} x ptr] [{table}]\n")
    parts += [translated(module.FUNCTIONS, module.NUMBERS) for module in (running, shared, global_memory)]
    return "".join(parts) + SUPPORT + _ENTRY
