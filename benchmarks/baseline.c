// What a C programmer would write for the same loops: the standard that weft's code is held to.
//
// Vectors of 16 floats (GCC's vector extension), libmvec for exp and tanh, rows or ranges divided between threads by
// pthreads. Arrays are float32 and dense; every function covers [0, n) elements or rows with `threads` threads.
// Sizes are multiples of 16. Built by bench.py with: cc -O3 -march=native -ffp-contract=fast -shared -fPIC ... -lmvec -lm -lpthread

#include <pthread.h>
#include <stdint.h>

typedef float v16 __attribute__((vector_size(64), aligned(4), may_alias));
typedef float v16a __attribute__((vector_size(64), may_alias));

v16a _ZGVeN16v_expf(v16a);
v16a _ZGVeN16v_tanhf(v16a);

enum { LANES = 16, MAX_THREADS = 256 };

// ---- threads: the caller takes the first part, new threads the others ------------------------------------------------

typedef struct {
    void (*body)(const void *arguments, int64_t begin, int64_t end);
    const void *arguments;
    int64_t begin, end;
} Part;

static void *run_part(void *p) {
    const Part *part = p;
    part->body(part->arguments, part->begin, part->end);
    return 0;
}

static void parallel(void (*body)(const void *, int64_t, int64_t), const void *arguments, int64_t n, int64_t grain,
                     int threads) {
    Part parts[MAX_THREADS];
    pthread_t ids[MAX_THREADS];
    int64_t units = n / grain;
    if (threads > MAX_THREADS) threads = MAX_THREADS;
    for (int t = 0; t < threads; t++)
        parts[t] = (Part){body, arguments, units * t / threads * grain, units * (t + 1) / threads * grain};
    for (int t = 1; t < threads; t++) pthread_create(&ids[t], 0, run_part, &parts[t]);
    run_part(&parts[0]);
    for (int t = 1; t < threads; t++) pthread_join(ids[t], 0);
}

static inline v16a load(const float *p) { return *(const v16 *)p; }
static inline void store(float *p, v16a x) { *(v16 *)p = x; }
static inline v16a splat(float x) { return (v16a){} + x; }

static inline v16a larger(v16a a, v16a b) {
    typedef int32_t mask __attribute__((vector_size(64), may_alias));
    mask greater = a > b;
    return (v16a)((greater & (mask)a) | (~greater & (mask)b));
}

static inline float sum_lanes(v16a x) {
    float s = 0;
    for (int i = 0; i < LANES; i++) s += x[i];
    return s;
}

static inline float max_lanes(v16a x) {
    float m = x[0];
    for (int i = 1; i < LANES; i++) m = x[i] > m ? x[i] : m;
    return m;
}

// ---- elementwise -----------------------------------------------------------------------------------------------------

typedef struct {
    const float *x, *y, *weight, *bias;
    const int64_t *index;
    float *out;
    int64_t columns;
    float epsilon;
} Arguments;

static void add_body(const void *p, int64_t begin, int64_t end) {
    const Arguments *a = p;
    for (int64_t i = begin; i < end; i += LANES) store(a->out + i, load(a->x + i) + load(a->y + i));
}

void add(const float *x, const float *y, float *out, int64_t n, int threads) {
    parallel(add_body, &(Arguments){.x = x, .y = y, .out = out}, n, LANES, threads);
}

static void gelu_body(const void *p, int64_t begin, int64_t end) {
    const Arguments *a = p;
    for (int64_t i = begin; i < end; i += LANES) {
        v16a x = load(a->x + i);
        v16a inner = 0.7978845608f * (x + 0.044715f * (x * x * x));
        store(a->out + i, 0.5f * x * (1.0f + _ZGVeN16v_tanhf(inner)));
    }
}

void gelu(const float *x, float *out, int64_t n, int threads) {
    parallel(gelu_body, &(Arguments){.x = x, .out = out}, n, LANES, threads);
}

// ---- rows ------------------------------------------------------------------------------------------------------------

static void softmax_body(const void *p, int64_t begin, int64_t end) {
    const Arguments *a = p;
    for (int64_t row = begin; row < end; row++) {
        const float *x = a->x + row * a->columns;
        float *out = a->out + row * a->columns;
        v16a m = load(x), total = splat(0);
        for (int64_t i = LANES; i < a->columns; i += LANES) m = larger(m, load(x + i));
        v16a largest = splat(max_lanes(m));
        for (int64_t i = 0; i < a->columns; i += LANES) {
            v16a e = _ZGVeN16v_expf(load(x + i) - largest);
            store(out + i, e);
            total += e;
        }
        v16a scale = splat(1.0f / sum_lanes(total));
        for (int64_t i = 0; i < a->columns; i += LANES) store(out + i, load(out + i) * scale);
    }
}

