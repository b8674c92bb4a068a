// What the generated programs of emulator_fuzz.py are written in: on the device CUDA's own functions, on the host the same by hand.
// Integer arithmetic wraps, shifts and divisions are guarded, so that nothing here is undefined in C.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

typedef int8_t i8; typedef uint8_t u8; typedef int16_t i16; typedef uint16_t u16;
typedef int32_t i32; typedef uint32_t u32;
typedef long long i64; typedef unsigned long long u64;
typedef float f32; typedef double f64;

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#define FN __device__ __forceinline__
#define SLOW __device__ __noinline__
#define CONSTANT __constant__
typedef __half f16;
typedef __nv_bfloat16 bf16;
#else
#include <cfenv>
#define FN static inline
#define SLOW static __attribute__((noinline))
#define CONSTANT static const
struct f16 { u16 x; };
struct bf16 { u16 x; };
#endif

struct In {
  u64 c, C; i64 d, D; f64 q, Q; u32 a, A; i32 b, B; f32 p, P; u16 e; i16 g; f16 h, H; bf16 w, W; u8 j, J; i8 k, K;
};

// ---- integers ---------------------------------------------------------------------------------------------------------

template <class T> using U = typename std::conditional<(sizeof(T) < 8), u32, u64>::type;
#define BITS(T) (8 * (int)sizeof(T))
template <class T> FN T add(T x, T y) { return (T)((U<T>)x + (U<T>)y); }
template <class T> FN T sub(T x, T y) { return (T)((U<T>)x - (U<T>)y); }
template <class T> FN T mul(T x, T y) { return (T)((U<T>)x * (U<T>)y); }
template <class T> FN T neg(T x) { return (T)(0 - (U<T>)x); }
template <class T> FN T shl(T x, u32 n) { return (T)((U<T>)x << (n & (BITS(T) - 1))); }
template <class T> FN T shr(T x, u32 n) { return (T)(x >> (n & (BITS(T) - 1))); }
template <class T> FN T rotate(T x, u32 n) {
  typedef typename std::make_unsigned<T>::type V;
  n &= BITS(T) - 1;
  return n ? (T)(V)(((U<T>)(V)x << n) | ((U<T>)(V)x >> (BITS(T) - n))) : x;
}
template <class T> FN T quo(T x, T y) { return y == 0 ? x : (std::is_signed<T>::value && y == (T)-1) ? neg<T>(x) : (T)(x / y); }
template <class T> FN T rem(T x, T y) { return y == 0 ? x : (std::is_signed<T>::value && y == (T)-1) ? (T)0 : (T)(x % y); }
template <class T> FN T least(T x, T y) { return x < y ? x : y; }
template <class T> FN T most(T x, T y) { return x > y ? x : y; }
template <class T> FN T size(T x) { return x < 0 ? neg<T>(x) : x; }
template <class T> FN T swap_bytes(T x) {
  typedef typename std::make_unsigned<T>::type V;
  U<T> r = 0;
  for (int i = 0; i < (int)sizeof(T); i++) r = (sizeof(T) > 1 ? r << 8 : 0) | ((U<T>)(V)x >> 8 * i & 255);
  return (T)r;
}
template <class T> FN T clamp(T x, T low, T high) { return x < low ? low : x > high ? high : x; }
template <class T, class S> FN T saturated(S x) {  // S holds all of T
  S low = (S)(std::is_signed<T>::value ? -((u64)1 << (BITS(T) - 1)) : 0);
  S high = (S)((((u64)1 << (BITS(T) - 1 - std::is_signed<T>::value)) - 1) * 2 + 1);
  return x < low ? (T)low : x > high ? (T)high : (T)x;
}

