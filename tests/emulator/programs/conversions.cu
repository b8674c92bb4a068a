// Numbers of other widths: half, bfloat16 and the two kinds of fp8.

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

extern "C" __global__ void narrow(const float *x, __half *h, __nv_bfloat16 *b, __nv_fp8_e4m3 *e4, __nv_fp8_e5m2 *e5, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    h[i] = __float2half_rn(x[i]);
    b[i] = __float2bfloat16_rn(x[i]);
    e4[i] = __nv_fp8_e4m3(x[i]);
    e5[i] = __nv_fp8_e5m2(x[i]);
}

extern "C" __global__ void widen(const __half *h, const __nv_bfloat16 *b, const __nv_fp8_e4m3 *e4, const __nv_fp8_e5m2 *e5, float *out,
                                 int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[4 * i] = __half2float(h[i]);
    out[4 * i + 1] = __bfloat162float(b[i]);
    out[4 * i + 2] = float(e4[i]);
    out[4 * i + 3] = float(e5[i]);
}

// Arithmetic on pairs.
extern "C" __global__ void pairs(const __half2 *x, const __half2 *y, __half2 *fused, const __nv_bfloat162 *u, const __nv_bfloat162 *v,
                                 __nv_bfloat162 *product, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    fused[i] = __hfma2(x[i], y[i], y[i]);
    product[i] = __hmul2(u[i], v[i]);
}

extern "C" __global__ void integers(const float *x, int *nearest, int *down, unsigned char *byte, unsigned long long *wide, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    nearest[i] = __float2int_rn(x[i]);
    down[i] = __float2int_rd(x[i]);
    byte[i] = (unsigned char)(unsigned)fminf(fmaxf(x[i], 0), 255);
    wide[i] = __float2ull_rz(fabsf(x[i]) * 1e9f);
}
