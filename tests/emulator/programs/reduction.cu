// Threads that meet: shuffles, ballots, barriers, atomics.

__device__ float warp_sum(float value) {
    for (int offset = 16; offset; offset >>= 1) value += __shfl_xor_sync(0xffffffffu, value, offset);
    return value;
}

extern "C" __global__ void block_sum(const float *x, float *out, int n) {
    __shared__ float partial[32];
    float sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
    sum = warp_sum(sum);
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    if (lane == 0) partial[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        sum = lane < blockDim.x / 32 ? partial[lane] : 0;
        sum = warp_sum(sum);
        if (lane == 0) atomicAdd(out, sum);
    }
}

// A row each block.
extern "C" __global__ void softmax(const float *x, float *out, int columns) {
    __shared__ float scratch[32];
    const float *row = x + blockIdx.x * columns;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    float largest = -__int_as_float(0x7f800000);
    for (int i = threadIdx.x; i < columns; i += blockDim.x) largest = fmaxf(largest, row[i]);
    for (int offset = 16; offset; offset >>= 1)
        largest = fmaxf(largest, __shfl_down_sync(0xffffffffu, largest, offset));
    if (lane == 0) scratch[warp] = largest;
    __syncthreads();
    largest = scratch[0];
    for (int i = 1; i < warps; i++) largest = fmaxf(largest, scratch[i]);
    __syncthreads();
    float sum = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += expf(row[i] - largest);
    sum = warp_sum(sum);
    if (lane == 0) scratch[warp] = sum;
    __syncthreads();
    sum = 0;
    for (int i = 0; i < warps; i++) sum += scratch[i];
    for (int i = threadIdx.x; i < columns; i += blockDim.x) out[blockIdx.x * columns + i] = expf(row[i] - largest) / sum;
}

// What is positive, in any order: one atomic for each warp.
extern "C" __global__ void compact(const int *x, int *out, int *count, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool keep = i < n && x[i] > 0;
    if (keep) {
        unsigned mask = __activemask();
        int lane = threadIdx.x & 31, leader = __ffs(mask) - 1, base;
        if (lane == leader) base = atomicAdd(count, __popc(mask));
        base = __shfl_sync(mask, base, leader);
        out[base + __popc(mask & ((1u << lane) - 1))] = x[i];
    }
}

// How many lanes of the warp hold the same value, and their sum.
extern "C" __global__ void matches(const int *x, unsigned *same, int *sum) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned mask = __match_any_sync(0xffffffffu, x[i]);
    same[i] = mask;
    sum[i] = __reduce_add_sync(mask, x[i]);
}

#define BINS 64
extern "C" __global__ void histogram(const unsigned char *x, unsigned *bins, int n) {
    __shared__ unsigned local[BINS];
    for (int i = threadIdx.x; i < BINS; i += blockDim.x) local[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&local[x[i] % BINS], 1u);
    __syncthreads();
    for (int i = threadIdx.x; i < BINS; i += blockDim.x) atomicAdd(&bins[i], local[i]);
}

// An atomic maximum of floats by compare and swap.
extern "C" __global__ void largest(const float *x, float *out) {
    float value = x[blockIdx.x * blockDim.x + threadIdx.x];
    int *word = (int *)out, seen = *(volatile int *)word, assumed;
    do {
        assumed = seen;
        if (__int_as_float(assumed) >= value) break;
        seen = atomicCAS(word, assumed, __float_as_int(value));
    } while (seen != assumed);
}
