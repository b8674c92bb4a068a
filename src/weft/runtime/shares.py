"""Claims of a launch whose grid is shared out: a thread's own share first, then the others (`weft.codegen.kernel`).

Kernels call this code by the address that the launch has, so that it is compiled once for a machine and not in each kernel, of
which it would be a tenth. It keeps nothing between two claims: a call takes little beside the atomic addition.
Where it cannot be had (`weft.runtime.helpers`), launches have one share.
"""

from __future__ import annotations

import hashlib
import sys
from functools import cache
from typing import Final

from weft.runtime import helpers
from weft.runtime.workspace import LAUNCH, MOST_SHARES, SHARE, SHARES, THREAD

SYMBOL: Final = "weft_claims"

_TEXT: Final = """
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)

; The first program of a claim of %chunk, and the one past its last: two zeros where nothing is left of %total. The first shares
; have one program more where they cannot be equal.
define {{ i64, i64 }} @{symbol}(ptr %launch, ptr %thread, i64 %total, i64 %chunk) {{
entry:
  %shares.p = getelementptr i8, ptr %launch, i64 {shares}
  %shares = load i64, ptr %shares.p, align 8
  %wanted.p = getelementptr i8, ptr %thread, i64 {share}
  %wanted = load i64, ptr %wanted.p, align 8
  %is.there = icmp ult i64 %wanted, %shares
  %own = select i1 %is.there, i64 %wanted, i64 0
  %size = udiv i64 %total, %shares
  %rest = urem i64 %total, %shares
  br label %look
look:
  %share = phi i64 [ %own, %entry ], [ %following, %other ]
  %left = phi i64 [ %shares, %entry ], [ %fewer, %other ]
  %equal = mul i64 %share, %size
  %longer = call i64 @llvm.umin.i64(i64 %share, i64 %rest)
  %low = add i64 %equal, %longer
  %is.longer = icmp ult i64 %share, %rest
  %one.more = zext i1 %is.longer to i64
  %here = add i64 %size, %one.more
  %line = and i64 %share, {last_line}
  %line.at = mul i64 %line, 8
  %in.line = udiv i64 %share, {lines}
  %at = add i64 %line.at, %in.line
  %counter = getelementptr i64, ptr %launch, i64 %at
  %seen = load atomic i64, ptr %counter monotonic, align 8
  %seems.open = icmp slt i64 %seen, %here
  br i1 %seems.open, label %take, label %other
take:
  %first = atomicrmw add ptr %counter, i64 %chunk monotonic, align 8
  %is.open = icmp slt i64 %first, %here
  br i1 %is.open, label %give, label %other
give:
  %wide = add i64 %first, %chunk
  %last = call i64 @llvm.smin.i64(i64 %wide, i64 %here)
  %begin = add i64 %low, %first
  %end = add i64 %low, %last
  %half = insertvalue {{ i64, i64 }} poison, i64 %begin, 0
  %range = insertvalue {{ i64, i64 }} %half, i64 %end, 1
  ret {{ i64, i64 }} %range
other:
  %fewer = sub i64 %left, 1
  %next = add i64 %share, 1
  %is.last = icmp eq i64 %next, %shares
  %following = select i1 %is.last, i64 0, i64 %next
  %more = icmp ne i64 %fewer, 0
  br i1 %more, label %look, label %none
none:
  ret {{ i64, i64 }} zeroinitializer
}}
"""

_LINES: Final = MOST_SHARES // 8
_NUMBERS: Final = {"shares": SHARES - LAUNCH, "share": SHARE - THREAD, "lines": _LINES, "last_line": _LINES - 1}


@cache
def text() -> str:
    """The code in LLVM IR."""
    return _TEXT.format(symbol=SYMBOL, **_NUMBERS)


_found: Final[list[int]] = []
"""The address of the code of this process, where it has been had."""


def claims() -> int:
    """The address of the code; 0 where it cannot be had."""
    if not _found:
        version = hashlib.sha256(text().encode()).hexdigest()
        may_compile = "weft.codegen.compile" in sys.modules
        address = helpers.native(SYMBOL, version, text if may_compile else None)
        if address is None:
            return 0
        _found.append(address)
    return _found[0]