#ifdef __CUDACC__
FN u32 popcount(u32 x) { return __popc(x); }
FN u32 popcount(u64 x) { return __popcll(x); }
FN u32 leading(u32 x) { return __clz(x); }
FN u32 leading(u64 x) { return __clzll(x); }
FN u32 first(u32 x) { return __ffs(x); }
FN u32 first(u64 x) { return __ffsll(x); }
FN u32 reverse(u32 x) { return __brev(x); }
FN u64 reverse(u64 x) { return __brevll(x); }
FN u32 high(u32 x, u32 y) { return __umulhi(x, y); }
FN i32 high(i32 x, i32 y) { return __mulhi(x, y); }
FN u64 high(u64 x, u64 y) { return __umul64hi(x, y); }
FN i64 high(i64 x, i64 y) { return __mul64hi(x, y); }
FN u32 bytes(u32 x, u32 y, u32 s) { return __byte_perm(x, y, s); }
FN u32 funnel_l(u32 x, u32 y, u32 s) { return __funnelshift_l(x, y, s); }
FN u32 funnel_r(u32 x, u32 y, u32 s) { return __funnelshift_r(x, y, s); }
FN u32 funnel_lc(u32 x, u32 y, u32 s) { return __funnelshift_lc(x, y, s); }
FN u32 funnel_rc(u32 x, u32 y, u32 s) { return __funnelshift_rc(x, y, s); }
FN u32 sad(i32 x, i32 y, u32 z) { return __sad(x, y, z); }
FN u32 sad(u32 x, u32 y, u32 z) { return __usad(x, y, z); }
FN i32 mul24(i32 x, i32 y) { return __mul24(x & 0xffff, y & 0x7fff); }  // nvcc takes it that it does not overflow
FN u32 mul24(u32 x, u32 y) { return __umul24(x, y); }
FN i32 half_sum(i32 x, i32 y) { return __hadd(x, y); }
FN u32 half_sum(u32 x, u32 y) { return __uhadd(x, y); }
FN i32 half_sum_up(i32 x, i32 y) { return __rhadd(x, y); }
FN u32 half_sum_up(u32 x, u32 y) { return __urhadd(x, y); }
FN i32 dot4(i32 x, i32 y, i32 z) { return __dp4a(x, y, z); }
FN u32 dot4(u32 x, u32 y, u32 z) { return __dp4a(x, y, z); }
FN i32 dot2(i32 x, i32 y, i32 z) { return __dp2a_lo(x, y, z); }
FN u32 dot2(u32 x, u32 y, u32 z) { return __dp2a_hi(x, y, z); }
#define ASM2(name, T, op, c, d) FN T name(T x, u32 n, u32 m) { T r; asm(op " %0, %1, %2, %3;" : "=" c(r) : c(x), "r"(n), "r"(m)); return r; }
ASM2(field, u32, "bfe.u32", "r", "r")
ASM2(field, i32, "bfe.s32", "r", "r")
ASM2(field, u64, "bfe.u64", "l", "l")
ASM2(field, i64, "bfe.s64", "l", "l")
FN u32 insert(u32 x, u32 y, u32 n, u32 m) { u32 r; asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(r) : "r"(x), "r"(y), "r"(n), "r"(m)); return r; }
FN u64 insert(u64 x, u64 y, u32 n, u32 m) { u64 r; asm("bfi.b64 %0, %1, %2, %3, %4;" : "=l"(r) : "l"(x), "l"(y), "r"(n), "r"(m)); return r; }
FN u32 find(u32 x) { u32 r; asm("bfind.u32 %0, %1;" : "=r"(r) : "r"(x)); return r; }
FN u32 find(i32 x) { u32 r; asm("bfind.s32 %0, %1;" : "=r"(r) : "r"(x)); return r; }
FN u32 find(u64 x) { u32 r; asm("bfind.u64 %0, %1;" : "=r"(r) : "l"(x)); return r; }
FN u32 find(i64 x) { u32 r; asm("bfind.shiftamt.s64 %0, %1;" : "=r"(r) : "l"(x)); return r; }
FN u64 wide(u32 x, u32 y, u64 z) { u64 r; asm("mad.wide.u32 %0, %1, %2, %3;" : "=l"(r) : "r"(x), "r"(y), "l"(z)); return r; }
FN i64 wide(i32 x, i32 y, i64 z) { i64 r; asm("mad.wide.s32 %0, %1, %2, %3;" : "=l"(r) : "r"(x), "r"(y), "l"(z)); return r; }
FN i32 wide(i16 x, i16 y, i32 z) { i32 r; asm("mad.wide.s16 %0, %1, %2, %3;" : "=r"(r) : "h"(x), "h"(y), "r"(z)); return r; }
FN i32 mad_hi_sat(i32 x, i32 y, i32 z) { i32 r; asm("mad.hi.sat.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z)); return r; }
FN i32 add_sat(i32 x, i32 y) { i32 r; asm("add.sat.s32 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y)); return r; }
FN i32 sub_sat(i32 x, i32 y) { i32 r; asm("sub.sat.s32 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y)); return r; }
FN u32 lop(u32 x, u32 y, u32 z) { u32 r; asm("lop3.b32 %0, %1, %2, %3, 0xB6;" : "=r"(r) : "r"(x), "r"(y), "r"(z)); return r; }
FN u64 sum_top(u64 x, u64 y, u64 z, u64 v) {  // the upper half of (x:y) + (z:v)
  u64 r; asm("{.reg .u64 t; add.cc.u64 t, %2, %4; addc.u64 %0, %1, %3;}" : "=l"(r) : "l"(x), "l"(y), "l"(z), "l"(v)); return r;
}
FN u64 difference_top(u64 x, u64 y, u64 z, u64 v) {
  u64 r; asm("{.reg .u64 t; sub.cc.u64 t, %2, %4; subc.u64 %0, %1, %3;}" : "=l"(r) : "l"(x), "l"(y), "l"(z), "l"(v)); return r;
}
FN u32 simd(int which, u32 x, u32 y) {
  switch (which) {
    case 0: return __vadd4(x, y);
    case 1: return __vsubss2(x, y);
    case 2: return __vabsdiffu4(x, y);
    case 3: return __vmaxs2(x, y);
    case 4: return __vminu4(x, y);
    case 5: return __vavgu4(x, y);
    case 6: return __vcmpgts2(x, y);
    case 7: return __vsetleu4(x, y);
    case 8: return __vaddus4(x, y);
    case 9: return __vaddss4(x, y);
    case 10: return __vabsdiffs2(x, y);
    case 11: return __vmins4(x, y);
    case 12: return __vsadu4(x, y);
    case 13: return __vnegss4(x);
    case 14: return __vhaddu4(x, y);
    case 15: return __viaddmax_s32(x, y, 100);
    case 16: return __viaddmin_u32(x, y, 1u << 31);
    case 17: return __vimax3_s32_relu(x, y, -5);
    case 18: return __viaddmax_s16x2_relu(x, y, 0x00058000);
    case 19: return __vimin3_u16x2(x, y, 0x7fff8000);
    case 20: { bool p, q; u32 r = __vibmax_s16x2(x, y, &p, &q); return r ^ (p * 2u + q); }
    default: return __vsads2(x, y);
  }
}
#else
FN u32 popcount(u32 x) { return __builtin_popcount(x); }
FN u32 popcount(u64 x) { return __builtin_popcountll(x); }
FN u32 leading(u32 x) { return x ? __builtin_clz(x) : 32; }
FN u32 leading(u64 x) { return x ? __builtin_clzll(x) : 64; }
FN u32 first(u32 x) { return __builtin_ffs(x); }
FN u32 first(u64 x) { return __builtin_ffsll(x); }
template <class T> FN T reverse(T x) { T r = 0; for (int i = 0; i < BITS(T); i++) r |= (x >> i & 1) << (BITS(T) - 1 - i); return r; }
FN u32 high(u32 x, u32 y) { return (u64)x * y >> 32; }
FN i32 high(i32 x, i32 y) { return (i64)x * y >> 32; }
FN u64 high(u64 x, u64 y) { return (unsigned __int128)x * y >> 64; }
FN i64 high(i64 x, i64 y) { return (__int128)x * y >> 64; }
FN u32 bytes(u32 x, u32 y, u32 s) {
  u64 both = (u64)y << 32 | x;
  u32 r = 0;
  for (int i = 0; i < 4; i++) r |= (u32)(both >> 8 * (s >> 4 * i & 7) & 255) << 8 * i;
  return r;
}
FN u32 funnel_lc(u32 x, u32 y, u32 s) { u64 both = (u64)y << 32 | x; return s >= 32 ? x : both << s >> 32; }
FN u32 funnel_rc(u32 x, u32 y, u32 s) { u64 both = (u64)y << 32 | x; return s >= 32 ? y : both >> s; }
FN u32 funnel_l(u32 x, u32 y, u32 s) { return funnel_lc(x, y, s & 31); }
FN u32 funnel_r(u32 x, u32 y, u32 s) { return funnel_rc(x, y, s & 31); }
FN u32 sad(i32 x, i32 y, u32 z) { return z + (x < y ? (u32)y - x : (u32)x - y); }
FN u32 sad(u32 x, u32 y, u32 z) { return z + (x < y ? y - x : x - y); }
FN i32 low24(i32 x) { return (i32)((u32)x << 8) >> 8; }
FN i32 mul24(i32 x, i32 y) { return low24(x & 0xffff) * low24(y & 0x7fff); }
FN u32 mul24(u32 x, u32 y) { return (u32)((u64)(x & 0xffffff) * (y & 0xffffff)); }
FN i32 half_sum(i32 x, i32 y) { return ((i64)x + y) >> 1; }
FN u32 half_sum(u32 x, u32 y) { return ((u64)x + y) >> 1; }
FN i32 half_sum_up(i32 x, i32 y) { return ((i64)x + y + 1) >> 1; }
FN u32 half_sum_up(u32 x, u32 y) { return ((u64)x + y + 1) >> 1; }
FN i32 dot4(i32 x, i32 y, i32 z) { u32 r = z; for (int i = 0; i < 4; i++) r += (i8)(x >> 8 * i) * (i8)(y >> 8 * i); return r; }
FN u32 dot4(u32 x, u32 y, u32 z) { for (int i = 0; i < 4; i++) z += (u8)(x >> 8 * i) * (u8)(y >> 8 * i); return z; }
FN i32 dot2(i32 x, i32 y, i32 z) { u32 r = z; for (int i = 0; i < 2; i++) r += (i16)(x >> 16 * i) * (i8)(y >> 8 * i); return r; }
FN u32 dot2(u32 x, u32 y, u32 z) { for (int i = 0; i < 2; i++) z += (u32)(u16)(x >> 16 * i) * (u8)(y >> (8 * i + 16)); return z; }
// bfe, bfi: the position and the length are the lowest byte of their operands; bits above the top are the sign bit's (bfe.s) or 0.
template <class T> FN T field(T x, u32 n, u32 m) {
  n &= 255; m &= 255;
  bool sign = false;
  if (std::is_signed<T>::value && m) { u32 top = n + m - 1; sign = x >> (top > BITS(T) - 1u ? BITS(T) - 1 : top) & 1; }
  u64 r = 0;
  for (u32 i = 0; i < BITS(T); i++) r |= (u64)(i < m && n + i < BITS(T) ? x >> (n + i) & 1 : sign) << i;
  return (T)r;
}
template <class T> FN T insert(T x, T y, u32 n, u32 m) {
  n &= 255; m &= 255;
  for (u32 i = 0; i < m && n + i < BITS(T); i++) y = (y & ~((T)1 << (n + i))) | ((x >> i & 1) << (n + i));
  return y;
}
template <class T> FN u32 found(T x) { for (int i = BITS(T) - 1; i >= 0; i--) if (x >> i & 1) return i; return 0xffffffff; }
FN u32 find(u32 x) { return found(x); }
FN u32 find(i32 x) { return found((u32)(x < 0 ? ~x : x)); }
FN u32 find(u64 x) { return found(x); }
FN u32 find(i64 x) { u32 r = found((u64)(x < 0 ? ~x : x)); return r == 0xffffffff ? r : 63 - r; }
FN u64 wide(u32 x, u32 y, u64 z) { return (u64)x * y + z; }
FN i64 wide(i32 x, i32 y, i64 z) { return (i64)((u64)((i64)x * y) + (u64)z); }
FN i32 wide(i16 x, i16 y, i32 z) { return (i32)((u32)(x * y) + (u32)z); }
FN i32 mad_hi_sat(i32 x, i32 y, i32 z) { return saturated<i32, i64>(((i64)x * y >> 32) + z); }
FN i32 add_sat(i32 x, i32 y) { return saturated<i32, i64>((i64)x + y); }
FN i32 sub_sat(i32 x, i32 y) { return saturated<i32, i64>((i64)x - y); }
FN u32 lop(u32 x, u32 y, u32 z) {
  u32 r = 0;
  for (int i = 0; i < 32; i++) r |= (0xB6u >> ((x >> i & 1) << 2 | (y >> i & 1) << 1 | (z >> i & 1)) & 1) << i;
  return r;
}
FN u64 sum_top(u64 x, u64 y, u64 z, u64 v) { return x + z + (y + v < y); }
FN u64 difference_top(u64 x, u64 y, u64 z, u64 v) { return x - z - (y < v); }
template <class T, class F> FN u32 parts(u32 x, u32 y, F f) {
  u32 r = 0;
  for (int i = 0; i < 32; i += BITS(T)) r |= ((u32)f((T)(x >> i), (T)(y >> i)) & (u32)(((u64)1 << BITS(T)) - 1)) << i;
  return r;
}
FN u32 simd(int which, u32 x, u32 y) {
  u32 total = 0;
  switch (which) {
    case 0: return parts<u8>(x, y, [](i32 a, i32 b) { return a + b; });
    case 1: return parts<i16>(x, y, [](i32 a, i32 b) { return clamp(a - b, -32768, 32767); });
    case 2: return parts<u8>(x, y, [](i32 a, i32 b) { return a < b ? b - a : a - b; });
    case 3: return parts<i16>(x, y, [](i32 a, i32 b) { return a > b ? a : b; });
    case 4: return parts<u8>(x, y, [](i32 a, i32 b) { return a < b ? a : b; });
    case 5: return parts<u8>(x, y, [](i32 a, i32 b) { return (a + b + 1) >> 1; });
    case 6: return parts<i16>(x, y, [](i32 a, i32 b) { return a > b ? -1 : 0; });
    case 7: return parts<u8>(x, y, [](i32 a, i32 b) { return a <= b; });
    case 8: return parts<u8>(x, y, [](i32 a, i32 b) { return clamp(a + b, 0, 255); });
    case 9: return parts<i8>(x, y, [](i32 a, i32 b) { return clamp(a + b, -128, 127); });
    case 10: return parts<i16>(x, y, [](i32 a, i32 b) { return a < b ? b - a : a - b; });
    case 11: return parts<i8>(x, y, [](i32 a, i32 b) { return a < b ? a : b; });
    case 12: parts<u8>(x, y, [&](i32 a, i32 b) { return total += a < b ? b - a : a - b; }); return total;
    case 13: return parts<i8>(x, y, [](i32 a, i32) { return clamp(-a, -128, 127); });
    case 14: return parts<u8>(x, y, [](i32 a, i32 b) { return (a + b) >> 1; });
    case 15: return most<i32>(x + y, 100);
    case 16: return least<u32>(x + y, 1u << 31);
    case 17: return most<i32>(most<i32>(x, y), 0);
    case 18: return parts<i16>(parts<i16>(x, y, [](i32 a, i32 b) { return a + b; }), 0x00058000, [](i32 a, i32 b) { return most(most(a, b), 0); });
    case 19: return parts<u16>(parts<u16>(x, y, [](i32 a, i32 b) { return least(a, b); }), 0x7fff8000, [](i32 a, i32 b) { return least(a, b); });
    case 20: return parts<i16>(x, y, [](i32 a, i32 b) { return most(a, b); }) ^ (((i16)(x >> 16) >= (i16)(y >> 16)) * 2u + ((i16)x >= (i16)y));
    default: parts<i16>(x, y, [&](i32 a, i32 b) { return total += a < b ? b - a : a - b; }); return total;
  }
}
#endif

// ---- 128 bits, memory -------------------------------------------------------------------------------------------------

typedef unsigned __int128 u128;
FN u128 both(u64 x, u64 y) { return (u128)x << 64 | y; }
FN u64 product128(u64 x, u64 y, u32 n) { return (u64)((u128)x * y >> (n & 127)); }
FN u64 mixed128(u64 x, u64 y, u64 z, u32 n) { return (u64)((both(x, y) * z + both(z, x)) >> (n & 127)); }
FN u64 quotient128(u64 x, u64 y, u64 z) { return z ? (u64)(both(x, y) / z) : 5; }
FN u64 remainder128(u64 x, u64 y, u64 z, u64 v) { return z | v ? (u64)(both(x, y) % both(z, v)) : 6; }
FN i64 shifted128(i64 x, u64 y, u32 n) { return (i64)(((__int128)x << 64 | y) >> (n & 127)); }

struct alignas(16) Bytes { u8 b[32]; };  // read and written as any type
template <class T> FN T load(const Bytes& m, u32 i) { T r; memcpy(&r, __builtin_assume_aligned(m.b + (i & (32 - sizeof(T))), sizeof(T)), sizeof(T)); return r; }
template <class T> FN void store(Bytes& m, u32 i, T x) { memcpy(__builtin_assume_aligned(m.b + (i & (32 - sizeof(T))), sizeof(T)), &x, sizeof(T)); }

CONSTANT i8 table_i8[8] = {0, -1, 127, -128, 5, -77, 64, 1};
CONSTANT u16 table_u16[8] = {0, 65535, 32768, 1, 1000, 255, 256, 43690};
CONSTANT i32 table_i32[8] = {0, -1, 2147483647, -2147483647 - 1, 12, -100000, 65536, 3};
CONSTANT i64 table_i64[8] = {0, -1, 9223372036854775807ll, -5000000000ll, 4294967296ll, 7, -2, 1ll << 52};
CONSTANT f32 table_f32[8] = {0.0f, -0.0f, 1.5f, 3.4028235e38f, 1e-45f, -7.1f, 0.1f, 16777216.0f};
CONSTANT f64 table_f64[8] = {0.0, -0.0, 1e308, 5e-324, -2.5, 1.0 / 3, 1e22, 4294967297.0};
struct Row { i8 x; f64 y; u16 z[3]; };
CONSTANT Row rows[3] = {{-1, 0.5, {1, 2, 3}}, {100, -1e-5, {65535, 0, 9}}, {7, 1e9, {4}}};

#ifdef __CUDACC__
#define ATOM(name, T, function) FN T name(T* p, T x) { return function(p, x); }
#else
#define ATOM(name, T, function) FN T name(T* p, T x) { T old = *p; *p = name##_of(old, x); return old; }
FN u32 inc_of(u32 o, u32 x) { return o >= x ? 0 : o + 1; }
FN u32 dec_of(u32 o, u32 x) { return o == 0 || o > x ? x : o - 1; }
template <class T> FN T plus_of(T o, T x) { return add<T>(o, x); }
template <> f32 plus_of(f32 o, f32 x) { return o + x; }
template <> f64 plus_of(f64 o, f64 x) { return o + x; }
template <class T> FN T lowest_of(T o, T x) { return o < x ? o : x; }
template <class T> FN T highest_of(T o, T x) { return o > x ? o : x; }
template <class T> FN T all_bits_of(T o, T x) { return o & x; }
template <class T> FN T any_bits_of(T o, T x) { return o | x; }
template <class T> FN T odd_bits_of(T o, T x) { return o ^ x; }
template <class T> FN T exch_of(T, T x) { return x; }
#endif
ATOM(inc, u32, atomicInc) ATOM(dec, u32, atomicDec) ATOM(plus, u32, atomicAdd) ATOM(plus, i32, atomicAdd) ATOM(plus, u64, atomicAdd)
ATOM(plus, f32, atomicAdd) ATOM(plus, f64, atomicAdd) ATOM(lowest, u32, atomicMin) ATOM(lowest, i32, atomicMin) ATOM(lowest, u64, atomicMin)
ATOM(lowest, i64, atomicMin) ATOM(highest, u32, atomicMax) ATOM(highest, i32, atomicMax) ATOM(highest, u64, atomicMax) ATOM(highest, i64, atomicMax)
ATOM(all_bits, u32, atomicAnd) ATOM(any_bits, u64, atomicOr) ATOM(odd_bits, u32, atomicXor) ATOM(odd_bits, u64, atomicXor) ATOM(exch, u32, atomicExch)
ATOM(exch, u64, atomicExch) ATOM(exch, f32, atomicExch)
#ifdef __CUDACC__
FN u32 cas(u32* p, u32 x, u32 y) { return atomicCAS(p, x, y); }
FN u64 cas(u64* p, u64 x, u64 y) { return atomicCAS(p, x, y); }
FN u16 cas(u16* p, u16 x, u16 y) { return atomicCAS(p, x, y); }
#else
template <class T> FN T cas(T* p, T x, T y) { T o = *p; if (o == x) *p = y; return o; }
#endif

// ---- floats -----------------------------------------------------------------------------------------------------------

#ifdef FLUSH  // subnormal f32 are zero; that a copy is one still says nothing
FN u64 bits(f32 x) { u32 r; memcpy(&r, &x, 4); return x != x ? 0x7fc00000 : r & 0x7f800000 ? r : r & 0x80000000; }
#else
FN u64 bits(f32 x) { u32 r; memcpy(&r, &x, 4); return x != x ? 0x7fc00000 : r; }
#endif
FN u64 bits(f64 x) { u64 r; memcpy(&r, &x, 8); return x != x ? 0x7ff8000000000000 : r; }
FN u64 bits(f16 x) { u16 r; memcpy(&r, &x, 2); return (r & 0x7fff) > 0x7c00 ? 0x7e00 : r; }
FN u64 bits(bf16 x) { u16 r; memcpy(&r, &x, 2); return (r & 0x7fff) > 0x7f80 ? 0x7fc0 : r; }
template <class T> FN u64 bits(T x) { return (u64)(typename std::make_unsigned<T>::type)x; }
FN f32 float_of(u32 x) { f32 r; memcpy(&r, &x, 4); return r; }
FN f64 float_of(u64 x) { f64 r; memcpy(&r, &x, 8); return r; }

template <class T> FN T with_sign(T x, T y) { return y != y ? fabs(x) : copysign(x, y); }  // a NaN's sign says nothing

enum { RN, RZ, RU, RD };

#ifdef __CUDACC__
#define MODES(name, type, ps, as, stem)                                             \
  template <int M> FN type name ps {                                                \
    return M == RN ? stem##_rn as : M == RZ ? stem##_rz as : M == RU ? stem##_ru as : stem##_rd as; \
  }
MODES(sum, f32, (f32 x, f32 y), (x, y), __fadd)
MODES(difference, f32, (f32 x, f32 y), (x, y), __fsub)
MODES(product, f32, (f32 x, f32 y), (x, y), __fmul)
MODES(quotient, f32, (f32 x, f32 y), (x, y), __fdiv)
MODES(root, f32, (f32 x), (x), __fsqrt)
MODES(inverse, f32, (f32 x), (x), __frcp)
MODES(fused, f32, (f32 x, f32 y, f32 z), (x, y, z), __fmaf)
MODES(sum, f64, (f64 x, f64 y), (x, y), __dadd)
MODES(difference, f64, (f64 x, f64 y), (x, y), __dsub)
MODES(product, f64, (f64 x, f64 y), (x, y), __dmul)
MODES(quotient, f64, (f64 x, f64 y), (x, y), __ddiv)
MODES(root, f64, (f64 x), (x), __dsqrt)
MODES(inverse, f64, (f64 x), (x), __drcp)
MODES(fused, f64, (f64 x, f64 y, f64 z), (x, y, z), __fma)
MODES(to_f32, f32, (f64 x), (x), __double2float)
MODES(to_f32, f32, (i32 x), (x), __int2float)
MODES(to_f32, f32, (u32 x), (x), __uint2float)
MODES(to_f32, f32, (i64 x), (x), __ll2float)
MODES(to_f32, f32, (u64 x), (x), __ull2float)
MODES(to_f64, f64, (i64 x), (x), __ll2double)
MODES(to_f64, f64, (u64 x), (x), __ull2double)
MODES(to_i32, i32, (f32 x), (x), __float2int)
MODES(to_u32, u32, (f32 x), (x), __float2uint)
MODES(to_i64, i64, (f32 x), (x), __float2ll)
MODES(to_u64, u64, (f32 x), (x), __float2ull)
MODES(to_i32, i32, (f64 x), (x), __double2int)
MODES(to_u32, u32, (f64 x), (x), __double2uint)
MODES(to_i64, i64, (f64 x), (x), __double2ll)
MODES(to_u64, u64, (f64 x), (x), __double2ull)
FN f32 lower(f32 x, f32 y) { return fminf(x, y); }
FN f32 upper(f32 x, f32 y) { return fmaxf(x, y); }
FN f64 lower(f64 x, f64 y) { return fmin(x, y); }
FN f64 upper(f64 x, f64 y) { return fmax(x, y); }
FN f32 unit(f32 x) { return __saturatef(x); }
#else
static const int MODE[] = {FE_TONEAREST, FE_TOWARDZERO, FE_UPWARD, FE_DOWNWARD};
#define UNDER(T, e) { fesetround(MODE[M]); volatile T r_ = (e); fesetround(FE_TONEAREST); return r_; }
template <int M, class T> FN T sum(T a, T b) { volatile T x = a, y = b; UNDER(T, x + y) }
template <int M, class T> FN T difference(T a, T b) { volatile T x = a, y = b; UNDER(T, x - y) }
template <int M, class T> FN T product(T a, T b) { volatile T x = a, y = b; UNDER(T, x * y) }
template <int M, class T> FN T quotient(T a, T b) { volatile T x = a, y = b; UNDER(T, x / y) }
template <int M, class T> FN T root(T a) { volatile T x = a; UNDER(T, std::sqrt(x)) }
template <int M, class T> FN T inverse(T a) { volatile T x = a; UNDER(T, 1 / x) }
template <int M, class T> FN T fused(T a, T b, T c) { volatile T x = a, y = b, z = c; UNDER(T, std::fma((T)x, (T)y, (T)z)) }
template <int M, class S> FN f32 to_f32(S a) { volatile S x = a; UNDER(f32, (f32)x) }
template <int M, class S> FN f64 to_f64(S a) { volatile S x = a; UNDER(f64, (f64)x) }
template <int M, class T, class S> FN T to_integer(S a) {  // cvt saturates; what NaN gives is by the types (PTX ISA, cvt)
  if (a != a) return BITS(T) == 64 || sizeof(S) == 8 ? (T)((u64)1 << (BITS(T) - 1)) : 0;
  f64 x = M == RN ? std::nearbyint((f64)a) : M == RZ ? std::trunc((f64)a) : M == RU ? std::ceil((f64)a) : std::floor((f64)a);
  f64 top = std::ldexp(1.0, BITS(T) - std::is_signed<T>::value);
  u64 most = ((u64)1 << (BITS(T) - 1 - std::is_signed<T>::value)) * 2 - 1;
  if (x >= top) return (T)most;
  if (x < (std::is_signed<T>::value ? -top : 0)) return std::is_signed<T>::value ? (T)(most + 1) : 0;
  return (T)x;
}
template <int M, class S> FN i32 to_i32(S a) { return to_integer<M, i32, S>(a); }
template <int M, class S> FN u32 to_u32(S a) { return to_integer<M, u32, S>(a); }
template <int M, class S> FN i64 to_i64(S a) { return to_integer<M, i64, S>(a); }
template <int M, class S> FN u64 to_u64(S a) { return to_integer<M, u64, S>(a); }
template <class T> FN T lower(T x, T y) { return x != x ? y : y != y ? x : x == y ? (std::signbit(x) ? x : y) : x < y ? x : y; }
template <class T> FN T upper(T x, T y) { return x != x ? y : y != y ? x : x == y ? (std::signbit(x) ? y : x) : x > y ? x : y; }
FN f32 unit(f32 x) { return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; }
#endif

template <class T, class S> FN T whole(S x) {  // a float as an integer, where that is defined in C
  const S top = (S)((u64)1 << (BITS(T) - 1 - std::is_signed<T>::value)) * 2;
  return x > (std::is_signed<T>::value ? -top : (S)-1) && x < top ? (T)x : (T)7;
}

// ---- 16-bit floats ----------------------------------------------------------------------------------------------------

#ifdef __CUDACC__
template <class H> FN H narrow(f32 x);
template <> FN f16 narrow<f16>(f32 x) { return __float2half_rn(x); }
template <> FN bf16 narrow<bf16>(f32 x) { return __float2bfloat16_rn(x); }
FN f32 widen(f16 x) { return __half2float(x); }
FN f32 widen(bf16 x) { return __bfloat162float(x); }
template <class H> FN H h_add(H x, H y) { return __hadd(x, y); }
template <class H> FN H h_sub(H x, H y) { return __hsub(x, y); }
template <class H> FN H h_mul(H x, H y) { return __hmul(x, y); }
template <class H> FN H h_fma(H x, H y, H z) { return __hfma(x, y, z); }
template <class H> FN H h_relu(H x, H y, H z) { return __hfma_relu(x, y, z); }
template <class H> FN H h_neg(H x) { return __hneg(x); }
template <class H> FN H h_abs(H x) { return __habs(x); }
template <class H> FN H h_min(H x, H y) { return __hmin(x, y); }
template <class H> FN H h_max(H x, H y) { return __hmax(x, y); }
template <class H> FN H h_max_nan(H x, H y) { return __hmax_nan(x, y); }
template <class H> FN i32 h_lt(H x, H y) { return __hlt(x, y); }
template <class H> FN i32 h_ne(H x, H y) { return __hne(x, y); }
template <class H> FN i32 h_geu(H x, H y) { return __hgeu(x, y); }
template <class H> FN i32 h_equ(H x, H y) { return __hequ(x, y); }
template <class H> FN H h_sat(H x, H y) { return __hadd_sat(x, y); }
template <class H> FN H h_floor(H x) { return hfloor(x); }
template <class H> FN H h_rint(H x) { return hrint(x); }
FN f16 h_pair(f16 x, f16 y, f16 z, f16 v) { __half2 r = __hfma2(__halves2half2(x, y), __halves2half2(z, v), __halves2half2(y, x)); return __hadd(__low2half(r), __high2half(r)); }
FN bf16 h_pair(bf16 x, bf16 y, bf16 z, bf16 v) { __nv_bfloat162 r = __hfma2(__halves2bfloat162(x, y), __halves2bfloat162(z, v), __halves2bfloat162(y, x)); return __hadd(__low2bfloat16(r), __high2bfloat16(r)); }
template <class H> FN H h_of(i32 x);
template <> FN f16 h_of<f16>(i32 x) { return __int2half_rn(x); }
template <> FN bf16 h_of<bf16>(i32 x) { return __int2bfloat16_rn(x); }
template <class H> FN H h_double(f64 x);
template <> FN f16 h_double<f16>(f64 x) { return __double2half(x); }
template <> FN bf16 h_double<bf16>(f64 x) { return __double2bfloat16(x); }
template <class H> FN H h_of(i64 x);
template <> FN f16 h_of<f16>(i64 x) { return __ll2half_rn(x); }
template <> FN bf16 h_of<bf16>(i64 x) { return __ll2bfloat16_rn(x); }
template <class H> FN H h_of(u32 x);
template <> FN f16 h_of<f16>(u32 x) { return __uint2half_rn(x); }
template <> FN bf16 h_of<bf16>(u32 x) { return __uint2bfloat16_rn(x); }
MODES(h_i64, i64, (f16 x), (x), __half2ll)
MODES(h_i64, i64, (bf16 x), (x), __bfloat162ll)
MODES(h_u32, u32, (f16 x), (x), __half2uint)
MODES(h_u32, u32, (bf16 x), (x), __bfloat162uint)
MODES(to_f16, f16, (f32 x), (x), __float2half)
MODES(to_bf16, bf16, (f32 x), (x), __float2bfloat16)
FN i16 h_short(f16 x) { return __half2short_rn(x); }
FN i16 h_short(bf16 x) { return __bfloat162short_rn(x); }
#else
FN f32 widen(f16 x) { _Float16 r; memcpy(&r, &x, 2); return r; }
FN f32 widen(bf16 x) { return float_of((u32)x.x << 16); }
// To the format by the definition: to a multiple of the unit in the last place, in the direction of M.
template <class H, int M> FN H rounded(f64 v) {
  const int digits = sizeof(H) && std::is_same<H, f16>::value ? 10 : 7, least = digits == 10 ? -14 : -126, top = digits == 10 ? 15 : 127;
  H r;
  u16 sign = std::signbit(v) ? 0x8000 : 0, infinity = digits == 10 ? 0x7c00 : 0x7f80;
  if (v != v) { r.x = 0x7fff; return r; }
  if (std::isinf(v)) { r.x = sign | infinity; return r; }
  if (v == 0) { r.x = sign; return r; }
  int e = std::ilogb(v) < least ? least : std::ilogb(v);
  f64 n = std::ldexp(std::fabs(v), digits - e), whole = std::floor(n), rest = n - whole;
  bool up = M == RN ? rest > 0.5 || (rest == 0.5 && std::fmod(whole, 2) == 1) : M == RZ ? false : rest > 0 && (M == RU) == !sign;
  u32 pattern = (u32)(whole + up);
  pattern += (u32)(e - least) << digits;  // the leading bit of a normal number adds one to the exponent
  if (e > top || pattern >= infinity) pattern = M == RN || (M != RZ && (M == RU) == !sign) ? infinity : infinity - 1;
  r.x = sign | (u16)pattern;
  return r;
}
// As rounded to odd: what is rounded once more to fewer digits is then rounded once.
FN f64 odd(f64 s, f64 error) {
  if (error == 0 || error != error || std::isinf(s)) return s;
  u64 b; memcpy(&b, &s, 8);
  if (!(b & 1)) b += (error > 0) == (s > 0) ? 1 : -1;
  f64 r; memcpy(&r, &b, 8); return r;
}
FN f64 odd_sum(f64 x, f64 y) { f64 s = x + y, t = s - x; return odd(s, (x - (s - t)) + (y - t)); }
template <class H> FN H narrow(f32 x) { return rounded<H, RN>(x); }
template <class H> FN H h_add(H x, H y) { return rounded<H, RN>(odd_sum(widen(x), widen(y))); }
template <class H> FN H h_sub(H x, H y) { return rounded<H, RN>(odd_sum(widen(x), -widen(y))); }
template <class H> FN H h_mul(H x, H y) { return rounded<H, RN>((f64)widen(x) * widen(y)); }
template <class H> FN H h_fma(H x, H y, H z) { return rounded<H, RN>(odd_sum((f64)widen(x) * widen(y), widen(z))); }
template <class H> FN H h_relu(H x, H y, H z) { H r = h_fma(x, y, z); if (widen(r) <= 0) r.x = 0; return r; }
template <class H> FN H h_neg(H x) { x.x ^= 0x8000; return x; }
template <class H> FN H h_abs(H x) { x.x &= 0x7fff; return x; }
template <class H> FN H h_min(H x, H y) { return rounded<H, RN>(lower(widen(x), widen(y))); }
template <class H> FN H h_max(H x, H y) { return rounded<H, RN>(upper(widen(x), widen(y))); }
template <class H> FN H h_max_nan(H x, H y) { return widen(x) != widen(x) ? x : widen(y) != widen(y) ? y : h_max(x, y); }
template <class H> FN i32 h_lt(H x, H y) { return widen(x) < widen(y); }
template <class H> FN i32 h_ne(H x, H y) { return widen(x) < widen(y) || widen(x) > widen(y); }
template <class H> FN i32 h_geu(H x, H y) { return !(widen(x) < widen(y)); }
template <class H> FN i32 h_equ(H x, H y) { return !(widen(x) < widen(y)) && !(widen(x) > widen(y)); }
template <class H> FN H h_sat(H x, H y) { return rounded<H, RN>(unit(widen(h_add(x, y)))); }
template <class H> FN H h_floor(H x) { return rounded<H, RN>(std::floor(widen(x))); }
template <class H> FN H h_rint(H x) { return rounded<H, RN>(std::nearbyint(widen(x))); }
template <class H> FN H h_pair(H x, H y, H z, H v) { return h_add(h_fma(x, z, y), h_fma(y, v, x)); }
template <class H> FN H h_of(i32 x) { return rounded<H, RN>(x); }
template <class H> FN H h_of(u32 x) { return rounded<H, RN>(x); }
template <class H> FN H h_of(i64 x) { return rounded<H, RN>(odd_sum((f64)(x >> 32) * 4294967296.0, (f64)(u32)x)); }
template <int M, class H> FN i64 h_i64(H x) { return to_i64<M>(widen(x)); }
template <int M, class H> FN u32 h_u32(H x) { return to_u32<M>(widen(x)); }
template <class H> FN H h_double(f64 x) { return rounded<H, RN>(x); }
template <int M> FN f16 to_f16(f32 x) { return rounded<f16, M>(x); }
template <int M> FN bf16 to_bf16(f32 x) { return rounded<bf16, M>(x); }
template <class H> FN i16 h_short(H x) { f32 v = widen(x); return v != v ? 0 : (i16)clamp<f32>(std::nearbyint(v), -32768, 32767); }
#endif

// ---- kernels ----------------------------------------------------------------------------------------------------------

#ifdef __CUDACC__
#define KERNEL(name) extern "C" __global__ void name(const In* all, u64* results) { \
  const In& in = all[blockIdx.x * blockDim.x + threadIdx.x]; \
  u64* out = results + 8 * (blockIdx.x * blockDim.x + threadIdx.x); \
  __shared__ u64 everyone[128]; u64* near = everyone + threadIdx.x; u64* far = out + 7;
#define END(name) }
#else
#define KERNEL(name) static void one_##name(const In& in, u64* out) { u64 near[1]; u64* far = out + 7;
#ifdef FLUSH
#define SET_FLUSH __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
#define UNSET_FLUSH __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() & ~0x8040u);
#else
#define SET_FLUSH
#define UNSET_FLUSH
#endif
#define END(name) } extern "C" void name(const In* all, u64* results, i32 n) { SET_FLUSH for (i32 i = 0; i < n; i++) one_##name(all[i], results + 8 * i); UNSET_FLUSH }
#endif
