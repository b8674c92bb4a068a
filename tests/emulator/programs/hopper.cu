// What sm_90 adds: mbarriers, bulk and tensor copies, wgmma on shared memory named by descriptors.

#include <cuda_fp16.h>

struct __align__(64) TensorMap {
    char bytes[128];
};

__device__ unsigned shared_address(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

__device__ void barrier_init(unsigned long long *bar, int count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(bar)), "r"(count) : "memory");
}

__device__ void barrier_expect(unsigned long long *bar, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(bar)), "r"(bytes) : "memory");
}

__device__ void barrier_arrive(unsigned long long *bar) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(bar)) : "memory");
}

__device__ void barrier_wait(unsigned long long *bar, int parity) {
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "AGAIN:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra AGAIN;\n"
        "}" ::"r"(shared_address(bar)), "r"(parity) : "memory");
}

__device__ void tensor_load(void *to, const TensorMap *map, int x, int y, unsigned long long *bar) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::
                     "r"(shared_address(to)), "l"(map), "r"(x), "r"(y), "r"(shared_address(bar)) : "memory");
}

// A box of 8 rows of 32 floats, in and out again through two maps over different arrays. The boxes at the edge of the input
// hang over it: what is outside arrives as zero.
extern "C" __global__ void tensor_copy(const __grid_constant__ TensorMap in, const __grid_constant__ TensorMap out) {
    __shared__ __align__(1024) float tile[8][32];
    __shared__ unsigned long long bar;
    int x = blockIdx.x * 32, y = blockIdx.y * 8;
    if (threadIdx.x == 0) {
        barrier_init(&bar, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        barrier_expect(&bar, sizeof(tile));
        tensor_load(tile, &in, x, y, &bar);
    }
    __syncthreads();
    barrier_wait(&bar, 0);
    // Doubled where it lies. 128-byte swizzle: the 16-byte piece p of row r is at p ^ (r & 7).
    for (int i = threadIdx.x; i < 8 * 32; i += blockDim.x) {
        int row = i / 32, column = i % 32;
        float *at = &tile[row][((column / 4) ^ row) * 4 + column % 4];
        *at = 2 * *at;
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&out), "r"(x), "r"(y),
                     "r"(shared_address(tile)) : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}

// One warp copies, the others add up: two buffers, each with a barrier for "full" and one for "empty".
extern "C" __global__ void pipeline(const float *x, float *out, int tiles) {
    constexpr int TILE = 128;
    __shared__ __align__(16) float buffer[2][TILE];
    __shared__ unsigned long long full[2], empty[2];
    int warp = threadIdx.x >> 5, consumers = blockDim.x - 32;
    if (threadIdx.x == 0)
        for (int i = 0; i < 2; i++) barrier_init(&full[i], 1), barrier_init(&empty[i], consumers);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    __syncthreads();
    if (warp == 0) {
        if (threadIdx.x == 0)
            for (int t = 0; t < tiles; t++) {
                int stage = t & 1;
                if (t >= 2) barrier_wait(&empty[stage], (t / 2 - 1) & 1);
                barrier_expect(&full[stage], sizeof(buffer[0]));
                asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
                                 "r"(shared_address(buffer[stage])), "l"(x + t * TILE), "n"(sizeof(buffer[0])),
                                 "r"(shared_address(&full[stage])) : "memory");
            }
    } else {
        float sum = 0;
        for (int t = 0; t < tiles; t++) {
            int stage = t & 1;
            barrier_wait(&full[stage], t / 2 & 1);
            for (int i = threadIdx.x - 32; i < TILE; i += consumers) sum += buffer[stage][i];
            barrier_arrive(&empty[stage]);
        }
        out[threadIdx.x - 32] = sum;
    }
}

// Producers that write with ordinary stores, and signal with an arrival each.
extern "C" __global__ void handshake(const int *x, int *out, int rounds) {
    __shared__ int slot[32];
    __shared__ unsigned long long full, empty;
    int lane = threadIdx.x & 31;
    if (threadIdx.x == 0) barrier_init(&full, 32), barrier_init(&empty, 32);
    __syncthreads();
    for (int round = 0; round < rounds; round++) {
        if (threadIdx.x < 32) {
            if (round) barrier_wait(&empty, (round - 1) & 1);
            slot[lane] = x[round * 32 + lane] * 3;
            barrier_arrive(&full);
        } else {
            barrier_wait(&full, round & 1);
            out[round * 32 + lane] = slot[31 - lane];
            barrier_arrive(&empty);
        }
    }
}

