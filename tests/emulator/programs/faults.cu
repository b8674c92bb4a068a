// Each fault twice: as people write it, and repaired (REPAIRED is defined).

#ifdef REPAIRED
#define IF_REPAIRED(x) x
#define IF_BROKEN(x)
#else
#define IF_REPAIRED(x)
#define IF_BROKEN(x) x
#endif

// <= for <.
extern "C" __global__ void off_by_one(const float *x, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i IF_BROKEN(<=) IF_REPAIRED(<) n) out[i] = x[i];
}

// An index one before the array's start.
extern "C" __global__ void before_start(const float *x, float *out) {
    int i = threadIdx.x;
    out[i] = x[i] - (IF_REPAIRED(i == 0 ? 0 :) x[i - 1]);
}

// Shared memory beyond the array's end.
extern "C" __global__ void shared_overrun(float *out) {
    extern __shared__ float tile[];
    tile[threadIdx.x IF_BROKEN(+ 1)] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x IF_BROKEN(+ 1)];
}

// No barrier between a write and another thread's read.
extern "C" __global__ void missing_barrier(const float *x, float *out) {
    __shared__ float tile[128];
    tile[threadIdx.x] = x[threadIdx.x];
    IF_REPAIRED(__syncthreads();)
    out[threadIdx.x] = tile[127 - threadIdx.x];
}

// No barrier between a read and the next round's write.
extern "C" __global__ void missing_second_barrier(const float *x, float *out) {
    __shared__ float tile[128];
    float sum = 0;
    for (int round = 0; round < 2; round++) {
        tile[threadIdx.x] = x[round * 128 + threadIdx.x];
        __syncthreads();
        sum += tile[127 - threadIdx.x];
        IF_REPAIRED(__syncthreads();)
    }
    out[threadIdx.x] = sum;
}

// Lanes of a warp read what others wrote: since Volta they do not run in step.
extern "C" __global__ void missing_syncwarp(const float *x, float *out) {
    __shared__ float tile[64];
    tile[threadIdx.x] = x[threadIdx.x];
    IF_REPAIRED(__syncwarp();)
    out[threadIdx.x] = tile[threadIdx.x ^ 1];
}

// Two threads write different values to one word.
extern "C" __global__ void same_word(const float *x, float *out) {
    __shared__ float tile[32];
    IF_BROKEN(tile[threadIdx.x / 2] = x[threadIdx.x];)
    IF_REPAIRED(if (threadIdx.x % 2 == 0) tile[threadIdx.x / 2] = x[threadIdx.x];)
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x / 2];
}

// A vector of four at any index.
extern "C" __global__ void misaligned(const float *x, float4 *out) {
    int i = threadIdx.x;
    out[i] = *(const float4 *)(x + IF_BROKEN(i) IF_REPAIRED(4 * i));
}

// The lane that begins does not write its word.
extern "C" __global__ void uninitialised_shared(const float *x, float *out) {
    __shared__ float tile[64];
    IF_BROKEN(if (threadIdx.x > 0)) tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = tile[63 - threadIdx.x];
}

// Sums into memory that was not cleared.
extern "C" __global__ void uninitialised_global(const float *x, float *sums) {
    IF_REPAIRED(sums[threadIdx.x] = 0;)
    for (int i = 0; i < 4; i++) sums[threadIdx.x] += x[i * 64 + threadIdx.x];
}

// Each half of the block waits at a barrier of its own, for all of it.
extern "C" __global__ void divergent_barrier(const float *x, float *out) {
    if (threadIdx.x < 32) {
        IF_BROKEN(__syncthreads();)
        out[threadIdx.x] = x[threadIdx.x];
    } else {
        IF_BROKEN(asm volatile("bar.sync 1, 64;" ::: "memory");)
        out[threadIdx.x] = x[threadIdx.x] + 1;
    }
    IF_REPAIRED(__syncthreads();)
}

#define WAIT "{ .reg .pred done; AGAIN: mbarrier.test_wait.parity.shared.b64 done, [%0], 0; @!done bra AGAIN; }"

// One lane of those that are counted does not arrive.
extern "C" __global__ void forgotten_arrival(const float *x, float *out) {
    __shared__ unsigned long long bar;
    unsigned address = (unsigned)__cvta_generic_to_shared(&bar);
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 32;" ::"r"(address) : "memory");
    __syncthreads();
    IF_BROKEN(if (threadIdx.x != 5))
    asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(address) : "memory");
    asm volatile(WAIT ::"r"(address) : "memory");
    out[threadIdx.x] = x[threadIdx.x];
}

// A stack that grows beyond what it was given: the index is unchecked.
extern "C" __global__ void local_overrun(const int *x, int *out) {
    int window[4];
    for (int i = 0; i < 4; i++) window[i] = x[i];
    out[threadIdx.x] = window[threadIdx.x IF_REPAIRED(% 4)];
}

// A device-side assertion's last word.
extern "C" __global__ void trapped(const int *x, int *out) {
    if (x[threadIdx.x] > IF_BROKEN(1000) IF_REPAIRED(2000)) __trap();
    out[threadIdx.x] = x[threadIdx.x];
}

// A pointer that may be null.
extern "C" __global__ void null_pointer(const int *x, int *out) {
    IF_REPAIRED(if (x)) out[threadIdx.x] = x[threadIdx.x];
}
