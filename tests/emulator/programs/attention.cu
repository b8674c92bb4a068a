// Attention with the online softmax: scores are never stored.

#define DIM 32
#define KEYS 32

// A thread a query.
extern "C" __global__ void attention(const float *q, const float *k, const float *v, float *out, int keys, float scale) {
    __shared__ float tile_k[KEYS][DIM], tile_v[KEYS][DIM];
    int query = blockIdx.x * blockDim.x + threadIdx.x;
    float mine[DIM], sum[DIM], largest = -1e30f, total = 0;
    for (int d = 0; d < DIM; d++) mine[d] = q[query * DIM + d] * scale, sum[d] = 0;
    for (int start = 0; start < keys; start += KEYS) {
        for (int i = threadIdx.x; i < KEYS * DIM; i += blockDim.x) {
            tile_k[i / DIM][i % DIM] = k[start * DIM + i];
            tile_v[i / DIM][i % DIM] = v[start * DIM + i];
        }
        __syncthreads();
        for (int key = 0; key < KEYS; key++) {
            float score = 0;
#pragma unroll
            for (int d = 0; d < DIM; d++) score += mine[d] * tile_k[key][d];
            float next = fmaxf(largest, score);
            float shrink = __expf(largest - next), weight = __expf(score - next);
            total = total * shrink + weight;
#pragma unroll
            for (int d = 0; d < DIM; d++) sum[d] = sum[d] * shrink + weight * tile_v[key][d];
            largest = next;
        }
        __syncthreads();
    }
    for (int d = 0; d < DIM; d++) out[query * DIM + d] = sum[d] / total;
}

#include <cuda_fp16.h>

__device__ void mma(float *d, const unsigned *a, unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ unsigned pack(float x, float y) {
    half2 both = __floats2half2_rn(x, y);
    return *(unsigned *)&both;
}

__device__ float of_four(float x, bool maximum) {  // over the four lanes that hold a row
    float y = __shfl_xor_sync(0xffffffffu, x, 1);
    x = maximum ? fmaxf(x, y) : x + y;
    y = __shfl_xor_sync(0xffffffffu, x, 2);
    return maximum ? fmaxf(x, y) : x + y;
}

// A warp sixteen queries, a block four warps; f16 in, f32 out.
extern "C" __global__ void __launch_bounds__(128)
    attention_mma(const half *q, const half *k, const half *v, float *out, int keys, float scale) {
    __shared__ __align__(16) half tile_k[KEYS][DIM + 8], tile_v[KEYS][DIM + 8];
    int lane = threadIdx.x & 31, row = blockIdx.x * 64 + (threadIdx.x >> 5) * 16 + lane / 4, pair = lane % 4 * 2;
    unsigned x[DIM / 16][4];
    for (int i = 0; i < DIM / 16; i++) {
        x[i][0] = *(const unsigned *)(q + row * DIM + i * 16 + pair);
        x[i][1] = *(const unsigned *)(q + (row + 8) * DIM + i * 16 + pair);
        x[i][2] = *(const unsigned *)(q + row * DIM + i * 16 + 8 + pair);
        x[i][3] = *(const unsigned *)(q + (row + 8) * DIM + i * 16 + 8 + pair);
    }
    float sum[DIM / 8][4] = {}, largest[2] = {-1e30f, -1e30f}, total[2] = {0, 0};
    for (int start = 0; start < keys; start += KEYS) {
        int r = threadIdx.x / 4, c = threadIdx.x % 4 * 8;  // 32 rows of four 16-byte pieces
        *(uint4 *)&tile_k[r][c] = *(const uint4 *)(k + (start + r) * DIM + c);
        *(uint4 *)&tile_v[r][c] = *(const uint4 *)(v + (start + r) * DIM + c);
        __syncthreads();
        float score[KEYS / 8][4] = {};
        for (int j = 0; j < KEYS / 8; j++)
            for (int i = 0; i < DIM / 16; i++) {
                const half *key = &tile_k[j * 8 + lane / 4][i * 16 + pair];
                mma(score[j], x[i], *(const unsigned *)key, *(const unsigned *)(key + 8));
            }
        for (int h = 0; h < 2; h++) {  // rows r and r + 8
            float next = largest[h];
            for (int j = 0; j < KEYS / 8; j++) next = fmaxf(next, fmaxf(score[j][2 * h], score[j][2 * h + 1]) * scale);
            next = of_four(next, true);
            float shrink = __expf(largest[h] - next);
            largest[h] = next;
            total[h] *= shrink;
            for (int j = 0; j < DIM / 8; j++) sum[j][2 * h] *= shrink, sum[j][2 * h + 1] *= shrink;
            for (int j = 0; j < KEYS / 8; j++)
                for (int e = 2 * h; e < 2 * h + 2; e++) {
                    score[j][e] = __expf(score[j][e] * scale - next);
                    total[h] += score[j][e];
                }
        }
        for (int i = 0; i < KEYS / 16; i++) {
            unsigned p[4] = {pack(score[2 * i][0], score[2 * i][1]), pack(score[2 * i][2], score[2 * i][3]),
                             pack(score[2 * i + 1][0], score[2 * i + 1][1]), pack(score[2 * i + 1][2], score[2 * i + 1][3])};
            for (int j = 0; j < DIM / 8; j++) {
                unsigned y0, y1, address = (unsigned)__cvta_generic_to_shared(&tile_v[i * 16 + (lane & 15)][j * 8]);
                asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(y0), "=r"(y1) : "r"(address));
                mma(sum[j], p, y0, y1);
            }
        }
        __syncthreads();
    }
    for (int h = 0; h < 2; h++) {
        float scale_out = 1 / of_four(total[h], false);
        for (int j = 0; j < DIM / 8; j++)
            *(float2 *)(out + (row + 8 * h) * DIM + j * 8 + pair) = make_float2(sum[j][2 * h] * scale_out, sum[j][2 * h + 1] * scale_out);
    }
}