// A descriptor of a matrix in shared memory: K-major, rows of 128 bytes, 128-byte swizzle, 1024 bytes between groups of 8 rows.
__device__ unsigned long long descriptor(const void *p) {
    unsigned long long address = shared_address(p);
    return (address >> 4 & 0x3fff) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

#define ROW(i) "+f"(d[8 * i]), "+f"(d[8 * i + 1]), "+f"(d[8 * i + 2]), "+f"(d[8 * i + 3]), \
               "+f"(d[8 * i + 4]), "+f"(d[8 * i + 5]), "+f"(d[8 * i + 6]), "+f"(d[8 * i + 7])

#define WGMMA "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " \
    "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15," \
    "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, %32, %33, 1, 1, 1, 0, 0;"

__device__ void wgmma(float (&d)[32], unsigned long long a, unsigned long long b) {
    asm volatile(WGMMA : ROW(0), ROW(1), ROW(2), ROW(3) : "l"(a), "l"(b));
}

__device__ void multiply(float (&d)[32], const half (*a)[64], const half (*b)[64]) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    for (int k = 0; k < 64; k += 16) wgmma(d, descriptor(&a[0][k]), descriptor(&b[0][k]));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

__device__ void store_tile(float *c, const float (&d)[32], int n) {
    int lane = threadIdx.x & 31, row = blockIdx.y * 64 + (threadIdx.x >> 5) * 16 + lane / 4;
    for (int j = 0; j < 8; j++) {
        float *at = c + row * n + blockIdx.x * 64 + j * 8 + lane % 4 * 2;
        *(float2 *)at = make_float2(d[4 * j], d[4 * j + 1]);
        *(float2 *)(at + 8 * n) = make_float2(d[4 * j + 2], d[4 * j + 3]);
    }
}

// c = a b^T; a is (m, k) and b (n, k), f16, row-major. The tiles are written with ordinary stores, swizzled by hand: the async
// proxy, by which wgmma reads, sees them after a proxy fence.
extern "C" __global__ void __launch_bounds__(128)
    matmul_wgmma(const half *a, const half *b, float *c, int n, int k) {
    __shared__ __align__(1024) half left[64][64], right[64][64];
    float d[32] = {};
    for (int start = 0; start < k; start += 64) {
        for (int i = threadIdx.x; i < 64 * 8; i += 128) {
            int row = i / 8, piece = i % 8, place = (piece ^ (row & 7)) * 8;
            *(uint4 *)&left[row][place] = *(const uint4 *)(a + (blockIdx.y * 64 + row) * k + start + piece * 8);
            *(uint4 *)&right[row][place] = *(const uint4 *)(b + (blockIdx.x * 64 + row) * k + start + piece * 8);
        }
#ifndef WITHOUT_PROXY_FENCE
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
        __syncthreads();
        multiply(d, left, right);
        __syncthreads();
    }
    store_tile(c, d, n);
}

// The same with tiles that tensor copies bring, two in flight.
extern "C" __global__ void __launch_bounds__(128) matmul_wgmma_tma(const __grid_constant__ TensorMap a,
                                                                   const __grid_constant__ TensorMap b, float *c, int n, int k) {
    extern __shared__ __align__(1024) half tiles[][2][64][64];
    __shared__ unsigned long long full[2];
    if (threadIdx.x == 0) {
        for (int i = 0; i < 2; i++) barrier_init(&full[i], 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    auto bring = [&](int step) {
        if (threadIdx.x == 0) {
            unsigned long long *bar = &full[step & 1];
            barrier_expect(bar, 2 * 64 * 64 * sizeof(half));
            tensor_load(tiles[step & 1][0], &a, step * 64, blockIdx.y * 64, bar);
            tensor_load(tiles[step & 1][1], &b, step * 64, blockIdx.x * 64, bar);
        }
    };
    float d[32] = {};
    int steps = k / 64;
    bring(0);
    for (int step = 0; step < steps; step++) {
        if (step + 1 < steps) bring(step + 1);
        barrier_wait(&full[step & 1], step / 2 & 1);
        multiply(d, tiles[step & 1][0], tiles[step & 1][1]);
        __syncthreads();
    }
    store_tile(c, d, n);
}
