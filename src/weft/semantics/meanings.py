"""What an operation does once its operands have one type: the vocabulary `Promotion.meaning` uses.

Types alone do not say what ``x // y`` is: int32 in Triton and in JAX, -3 in one and -4 in the other. So a system names the
meaning, and each executor (the frontend, `weft.array`, the NumPy evaluation in tests) has one implementation of each name and
never branches on the system. A name has one definition, edge cases included.
"""

from __future__ import annotations

from typing import Final

FUNCTIONS: Final[tuple[str, ...]] = (
    "sqrt",
    "rsqrt",
    "cbrt",
    "exp",
    "exp2",
    "log",
    "log2",
    "log10",
    "sin",
    "cos",
    "tan",
    "tanh",
    "erf",
    "sigmoid",
    *("log1p", "expm1", "sinh", "cosh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "erfc", "lgamma"),
)
"""The meanings that are functions of floats alone."""

QUESTIONS: Final[tuple[str, ...]] = ("isnan", "isinf", "isfinite", "isposinf", "isneginf", "signbit")
"""The meanings that ask about a number of any type, and give bool."""

COMPARISONS: Final = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
"""The meanings that compare."""

UNORDERED: Final = ("less_unordered", "less_equal_unordered", "not_equal_ordered")
"""The comparisons of floats that NaN answers the other way."""

FLUSHED: Final[tuple[str, ...]] = (
    *("add", "sub", "mul", "divide", "multiply_reciprocal", "floor_divide_xla", "floor_remainder"),
    *("truncate_remainder", "truncate_remainder_zero"),
    *(*COMPARISONS, *UNORDERED),
    *("floor_divide_quotient", "floor_remainder_fused"),
    *("minimum_nan", "maximum_nan", "clamp", "sign", "square", "floor", "ceil", "power", "logaddexp"),
    *("sqrt", "rsqrt", "cbrt", "exp", "exp2", "exp2_xla", "log", "log2", "log10", "tanh", "erf"),
    *("sigmoid", "sigmoid_xla", "logaddexp_xla", "logaddexp2_xla"),
    *("log1p", "sinh", "sinh_xla", "atan2", "asin", "asinh", "atanh", "lgamma", "reciprocal", "hypot", "heaviside"),
    *("identity", "minimum", "maximum"),
    *("sum", "prod", "mean", "max", "min", "argmax", "argmin", "cumsum", "cumprod", "cummax", "cummin"),
)
"""The meanings of floats with a form under which numbers below the type's normal range are zeros of their sign."""

TRUTHS: Final[frozenset[str]] = frozenset(
    (
        *QUESTIONS,
        *(f"{name}{form}" for name in UNORDERED for form in ("", "_flushed")),
        *(f"{name}{form}" for name in COMPARISONS for form in ("", "_left_integer", "_right_integer", "_flushed")),
    )
)
"""The meanings whose outcome is bool, whatever they are asked about."""

MEANINGS: Final[dict[str, str]] = {
    "add": "x + y; integers wrap, bools add modulo 2",
    "sub": "x - y; integers wrap, bools subtract modulo 2",
    "mul": "x * y; integers wrap",
    "mul_saturated": "the same, but what is beyond the type's largest number is that number, infinity too",
    "mul_left_bool": "y where x, a converted bool, is not 0, else 0: 0 for NaN too",
    "mul_right_bool": "x where y, a converted bool, is not 0, else 0: 0 for NaN too",
    "divide": "the quotient of floats, rounded once",
    "multiply_reciprocal": "x * (1 / y) of floats, the reciprocal rounded too",
    "multiply_reciprocal_left_bool": "the same, but 0 where x, a converted bool, is 0; a subnormal reciprocal is 0",
    "multiply_reciprocal_float16": "the same, computed in float32, but the reciprocal is rounded to float16",
    "multiply_reciprocal_bfloat16": "the same, computed in float32, but the reciprocal is rounded to bfloat16",
    "truncate_divide": "the quotient of integers rounded toward zero; x / 0 is 0, MIN / -1 is MIN",
    "truncate_divide_checked": "the same, but a zero divisor is an error, and so is MIN / -1 of 32 and 64 bits",
    "floor_divide": "the quotient rounded toward minus infinity; x // 0 of integers is 0, of floats x / 0",
    "floor_divide_stepped": "the same, but of floats each step of (x - x rem y) / y is rounded to the type",
    "floor_divide_xla": "the same, but x // 0 of integers is -1 if x is 0 or the type unsigned (all ones), else -2;"
    " of floats each step is rounded to the type, at last to the nearest whole number, halves away from 0",
    "floor_divide_checked": "the same, but a zero divisor of integers is an error",
    "floor_divide_quotient": "floor(x / y) of floats, the quotient rounded to the type",
    "ceil_divide": "(x + (y - 1)) with truncate_divide by y",
    "ceil_divide_floor": "(x + (y - 1)) with floor_divide by y",
    "truncate_remainder": "x - y * (x / y rounded toward zero): the sign is the dividend's; integer x rem 0 is x",
    "truncate_remainder_checked": "the same, but a zero divisor of integers is an error, and so is MIN rem -1 of 32 and 64 bits",
    "truncate_remainder_zero": "truncate_remainder, but integer x rem 0 is 0",
    "truncate_remainder_zero_checked": "the same, but a zero divisor of integers is an error",
    "floor_remainder": "x - y * floor(x / y): the sign is the divisor's; integer x mod 0 is 0, of floats NaN",
    "floor_remainder_checked": "the same, but a zero divisor of integers is an error",
    "floor_remainder_signed": "the same, but a zero remainder of floats has the divisor's sign, too",
    "floor_remainder_fused": "x - trunc(x / y) * y of floats, rounded once (16 bits: each step), and y more where the signs of"
    " x and y differ, unless it is 0",
    "power": "x ** y; integers wrap, a negative exponent gives 0",
    "power_xla": "the same, but the exponent of integers modulo 64 (unsigned), and 0 ** y is 0 unless y is 0",
    "power_units": "the same, but 1 and -1 to a negative power are 1 and -1",
    "power_checked": "the same, but a negative exponent of integers is an error",
    "and": "bitwise and",
    "or": "bitwise or",
    "xor": "bitwise exclusive or",
    "shift_left": "x << y; from the width on 0, the amount read as unsigned",
    "shift_right": "x >> y by the type's sign; from the width on only copies of the sign, the amount read as unsigned",
    "shift_right_arithmetic": "the same, with copies of the top bit whatever the type's sign",
    "shift_right_logical": "the same, with zeros whatever the type's sign",
    "shift_left_masked": "x << y in 32 bits (64 for 64-bit types), y modulo that width, wrapped to the type (bool: != 0)",
    "shift_right_masked": "x >> y by the type's sign, y modulo 32 (64 for 64-bit types)",
    "equal": "x == y",
    "not_equal": "x != y, true for NaN",
    "less": "x < y",
    "less_equal": "x <= y",
    "greater": "x > y",
    "greater_equal": "x >= y",
    "less_unordered": "not x >= y, so true for NaN",
    "less_equal_unordered": "not x > y, so true for NaN",
    "not_equal_ordered": "x < y or x > y, so false for NaN",
    "minimum": "the lesser; the number where one side is NaN",
    "maximum": "the greater; the number where one side is NaN",
    "minimum_nan": "the lesser; NaN where one side is NaN",
    "maximum_nan": "the greater; NaN where one side is NaN",
    "minimum_chosen": "minimum, but compared as if operands below the normal range were zeros; one of the operands is the result",
    "maximum_chosen": "maximum, but compared as if operands below the normal range were zeros; one of the operands is the result",
    "minimum_less": "x where x < y, else y, so y where one side is NaN",
    "maximum_greater": "x where x > y, else y, so y where one side is NaN",
    "select": "x where the condition holds, else y",
    "atan2": "the angle of the point (y, x)",
    "logaddexp": "log(exp(x) + exp(y)) without overflow",
    "logaddexp_xla": "max(x, y) + log1p(exp(-|x - y|)), each step rounded to the type; x + y where x - y is NaN",
    "clamp": "min(max(value, low), high)",
    "clamp_compare": "low where value < low, else value, then high where that is greater: NaN stays, as a bound it is no bound",
    "matmul": "the matrix product, accumulated in the type (narrow floats: in float32); of bools or and and",
    "concat": "one after the other",
    "identity": "x",
    "neg": "-x; integers wrap, a bool stays itself (modulo 2)",
    "not": "each bit inverted; a bool negated",
    "abs": "the absolute value; MIN stays MIN; of a complex number its modulus",
    "abs_compare": "-x where x < 0, else x: a zero keeps its sign",
    "sign": "-1, 0 or 1; NaN for NaN, a zero of floats stays",
    "sign_positive": "the same, but a zero of floats is +0",
    "sign_compare": "the same, but NaN is 0 and a zero of floats is +0",
    "square": "x * x; integers wrap",
    "real": "the real part",
    **dict.fromkeys(FUNCTIONS, "the function of floats"),
    "exp2_xla": "exp(x * log(2)), each step rounded to the type",
    "sigmoid_xla": "1 / (1 + exp(-x)), each step rounded to the type",
    "cosh_xla": "exp(x + log(1/2)) + exp(-x + log(1/2))",
    "sinh_xla": "exp(x + log(1/2)) - exp(-x + log(1/2)); below 1 the mean of e and e / (e + 1), where e is expm1(x)",
    "rsqrt_newton": "the same, but by x86's estimate and a step of Newton's: NaN for 0 and infinity, -infinity for subnormals",
    "floor": "the greatest integer not above x",
    "ceil": "the least integer not below x",
    **dict.fromkeys(QUESTIONS, "what its name asks, as a bool; no integer is NaN or infinite"),
    "rint": "the nearest whole number, halves to even",
    "round_away": "the nearest whole number, halves away from zero",
    "trunc": "the whole number next to x toward zero",
    "reciprocal": "1 / x; of integers toward zero, of 0 what x86 makes of infinity",
    "imag": "the imaginary part; of a real number 0",
    "conj": "the complex conjugate",
    "angle": "atan2(imag, real), so pi for a real number below zero and for -0.0",
    "angle_real": "pi below zero, NaN for NaN, else 0",
    "hypot": "sqrt(x * x + y * y) without overflow; infinity if one side is infinite",
    "copysign": "x with the sign of y",
    "heaviside": "0 below zero, 1 above, y at zero; NaN for NaN",
    "heaviside_compare": "the same, but 0 for NaN",
    "logaddexp2_xla": "max(x, y) + log1p(exp2_xla(-|x - y|)) * (1 / log(2)), as logaddexp_xla",
    "logaddexp2": "log2(2 ** x + 2 ** y) without overflow",
    "sum": "the sum of the elements, in the type",
    "prod": "the product of the elements, in the type",
    "mean": "the sum divided by the number of elements",
    "max": "the greatest element; NaN as in the system's maximum",
    "min": "the least element; NaN as in the system's minimum",
    "argmax": "the index of the first greatest element",
    "argmin": "the index of the first least element",
    "cumsum": "the sums of the elements up to each",
    "cumprod": "the products of the elements up to each, in the type",
    "cummax": "the greatest element up to each; NaN from the first NaN on",
    "cummin": "the least element up to each; NaN from the first NaN on",
    "var": "the squared distances from the mean, summed and divided by their number less ddof",
    "std": "the square root of var",
    "logsumexp": "log(sum(exp(x))) without overflow",
    "any": "whether an element is not zero",
    "all": "whether every element is not zero",
    "convert": "to an integer: toward zero, saturating, NaN to 0; between integers: wraps; to bool: != 0",
    "convert_wrap": "to an integer: toward zero, out of range as x86 (MIN; below 32 bits wrapped); integers wrap; to bool != 0",
    "convert_wrap_saturated": "the same, but to float8_e4m3fn what is beyond the largest number is that number, infinity too",
    "convert_truth": "of floats to bool: whether it is in the normal range of float32, float64, bfloat16, or not 0; NaN is not",
    "convert_by_float32": "convert, but by way of float32, and so rounded twice",
    "convert_flushed": "convert, but of float32, float64 and bfloat16 numbers below the normal range are zeros, before and after;"
    " float64 becomes bfloat16 by way of float32",
    "convert_round": "to an integer: nearest, halves away from 0, saturating; NaN: convert_wrap; integers saturate; bool rounds",
    **{
        f"{name}_{side}_integer": f"the same, but a negative {side} operand, an integer, is less than every float"
        for name in COMPARISONS
        for side in ("left", "right")
    },
    **{
        f"{name}_flushed": "the same, but operands and results of floats below the normal range are zeros"
        for name in FLUSHED
    },
    "minimum_flushed": "minimum, but what is below the normal range is a zero; beside NaN the other side stays as it is",
    "maximum_flushed": "maximum, but what is below the normal range is a zero; beside NaN the other side stays as it is",
    "heaviside_flushed": "heaviside, but x below the normal range is a zero; y stays",
    "power_flushed": "power, but a base below the normal range is half the least number, and such results are zeros",
    "cbrt_flushed": "cbrt, but of numbers below the normal range XLA's number: -5.6e-16 of float32 and bfloat16, 0 of float64",
    "asin_flushed": "asin, but numbers whose half is below the normal range are zeros",
}
"""Every meaning and its definition."""
