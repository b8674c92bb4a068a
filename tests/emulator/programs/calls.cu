// Functions: called, recursive, pointed to; a jump through a table; printf.

#ifndef __CUDACC_RTC__ // there printf is known
#include <cstdio>
#endif

__device__ __noinline__ float cube(float x) { return x * x * x; }
__device__ __noinline__ float shift(float x) { return x + 100; }
__device__ __noinline__ float negate(float x) { return -x; }

struct Moments {
    float sum, squares;
    int count;
};

__device__ __noinline__ Moments moments(const float *x, int n) {
    Moments result = {0, 0, n};
    for (int i = 0; i < n; i++) result.sum += x[i], result.squares += x[i] * x[i];
    return result;
}

extern "C" __global__ void call(const float *x, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        Moments m = moments(x, i % 5);
        out[i] = cube(x[i]) + m.sum + 2 * m.squares + m.count;
    }
}

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

// Threads of a warp go to different depths.
extern "C" __global__ void recursion(int *out) { out[threadIdx.x] = fibonacci(threadIdx.x % 10); }

typedef float (*function)(float);
__device__ function functions[3] = {cube, shift, negate};

// Threads of a warp call different functions.
extern "C" __global__ void indirect(const float *x, float *out) {
    int i = threadIdx.x;
    out[i] = functions[i % 3](x[i]);
}

// A switch: comparisons or a table, as the compiler likes.
extern "C" __global__ void jump(const int *x, int *out) {
    int i = threadIdx.x, v = x[i], r;
    switch (v) {
        case 0: r = i * 3; break;
        case 1: r = i - 7; break;
        case 2: r = i ^ 0x55; break;
        case 3: r = i << 4; break;
        case 4: r = i * i; break;
        case 5: r = __popc(i); break;
        case 6: r = __clz(i); break;
        case 7: r = -i; break;
        case 8: r = __brev(i); break;
        default: r = -1;
    }
    out[i] = r;
}

// The same by hand: a table of labels.
extern "C" __global__ void table(const unsigned *x, unsigned *out) {
    unsigned v = x[threadIdx.x], r;
    asm volatile(
        "{\n"
        "TABLE: .branchtargets A, B, C, B;\n"
        "brx.idx %1, TABLE;\n"
        "A: mov.u32 %0, 10; bra DONE;\n"
        "B: add.u32 %0, %1, 20; bra DONE;\n"
        "C: mov.u32 %0, 30;\n"
        "DONE:\n"
        "}" : "=r"(r) : "r"(v));
    out[threadIdx.x] = r;
}

extern "C" __global__ void print(const float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) printf("thread %d: %5.2f %s %llx %c%%\n", i, x[i], i % 2 ? "odd" : "even", 0x123456789abull * i, 'a' + i);
}

__constant__ int weights[2][3] = {{1, 2, 3}, {4, 5}};
__device__ double scale = 0.5;
__device__ double *scale_pointer = &scale;

extern "C" __global__ void constants(const int *x, double *out) {
    int i = threadIdx.x;
    out[i] = weights[i % 2][i % 3] * x[i] * *scale_pointer;
}

// An array each thread indexes with a number known only when it runs: local memory.
extern "C" __global__ void local_array(const int *x, int *out) {
    int i = threadIdx.x, sorted[8];
    for (int j = 0; j < 8; j++) sorted[j] = x[i * 8 + j];
    for (int j = 1; j < 8; j++)
        for (int k = j; k > 0 && sorted[k - 1] > sorted[k]; k--) {
            int t = sorted[k];
            sorted[k] = sorted[k - 1];
            sorted[k - 1] = t;
        }
    for (int j = 0; j < 8; j++) out[i * 8 + j] = sorted[(j + i) % 8];
}