void softmax(const float *x, float *out, int64_t rows, int64_t columns, int threads) {
    parallel(softmax_body, &(Arguments){.x = x, .out = out, .columns = columns}, rows, 1, threads);
}

static void layer_norm_body(const void *p, int64_t begin, int64_t end) {
    const Arguments *a = p;
    for (int64_t row = begin; row < end; row++) {
        const float *x = a->x + row * a->columns;
        float *out = a->out + row * a->columns;
        v16a total = splat(0), squares = splat(0);
        for (int64_t i = 0; i < a->columns; i += LANES) total += load(x + i);
        v16a mean = splat(sum_lanes(total) / a->columns);
        for (int64_t i = 0; i < a->columns; i += LANES) {
            v16a centered = load(x + i) - mean;
            squares += centered * centered;
        }
        v16a scale = splat(1.0f / __builtin_sqrtf(sum_lanes(squares) / a->columns + a->epsilon));
        for (int64_t i = 0; i < a->columns; i += LANES)
            store(out + i, (load(x + i) - mean) * scale * load(a->weight + i) + load(a->bias + i));
    }
}

void layer_norm(const float *x, const float *weight, const float *bias, float *out, int64_t rows, int64_t columns,
                float epsilon, int threads) {
    Arguments a = {.x = x, .weight = weight, .bias = bias, .out = out, .columns = columns, .epsilon = epsilon};
    parallel(layer_norm_body, &a, rows, 1, threads);
}

static void row_sum_body(const void *p, int64_t begin, int64_t end) {
    const Arguments *a = p;
    for (int64_t row = begin; row < end; row++) {
        const float *x = a->x + row * a->columns;
        v16a s[4] = {splat(0), splat(0), splat(0), splat(0)};
        int64_t i = 0;
        for (; i + 4 * LANES <= a->columns; i += 4 * LANES)
            for (int j = 0; j < 4; j++) s[j] += load(x + i + j * LANES);
        for (; i < a->columns; i += LANES) s[0] += load(x + i);
        a->out[row] = sum_lanes((s[0] + s[1]) + (s[2] + s[3]));
    }
}

void row_sum(const float *x, float *out, int64_t rows, int64_t columns, int threads) {
    parallel(row_sum_body, &(Arguments){.x = x, .out = out, .columns = columns}, rows, 1, threads);
}

static void gather_body(const void *p, int64_t begin, int64_t end) {
    const Arguments *a = p;
    for (int64_t row = begin; row < end; row++) {
        const float *x = a->x + a->index[row] * a->columns;
        float *out = a->out + row * a->columns;
        for (int64_t i = 0; i < a->columns; i += LANES) store(out + i, load(x + i));
    }
}

void gather(const float *table, const int64_t *index, float *out, int64_t rows, int64_t columns, int threads) {
    parallel(gather_body, &(Arguments){.x = table, .index = index, .out = out, .columns = columns}, rows, 1, threads);
}

// ---- the machine's limits --------------------------------------------------------------------------------------------

// Copies n floats past the caches (both arrays 64-byte aligned): n reads and n writes of memory, no more.
static void copy_body(const void *p, int64_t begin, int64_t end) {
    const Arguments *a = p;
    for (int64_t i = begin; i < end; i += LANES) {
#ifdef __AVX512F__
        __builtin_ia32_movntps512(a->out + i, load(a->x + i));
#else
        store(a->out + i, load(a->x + i));
#endif
    }
}

void copy(const float *x, float *out, int64_t n, int threads) {
    parallel(copy_body, &(Arguments){.x = x, .out = out}, n, LANES, threads);
}

// Independent multiply-adds of 16 lanes: 12 chains hide the latency of a unit that starts two a cycle. 12 * 16 * 2 flops a step.
#define EACH(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11)
#define START(j) v16a s##j = splat((float)j);
#define STEP(j) s##j = s##j * factor + term;
#define PIN(j) __asm__ volatile("" : "+v"(s##j)); // the compiler may not shorten the chain
#define TOTAL(j) total += s##j;

static void fma_body(const void *p, int64_t begin, int64_t end) {
    const Arguments *a = p;
    v16a factor = load(a->x), term = load(a->y), total = splat(0);
    EACH(START)
    for (int64_t i = begin; i < end; i++) {
        EACH(STEP)
        EACH(PIN)
    }
    EACH(TOTAL)
    if (sum_lanes(total) == 0.12345f) a->out[0] = 1; // hardly ever so, but the sums are needed to know
}

void fma_steps(const float *factor, const float *term, float *out, int64_t steps, int threads) {
    parallel(fma_body, &(Arguments){.x = factor, .y = term, .out = out}, steps, 1, threads);
}
