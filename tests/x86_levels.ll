; Functions whose code names the features of the levels of x86-64, one or two each.
declare <4 x float> @llvm.fma.v4f32(<4 x float>, <4 x float>, <4 x float>)
declare <16 x float> @llvm.fma.v16f32(<16 x float>, <16 x float>, <16 x float>)
declare i64 @llvm.ctpop.i64(i64)
declare i64 @llvm.ctlz.i64(i64, i1)
declare i64 @llvm.cttz.i64(i64, i1)
declare i64 @llvm.bswap.i64(i64)
declare <16 x i32> @llvm.ctlz.v16i32(<16 x i32>, i1)
declare <4 x float> @llvm.floor.v4f32(<4 x float>)
declare <16 x i8> @llvm.abs.v16i8(<16 x i8>, i1)
define <4 x float> @a(<4 x float> %x) { %y = call <4 x float> @llvm.fma.v4f32(<4 x float> %x, <4 x float> %x, <4 x float> %x) ret <4 x float> %y }
define <16 x float> @b(<16 x float> %x) { %y = call <16 x float> @llvm.fma.v16f32(<16 x float> %x, <16 x float> %x, <16 x float> %x) ret <16 x float> %y }
define i64 @c(i64 %x) { %y = call i64 @llvm.ctpop.i64(i64 %x) ret i64 %y }
define i64 @d(i64 %x) { %y = call i64 @llvm.ctlz.i64(i64 %x, i1 0) ret i64 %y }
define i64 @e(i64 %x) { %y = call i64 @llvm.cttz.i64(i64 %x, i1 0) ret i64 %y }
define i64 @f(i64 %x, i64 %y) { %n = xor i64 %x, -1 %z = and i64 %n, %y ret i64 %z }
define i64 @g(i64 %x, i64 %y) { %z = shl i64 %x, %y ret i64 %z }
define void @h(ptr %p, i64 %x) { %y = call i64 @llvm.bswap.i64(i64 %x) store i64 %y, ptr %p ret void }
define <8 x float> @i(<8 x half> %x) { %y = fpext <8 x half> %x to <8 x float> ret <8 x float> %y }
define <16 x i32> @j(<16 x i32> %x) { %y = call <16 x i32> @llvm.ctlz.v16i32(<16 x i32> %x, i1 0) ret <16 x i32> %y }
define <8 x i64> @k(<8 x i64> %x) { %y = mul <8 x i64> %x, %x ret <8 x i64> %y }
define <64 x i8> @l(<64 x i8> %x, <64 x i8> %y) { %c = icmp sgt <64 x i8> %x, %y %z = select <64 x i1> %c, <64 x i8> %x, <64 x i8> zeroinitializer ret <64 x i8> %z }
define <4 x i32> @m(<4 x i32> %x, <4 x i32> %y) { %c = icmp ugt <4 x i32> %x, %y %z = select <4 x i1> %c, <4 x i32> %x, <4 x i32> zeroinitializer ret <4 x i32> %z }
define <4 x float> @n(<4 x float> %x) { %y = call <4 x float> @llvm.floor.v4f32(<4 x float> %x) ret <4 x float> %y }
define <16 x i8> @o(<16 x i8> %x) { %y = call <16 x i8> @llvm.abs.v16i8(<16 x i8> %x, i1 0) ret <16 x i8> %y }
define <8 x i32> @p(<8 x i32> %x) { %y = mul <8 x i32> %x, %x ret <8 x i32> %y }
define i128 @q(ptr %p) { %y = load atomic i128, ptr %p seq_cst, align 16 ret i128 %y }
