"""The part of the native code of launches (`direct_code`) that compares a launch with a plan.

It runs no Python, so nothing changes meanwhile: dictionaries are looked up by strings, methods of tensors are called where
PyTorch has no modes.
"""

from __future__ import annotations

from typing import Final

TEXT: Final = """
; Whether a launch fits a plan. Its slots are written meanwhile.
define internal i1 @fits(ptr %process, ptr %plan, ptr %args, i64 %count, ptr %names, i64 %programs) {{
entry:
  %called = call i1 @called(ptr %plan, i64 %count, ptr %names, i64 %programs)
  br i1 %called, label %looks, label %no
looks:
  %unmoved = call i1 @unmoved(ptr %process, ptr %plan)
  br i1 %unmoved, label %values, label %no
values:
  %alike = call i1 @alike(ptr %process, ptr %plan, ptr %args)
  br i1 %alike, label %arrays, label %no
arrays:
  %arranged = call i1 @arranged(ptr %process, ptr %plan)
  ret i1 %arranged
no:
  ret i1 false
}}

; Whether a call is written as the plan's was, on a grid that is large enough.
define internal i1 @called(ptr %plan, i64 %count, ptr %names, i64 %programs) {{
entry:
  %least = word i64 %plan PLAN.least
  %enough = icmp sge i64 %programs, %least
  %positional = word i64 %plan PLAN.positional
  %as.many = icmp eq i64 %count, %positional
  %begins = and i1 %enough, %as.many
  br i1 %begins, label %named, label %no
named:
  %keywords = word i64 %plan PLAN.keywords
  %wanted = word ptr %plan PLAN.names
  %unnamed = icmp eq ptr %names, null
  br i1 %unnamed, label %none.named, label %some.named
none.named:
  %no.names = icmp eq i64 %keywords, 0
  br i1 %no.names, label %yes, label %no
some.named:
  %length = field i64 %names + {SIZE}
  %as.many.names = icmp eq i64 %length, %keywords
  br i1 %as.many.names, label %name, label %no
name:
  %n = phi i64 [ 0, %some.named ], [ %n.more, %name.is ]
  %more.names = icmp ult i64 %n, %keywords
  br i1 %more.names, label %name.of, label %yes
name.of:
  %name.first = getelementptr i8, ptr %names, i64 {ITEMS}
  %name.p = getelementptr ptr, ptr %name.first, i64 %n
  %name.now = load ptr, ptr %name.p, align 8
  %wanted.p = getelementptr ptr, ptr %wanted, i64 %n
  %name.then = load ptr, ptr %wanted.p, align 8
  %same.name = icmp eq ptr %name.now, %name.then
  br i1 %same.name, label %name.is, label %no
name.is:
  %n.more = add i64 %n, 1
  br label %name
yes:
  ret i1 true
no:
  ret i1 false
}}

; Whether globals and helpers are those of the plan, and methods of tensors run no Python.
define internal i1 @unmoved(ptr %process, ptr %plan) {{
entry:
  %modes = word ptr %plan PLAN.modes
  %no.tensors = icmp eq ptr %modes, null
  br i1 %no.tensors, label %places, label %mode
mode:
  %call = word ptr %process PROCESS.PyObject_Vectorcall
  %has.mode = call ptr %call(ptr %modes, ptr null, i64 0, ptr null)
  %mode.known = icmp ne ptr %has.mode, null
  br i1 %mode.known, label %modeless, label %refused
modeless:
  %drop = word ptr %process PROCESS.Py_DecRef
  call void %drop(ptr %has.mode)
  %not = word ptr %process PROCESS.False
  %no.mode = icmp eq ptr %has.mode, %not
  br i1 %no.mode, label %places, label %no
places:
  %looks = word i64 %plan PLAN.looks
  %look.first = word ptr %plan PLAN.places
  %find = word ptr %process PROCESS.PyDict_GetItemWithError
  br label %look
look:
  %l = phi i64 [ 0, %places ], [ %l.more, %look.is ]
  %look.p = phi ptr [ %look.first, %places ], [ %look.next, %look.is ]
  %more.looks = icmp ult i64 %l, %looks
  br i1 %more.looks, label %look.at, label %yes
look.at:
  %dictionary = word ptr %look.p LOOK.names
  %key = word ptr %look.p LOOK.name
  %then = word ptr %look.p LOOK.value
  %is.cell = icmp eq ptr %dictionary, null
  br i1 %is.cell, label %cell, label %named.value
cell:
  %in.cell = field ptr %key + {CELL}
  br label %looked
named.value:
  %found = call ptr %find(ptr %dictionary, ptr %key)
  %absent = icmp eq ptr %found, null
  br i1 %absent, label %failed, label %looked
failed:
  %occurred = word ptr %process PROCESS.PyErr_Occurred
  %error = call ptr %occurred()
  %no.error = icmp eq ptr %error, null
  br i1 %no.error, label %looked, label %refused
looked:
  %now = phi ptr [ %in.cell, %cell ], [ %found, %named.value ], [ null, %failed ]
  %same.value = icmp eq ptr %now, %then
  br i1 %same.value, label %look.is, label %no
look.is:
  %l.more = add i64 %l, 1
  %look.next = getelementptr i64, ptr %look.p, i64 {LOOK}
  br label %look
refused:
  %clear = word ptr %process PROCESS.PyErr_Clear
  call void %clear()
  ret i1 false
yes:
  ret i1 true
no:
  ret i1 false
}}

; Whether arguments are classified as the plan's were, one by one. Writes their slots, and where arrays begin and end.
define internal i1 @alike(ptr %process, ptr %plan, ptr %args) {{
entry:
  %dl = alloca [6 x i64], align 8
  %asked = alloca ptr, align 8
  %values = word i64 %plan PLAN.values
  %records = word ptr %plan PLAN.records
  %workspace = word ptr %process PROCESS.workspace
  %slots = getelementptr i8, ptr %workspace, i64 {ARGUMENTS}
  %bounds = word ptr %plan PLAN.bounds
  br label %value
value:
  %v = phi i64 [ 0, %entry ], [ %v.more, %value.fits ]
  %record = phi ptr [ %records, %entry ], [ %record.next, %value.fits ]
  %more.values = icmp ult i64 %v, %values
  br i1 %more.values, label %value.of, label %yes
value.of:
  %v.more = add i64 %v, 1
  %record.next = getelementptr i64, ptr %record, i64 {RECORD}
  %object.p = getelementptr ptr, ptr %args, i64 %v
  %object = load ptr, ptr %object.p, align 8
  %type = field ptr %object + {TYPE}
  %kind = word i64 %record RECORD.kind
  %slot = word i64 %record RECORD.slot
  %what = word i64 %record RECORD.what
  %of16 = word i64 %record RECORD.of16
  %any = icmp eq i64 %of16, {ANY}
  %place = word i64 %record RECORD.place
  switch i64 %kind, label %same [ i64 {NUMBER}, label %number
                                  i64 {INT}, label %int
                                  i64 {FLOAT}, label %float
                                  i64 {DOUBLE}, label %float
                                  i64 {BOOL}, label %bool
                                  i64 {ARRAY}, label %array
                                  i64 {TENSOR}, label %tensor ]
same:
  %address = ptrtoint ptr %object to i64
  %is.same = icmp eq i64 %address, %what
  br i1 %is.same, label %value.fits, label %no
number:
  %constant = call i64 @number(ptr %process, ptr %object)
  %is.number = icmp eq i64 %constant, %what
  br i1 %is.number, label %value.fits, label %no

int:
  %i = call i64 @number(ptr %process, ptr %object)
  %i.short = trunc i64 %i to i32
  %i.again = sext i32 %i.short to i64
  %i.fits = icmp eq i64 %i.again, %i
  %is.one = icmp eq i64 %i, 1
  %not.one = word i64 %record RECORD.not_one
  %one.excluded = icmp ne i64 %not.one, 0
  %is.excluded = and i1 %is.one, %one.excluded
  %is.allowed = xor i1 %is.excluded, true
  %is.int = and i1 %i.fits, %is.allowed
  br i1 %is.int, label %sixteenth, label %no
float:
  %float.type = word ptr %process PROCESS.float
  %is.float = icmp eq ptr %type, %float.type
  br i1 %is.float, label %real, label %no
real:
  %as.double = word ptr %process PROCESS.PyFloat_AsDouble
  %double = call double %as.double(ptr %object)
  %wide = bitcast double %double to i64
  %single = fptrunc double %double to float
  %bits = bitcast float %single to i32
  %narrow = zext i32 %bits to i64
  %is.wide = icmp eq i64 %kind, {DOUBLE}
  %real.word = select i1 %is.wide, i64 %wide, i64 %narrow
  br label %store
bool:
  %bool.type = word ptr %process PROCESS.bool
  %is.bool = icmp eq ptr %type, %bool.type
  br i1 %is.bool, label %truth, label %no
truth:
  %true = word ptr %process PROCESS.True
  %is.true = icmp eq ptr %object, %true
  %b.word = zext i1 %is.true to i64
  br label %store

array:
  %array.type = word ptr %process PROCESS.array
  %is.array = icmp eq ptr %type, %array.type
  br i1 %is.array, label %elements, label %no
elements:
  %array.dtype = field i64 %object + {DTYPE}
  %is.dtype = icmp eq i64 %array.dtype, %what
  %flags = field i32 %object + {FLAGS}
  %flags.word = zext i32 %flags to i64
  %needed = word i64 %record RECORD.flags
  %chosen = and i64 %flags.word, %needed
  %is.usable = icmp eq i64 %chosen, %needed
  %is.plain = and i1 %is.dtype, %is.usable
  %array.data = field i64 %object + {DATA}
  %array.ndim = field i32 %object + {NDIM}
  %array.shape = field ptr %object + {SHAPE}
  %array.strides = field ptr %object + {STRIDES}
  br i1 %is.plain, label %dimensions, label %no

tensor:
  %tensor.type = word ptr %record RECORD.type
  %is.tensor = icmp eq ptr %type, %tensor.type
  br i1 %is.tensor, label %read, label %no
read:
  %read.f = word ptr %record RECORD.read
  %unread = call i32 %read.f(ptr %object, ptr %dl)
  %is.read = icmp eq i32 %unread, 0
  br i1 %is.read, label %of.tensor, label %refused
of.tensor:
  %device = field i32 %dl + {DL_DEVICE}
  %is.cpu = icmp eq i32 %device, {CPU}
  %tensor.dtype = field i32 %dl + {DL_DTYPE}
  %tensor.dtype.word = zext i32 %tensor.dtype to i64
  %is.tensor.dtype = icmp eq i64 %tensor.dtype.word, %what
  %tensor.data = field i64 %dl + {DL_DATA}
  %offset = field i64 %dl + {DL_OFFSET}
  %tensor.begin = add i64 %tensor.data, %offset
  %tensor.ndim = field i32 %dl + {DL_NDIM}
  %tensor.shape = field ptr %dl + {DL_SHAPE}
  %tensor.strides = field ptr %dl + {DL_STRIDES}
  %has.strides = icmp ne ptr %tensor.strides, null
  %is.host = and i1 %is.cpu, %is.tensor.dtype
  %is.known = and i1 %is.host, %has.strides
  br i1 %is.known, label %negated, label %no
negated:
  store ptr %object, ptr %asked, align 8
  %method = word ptr %process PROCESS.PyObject_VectorcallMethod
  %is.neg = word ptr %process PROCESS.is_neg
  %neg = call ptr %method(ptr %is.neg, ptr %asked, i64 1, ptr null)
  %answered = icmp ne ptr %neg, null
  br i1 %answered, label %answer, label %refused
answer:
  %release = word ptr %process PROCESS.Py_DecRef
  call void %release(ptr %neg)
  %false = word ptr %process PROCESS.False
  %is.false = icmp eq ptr %neg, %false
  br i1 %is.false, label %dimensions, label %no

; The first byte of an array, and the one past its last, by its shape and strides (`weft.runtime.memory.extent_of`).
dimensions:
  %data = phi i64 [ %array.data, %elements ], [ %tensor.begin, %answer ]
  %ndim = phi i32 [ %array.ndim, %elements ], [ %tensor.ndim, %answer ]
  %shape = phi ptr [ %array.shape, %elements ], [ %tensor.shape, %answer ]
  %strides = phi ptr [ %array.strides, %elements ], [ %tensor.strides, %answer ]
  %in.bytes = phi i1 [ true, %elements ], [ false, %answer ]
  %size = word i64 %record RECORD.size
  %unit = select i1 %in.bytes, i64 1, i64 %size
  %at = word i64 %record RECORD.at
  %anywhere = icmp eq i64 %at, 0
  %as.before = icmp eq i64 %at, %data
  %is.there = or i1 %anywhere, %as.before
  %below.size = sub i64 %size, 1
  %astray = and i64 %data, %below.size
  %is.aligned = icmp eq i64 %astray, 0
  %is.right = and i1 %is.there, %is.aligned
  br i1 %is.right, label %dimension, label %no
dimension:
  %k = phi i32 [ 0, %dimensions ], [ %k.more, %reach ]
  %begin = phi i64 [ %data, %dimensions ], [ %begin.more, %reach ]
  %last = phi i64 [ %data, %dimensions ], [ %last.more, %reach ]
  %more.dimensions = icmp slt i32 %k, %ndim
  br i1 %more.dimensions, label %extend, label %filled
extend:
  %k.wide = zext i32 %k to i64
  %extent.p = getelementptr i64, ptr %shape, i64 %k.wide
  %extent = load i64, ptr %extent.p, align 8
  %is.empty = icmp eq i64 %extent, 0
  br i1 %is.empty, label %placed, label %reach
reach:
  %stride.p = getelementptr i64, ptr %strides, i64 %k.wide
  %stride = load i64, ptr %stride.p, align 8
  %step = mul i64 %stride, %unit
  %steps = sub i64 %extent, 1
  %way = mul i64 %step, %steps
  %goes.down = icmp slt i64 %way, 0
  %down = select i1 %goes.down, i64 %way, i64 0
  %up = select i1 %goes.down, i64 0, i64 %way
  %begin.more = add i64 %begin, %down
  %last.more = add i64 %last, %up
  %k.more = add i32 %k, 1
  br label %dimension
filled:
  %past = add i64 %last, %size
  br label %placed
placed:
  %first = phi i64 [ %begin, %filled ], [ %data, %extend ]
  %end = phi i64 [ %past, %filled ], [ %data, %extend ]
  %twice = shl i64 %place, 1
  %begin.p = getelementptr i64, ptr %bounds, i64 %twice
  %end.p = getelementptr i64, ptr %begin.p, i64 1
  store i64 %first, ptr %begin.p, align 8
  store i64 %end, ptr %end.p, align 8
  br label %sixteenth

sixteenth:
  %word = phi i64 [ %i, %int ], [ %data, %placed ]
  %rest = and i64 %word, 15
  %divides = icmp eq i64 %rest, 0
  %divides.word = zext i1 %divides to i64
  %as.said = icmp eq i64 %divides.word, %of16
  %is.sixteenth = or i1 %any, %as.said
  br i1 %is.sixteenth, label %store, label %no
store:
  %stored.word = phi i64 [ %word, %sixteenth ], [ %real.word, %real ], [ %b.word, %truth ]
  %slot.p = getelementptr i64, ptr %slots, i64 %slot
  store i64 %stored.word, ptr %slot.p, align 8
  br label %value.fits
value.fits:
  br label %value
refused:
  %clear = word ptr %process PROCESS.PyErr_Clear
  call void %clear()
  ret i1 false
yes:
  ret i1 true
no:
  ret i1 false
}}

; Whether arrays share bytes where the plan's did. Writes the bounds of those that are measured behind the slots.
define internal i1 @arranged(ptr %process, ptr %plan) {{
entry:
  %workspace = word ptr %process PROCESS.workspace
  %slots = getelementptr i8, ptr %workspace, i64 {ARGUMENTS}
  %bounds = word ptr %plan PLAN.bounds
  %arrays = word i64 %plan PLAN.arrays
  %order = word ptr %plan PLAN.order
  %apart = word i64 %plan PLAN.apart
  %must.be.apart = icmp ne i64 %apart, 0
  br label %ordered
ordered:
  %o = phi i64 [ 0, %entry ], [ %o.more, %above ]
  %below = phi i64 [ 0, %entry ], [ %ends, %above ]
  %more.arrays = icmp ult i64 %o, %arrays
  br i1 %more.arrays, label %above.it, label %judged
above.it:
  %which.p = getelementptr i64, ptr %order, i64 %o
  %which = load i64, ptr %which.p, align 8
  %begins.at = call i64 @bound(ptr %bounds, i64 %which, i64 0)
  %ends = call i64 @bound(ptr %bounds, i64 %which, i64 1)
  %is.above = icmp ule i64 %below, %begins.at
  br i1 %is.above, label %above, label %pairing
above:
  %o.more = add i64 %o, 1
  br label %ordered
pairing:
  %shares = call i1 @share(ptr %bounds, i64 %arrays)
  %are.apart = xor i1 %shares, true
  br label %judged
judged:
  %is.apart = phi i1 [ true, %ordered ], [ %are.apart, %pairing ]
  %as.planned = icmp eq i1 %is.apart, %must.be.apart
  br i1 %as.planned, label %measuring, label %no

measuring:
  %measured = word i64 %plan PLAN.measured
  %measures = word ptr %plan PLAN.which
  %behind = word i64 %plan PLAN.behind
  br label %measure
measure:
  %m = phi i64 [ 0, %measuring ], [ %m.more, %measure.one ]
  %more.measures = icmp ult i64 %m, %measured
  br i1 %more.measures, label %measure.one, label %yes
measure.one:
  %of.p = getelementptr i64, ptr %measures, i64 %m
  %of = load i64, ptr %of.p, align 8
  %of.begin = call i64 @bound(ptr %bounds, i64 %of, i64 0)
  %of.end = call i64 @bound(ptr %bounds, i64 %of, i64 1)
  %m.twice = shl i64 %m, 1
  %behind.slot = add i64 %behind, %m.twice
  %behind.p = getelementptr i64, ptr %slots, i64 %behind.slot
  store i64 %of.begin, ptr %behind.p, align 8
  %behind.end = getelementptr i64, ptr %behind.p, i64 1
  store i64 %of.end, ptr %behind.end, align 8
  %m.more = add i64 %m, 1
  br label %measure
yes:
  ret i1 true
no:
  ret i1 false
}}

; Whether any two of the arrays share a byte.
define internal i1 @share(ptr %bounds, i64 %arrays) {{
entry:
  br label %high
high:
  %j = phi i64 [ 0, %entry ], [ %j.more, %next.high ]
  %more.high = icmp ult i64 %j, %arrays
  br i1 %more.high, label %of.high, label %none
of.high:
  %j.more = add i64 %j, 1
  %j.begin = call i64 @bound(ptr %bounds, i64 %j, i64 0)
  %j.end = call i64 @bound(ptr %bounds, i64 %j, i64 1)
  %j.some = icmp ult i64 %j.begin, %j.end
  br i1 %j.some, label %low, label %next.high
low:
  %i = phi i64 [ 0, %of.high ], [ %i.more, %next.low ]
  %more.low = icmp ult i64 %i, %j
  br i1 %more.low, label %of.low, label %next.high
of.low:
  %i.more = add i64 %i, 1
  %i.begin = call i64 @bound(ptr %bounds, i64 %i, i64 0)
  %i.end = call i64 @bound(ptr %bounds, i64 %i, i64 1)
  %i.some = icmp ult i64 %i.begin, %i.end
  %reaches = icmp ult i64 %i.begin, %j.end
  %reached = icmp ult i64 %j.begin, %i.end
  %meet = and i1 %reaches, %reached
  %shares = and i1 %meet, %i.some
  br i1 %shares, label %some, label %next.low
next.low:
  br label %low
next.high:
  br label %high
some:
  ret i1 true
none:
  ret i1 false
}}

; The first byte of an array (%which 0), or the one past its last (1).
define internal i64 @bound(ptr %bounds, i64 %array, i64 %which) {{
entry:
  %twice = shl i64 %array, 1
  %at = add i64 %twice, %which
  %p = getelementptr i64, ptr %bounds, i64 %at
  %bound = load i64, ptr %p, align 8
  ret i64 %bound
}}

; The value of an int of 64 bits; the least such number for anything else.
define internal i64 @number(ptr %process, ptr %object) {{
entry:
  %over = alloca i32, align 4
  %kind = field ptr %object + {TYPE}
  %int = word ptr %process PROCESS.int
  %is.int = icmp eq ptr %kind, %int
  br i1 %is.int, label %ask, label %no
ask:
  %as = word ptr %process PROCESS.PyLong_AsLongLongAndOverflow
  %value = call i64 %as(ptr %object, ptr %over)
  %beyond = load i32, ptr %over, align 4
  %fits = icmp eq i32 %beyond, 0
  br i1 %fits, label %yes, label %no
yes:
  ret i64 %value
no:
  ret i64 -9223372036854775808
}}
"""
