// Programs of which only the frame is ours: block-wide algorithms of CUB, cooperative groups, libcu++'s barriers and copies.
// Compiled where their headers are: by make oracles.

#include <cub/block/block_exchange.cuh>
#include <cub/block/block_histogram.cuh>
#include <cub/block/block_merge_sort.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/warp/warp_scan.cuh>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

namespace cg = cooperative_groups;

extern "C" __global__ void radix_sort(const int *x, int *out) {
    using Sort = cub::BlockRadixSort<int, 128, 4>;
    __shared__ typename Sort::TempStorage storage;
    int values[4];
    for (int i = 0; i < 4; i++) values[i] = x[threadIdx.x * 4 + i];
    Sort(storage).Sort(values);
    for (int i = 0; i < 4; i++) out[threadIdx.x * 4 + i] = values[i];
}

struct Greater {
    __device__ bool operator()(int a, int b) const { return a > b; }
};

extern "C" __global__ void merge_sort(const int *x, int *out) {
    using Sort = cub::BlockMergeSort<int, 64, 4>;
    __shared__ typename Sort::TempStorage storage;
    int values[4];
    for (int i = 0; i < 4; i++) values[i] = x[threadIdx.x * 4 + i];
    Sort(storage).Sort(values, Greater());
    for (int i = 0; i < 4; i++) out[threadIdx.x * 4 + i] = values[i];
}

extern "C" __global__ void scan(const int *x, int *out, int *sum) {
    using Scan = cub::BlockScan<int, 128>;
    __shared__ typename Scan::TempStorage storage;
    int before, total;
    Scan(storage).ExclusiveSum(x[threadIdx.x], before, total);
    out[threadIdx.x] = before;
    if (threadIdx.x == 0) *sum = total;
}

extern "C" __global__ void reduce(const float *x, float *out) {
    using Reduce = cub::BlockReduce<float, 256>;
    __shared__ typename Reduce::TempStorage storage;
    float sum = Reduce(storage).Sum(x[threadIdx.x]);
    if (threadIdx.x == 0) *out = sum;
}

extern "C" __global__ void histogram(const unsigned char *x, unsigned *out) {
    using Histogram = cub::BlockHistogram<unsigned char, 64, 4, 256>;
    __shared__ typename Histogram::TempStorage storage;
    __shared__ unsigned bins[256];
    unsigned char values[4];
    for (int i = 0; i < 4; i++) values[i] = x[threadIdx.x * 4 + i];
    Histogram(storage).Histogram(values, bins);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += 64) out[i] = bins[i];
}

extern "C" __global__ void transpose(const int *x, int *out) {
    using Exchange = cub::BlockExchange<int, 64, 4>;
    __shared__ typename Exchange::TempStorage storage;
    int values[4];
    for (int i = 0; i < 4; i++) values[i] = x[threadIdx.x * 4 + i];
    Exchange(storage).BlockedToStriped(values, values);
    for (int i = 0; i < 4; i++) out[threadIdx.x * 4 + i] = values[i];
}

// Groups of eight, and of those lanes of a warp whose number is odd.
extern "C" __global__ void groups(const int *x, int4 *out) {
    auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    int v = x[threadIdx.x];
    int4 result = {cg::reduce(tile, v, cg::plus<int>()), cg::reduce(tile, v, cg::greater<int>()), cg::inclusive_scan(tile, v), 0};
    if (v & 1) {
        auto odd = cg::coalesced_threads();
        result.w = odd.thread_rank() * 100 + odd.size();
    }
    out[threadIdx.x] = result;
}

extern "C" __global__ void barriers(const int *x, int *out) {
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    __shared__ int buffer[64];
    if (threadIdx.x == 0) init(&barrier, blockDim.x);
    __syncthreads();
    for (int i = 0; i < 3; i++) {
        buffer[threadIdx.x] = x[threadIdx.x] + i;
        barrier.arrive_and_wait();
        out[i * 64 + threadIdx.x] = buffer[63 - threadIdx.x];
        barrier.arrive_and_wait();
    }
}

extern "C" __global__ void copy(const int4 *x, int4 *out) {
    __shared__ alignas(16) int4 buffer[64];
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    auto block = cg::this_thread_block();
    if (threadIdx.x == 0) init(&barrier, blockDim.x);
    block.sync();
    cuda::memcpy_async(block, buffer, x, cuda::aligned_size_t<16>(sizeof(buffer)), barrier);
    barrier.arrive_and_wait();
    out[threadIdx.x] = buffer[63 - threadIdx.x];
}

extern "C" __global__ void atomics(int *sum, unsigned long long *largest, float *f, double *d, unsigned *words) {
    cuda::atomic_ref<int, cuda::thread_scope_device> reference(*sum);
    reference.fetch_add(3, cuda::memory_order_acq_rel);
    atomicMax(largest, threadIdx.x * 1000000007ull);
    atomicAdd(f, 1.5f);
    atomicAdd(d, 0.25);
    atomicXor(&words[0], 1u << threadIdx.x % 31);
    atomicInc(&words[1], 10);
    atomicDec(&words[2], 7);
    atomicMin((int *)&words[3], -(int)threadIdx.x);
    atomicOr(&words[4], threadIdx.x);
    atomicAnd(&words[5], ~(1u << (threadIdx.x & 7)));
}

// A cooperative launch: each block reads what the others wrote before the barrier.
extern "C" __global__ void across_the_grid(int *x, int *out, int rounds) {
    auto grid = cg::this_grid();
    int i = grid.thread_rank(), n = grid.size();
    for (int round = 0; round < rounds; round++) {
        out[i] = x[(i + 37) % n] + 1;
        grid.sync();
        x[i] = out[(i + 11) % n];
        auto token = grid.barrier_arrive();
        grid.barrier_wait(std::move(token));
    }
}

// Groups of two warps meet in the system's part of shared memory, and exchange values through memory of their own.
extern "C" __global__ void pairs_of_warps(const int *x, int *out) {
    __shared__ cg::block_tile_memory<256> memory;
    auto tile = cg::tiled_partition<64>(cg::this_thread_block(memory));
    int i = threadIdx.x;
    tile.sync();
    out[i] = cg::reduce(tile, x[i], cg::plus<int>());
}

// Clusters: a histogram whose bins are spread over the blocks' shared memory.
#if __CUDA_ARCH__ >= 900
extern "C" __global__ void spread_histogram(const unsigned char *x, int n, unsigned *out) {
    __shared__ unsigned bins[64];
    auto cluster = cg::this_cluster();
    for (int i = threadIdx.x; i < 64; i += blockDim.x) bins[i] = 0;
    cluster.sync();
    int size = cluster.num_blocks() * blockDim.x, first = blockIdx.x / cluster.num_blocks() * size;
    for (int i = first + cluster.thread_rank(); i < n; i += gridDim.x / cluster.num_blocks() * size) {
        unsigned *theirs = cluster.map_shared_rank(bins, x[i] / 64);
        if (cluster.query_shared_rank(theirs) != x[i] / 64) __trap();
        atomicAdd(theirs + x[i] % 64, 1);
    }
    auto token = cluster.barrier_arrive();
    cluster.barrier_wait(std::move(token));
    for (int i = threadIdx.x; i < 64; i += blockDim.x) atomicAdd(&out[cluster.block_rank() * 64 + i], bins[i]);
}
#endif
