// Programs in which threads do not meet: index arithmetic, predicates, divergent loops, double precision, 64-bit division.

extern "C" __global__ void vector_add(const float *x, const float *y, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] + y[i];
}

extern "C" __global__ void saxpy(float a, const float *x, float *y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = a * x[i] + y[i];
}

// Steps until 1: each thread leaves the loop when it is done.
extern "C" __global__ void collatz(const unsigned *start, unsigned *steps, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long value = start[i];
    unsigned count = 0;
    while (value != 1) {
        if (value & 1)
            value = 3 * value + 1;
        else
            value >>= 1;
        count++;
    }
    steps[i] = count;
}

extern "C" __global__ void divide64(const long long *x, const long long *y, long long *quotient, long long *remainder,
                                    unsigned long long *uquotient, unsigned long long *uremainder) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    quotient[i] = x[i] / y[i];
    remainder[i] = x[i] % y[i];
    uquotient[i] = (unsigned long long)x[i] / (unsigned long long)y[i];
    uremainder[i] = (unsigned long long)x[i] % (unsigned long long)y[i];
}

// A polynomial, a quotient and a root: each operation of IEEE 754 is rounded once, so the results are known bit for bit.
extern "C" __global__ void double_precision(const double *x, double *poly, double *quotient, double *root, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double v = x[i];
    poly[i] = __dadd_rn(__dmul_rn(__dadd_rn(__dmul_rn(v, 3.0), -2.0), v), 1.0);
    quotient[i] = 1.0 / v;
    root[i] = sqrt(v);
}

// Functions of the CUDA library: polynomials and table look-ups in f64 and f32.
extern "C" __global__ void transcendental(const double *x, double *e, double *s, float *l, float *p, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    e[i] = exp(x[i]);
    s[i] = sin(x[i]);
    l[i] = logf((float)x[i]);
    p[i] = powf((float)x[i], 1.5f);
}

// Every stride-th element: a warp's words lie in more and more sectors.
extern "C" __global__ void strided(const float *x, float *out, int stride) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = x[i * stride];
}
