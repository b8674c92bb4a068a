// Matrix products in shared memory: with FMAs, and with mma.sync on tiles that cp.async brings, two in flight.

#define TILE 16
extern "C" __global__ void matmul(const float *a, const float *b, float *c, int m, int n, int k) {
    __shared__ float left[TILE][TILE], right[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0;
    for (int start = 0; start < k; start += TILE) {
        left[threadIdx.y][threadIdx.x] = a[row * k + start + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = b[(start + threadIdx.y) * n + column];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < TILE; i++) sum = fmaf(left[threadIdx.y][i], right[i][threadIdx.x], sum);
        __syncthreads();
    }
    c[row * n + column] = sum;
}

typedef unsigned short half_bits;

__device__ void copy16(unsigned to, const void *from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

// Block: 4 warps, each 16 rows of a 64 by 32 tile. a is (m, k), b is (k, n), both f16, row-major; c is f32.
extern "C" __global__ void __launch_bounds__(128)
    matmul_mma(const half_bits *a, const half_bits *b, float *c, int n, int k) {
    // Rows of 16 (32) elements and 8 of padding: the eight rows that ldmatrix reads begin in different banks.
    __shared__ __align__(16) half_bits left[2][64][24];
    __shared__ __align__(16) half_bits right[2][16][40];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int row0 = blockIdx.y * 64, column0 = blockIdx.x * 32;
    float acc[4][4] = {};

    auto bring = [&](int stage, int start) {
        int i = threadIdx.x;  // 64 rows of two 16-byte pieces, 16 rows of four
        copy16((unsigned)__cvta_generic_to_shared(&left[stage][i >> 1][(i & 1) * 8]), a + (row0 + (i >> 1)) * k + start + (i & 1) * 8);
        if (i < 64)
            copy16((unsigned)__cvta_generic_to_shared(&right[stage][i >> 2][(i & 3) * 8]),
                   b + (start + (i >> 2)) * n + column0 + (i & 3) * 8);
        asm volatile("cp.async.commit_group;" ::: "memory");
    };

    bring(0, 0);
    for (int start = 0, stage = 0; start < k; start += 16, stage ^= 1) {
        if (start + 16 < k) {
            bring(stage ^ 1, start + 16);
            asm volatile("cp.async.wait_group 1;" ::: "memory");
        } else {
            asm volatile("cp.async.wait_group 0;" ::: "memory");
        }
        __syncthreads();
        unsigned x[4];
        unsigned address = (unsigned)__cvta_generic_to_shared(&left[stage][warp * 16 + (lane & 15)][(lane >> 4) * 8]);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(address));
        for (int j = 0; j < 4; j++) {
            unsigned y[2];
            address = (unsigned)__cvta_generic_to_shared(&right[stage][lane & 15][j * 8]);
            asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(y[0]), "=r"(y[1]) : "r"(address));
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                         : "+f"(acc[j][0]), "+f"(acc[j][1]), "+f"(acc[j][2]), "+f"(acc[j][3])
                         : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
        }
        __syncthreads();
    }
    for (int j = 0; j < 4; j++) {
        float *at = c + (row0 + warp * 16 + lane / 4) * n + column0 + j * 8 + lane % 4 * 2;
        *(float2 *)at = make_float2(acc[j][0], acc[j][1]);
        *(float2 *)(at + 8 * n) = make_float2(acc[j][2], acc[j][3]);
    }
}

#include <cuda_fp16.h>
#include <mma.h>

// A warp, a 16 by 16 tile, by the C++ interface.
extern "C" __global__ void matmul_wmma(const half *a, const half *b, float *c, int n, int k) {
    using namespace nvcuda::wmma;
    fragment<matrix_a, 16, 16, 16, half, row_major> x;
    fragment<matrix_b, 16, 16, 16, half, col_major> y;
    fragment<accumulator, 16, 16, 16, float> sum;
    fill_fragment(sum, 0.0f);
    for (int start = 0; start < k; start += 16) {
        load_matrix_sync(x, a + blockIdx.y * 16 * k + start, k);
        load_matrix_sync(y, b + blockIdx.x * 16 * k + start, k);
        mma_sync(sum, x, y, sum);
    }
    store_matrix_sync(c + blockIdx.y * 16 * n + blockIdx.x * 16, sum, n, mem_row_major);
}
