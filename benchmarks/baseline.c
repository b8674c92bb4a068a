// What a C programmer would write for the same loops: the standard that weft's code is held to.
//
// The machine's widest vectors of floats (GCC's vector extension), libmvec for exp and tanh, rows or ranges divided between
// threads by pthreads. Arrays are float32 and dense; every function covers [0, n) elements or rows with `threads` threads.
// Sizes are multiples of 16. Built by bench.py with: cc -O3 -march=native -ffp-contract=fast -shared -fPIC ... -lmvec -lm -lpthread

#include <pthread.h>
#include <stdint.h>

// LANES of the widest vector, libmvec's names for functions of one, a store past the caches where there is one, and the
// constraint of a register in assembly.
#if defined(__AVX512F__)
#define LANES 16
#define EXP _ZGVeN16v_expf
#define TANH _ZGVeN16v_tanhf
#define STREAM __builtin_ia32_movntps512
#define REGISTER "+v"
#elif defined(__AVX2__)
#define LANES 8
#define EXP _ZGVdN8v_expf
#define TANH _ZGVdN8v_tanhf
#define STREAM __builtin_ia32_movntps256
#define REGISTER "+x"
#elif defined(__SSE2__)
#define LANES 4
#define EXP _ZGVbN4v_expf
#define TANH _ZGVbN4v_tanhf
#define STREAM __builtin_ia32_movntps
#define REGISTER "+x"
#elif defined(__aarch64__)
#define LANES 4
#define EXP _ZGVnN4v_expf
#define TANH _ZGVnN4v_tanhf
#define STREAM store
#define REGISTER "+w"
#endif

typedef float anywhere __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef float floats __attribute__((vector_size(4 * LANES), may_alias));

floats EXP(floats);
floats TANH(floats);

enum { MAX_THREADS = 256 };

int64_t lanes(void) { return LANES; }

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

static inline floats load(const float *p) { return *(const anywhere *)p; }
static inline void store(float *p, floats x) { *(anywhere *)p = x; }
static inline floats splat(float x) { return (floats){} + x; }

static inline floats larger(floats a, floats b) {
    typedef int32_t mask __attribute__((vector_size(4 * LANES), may_alias));
    mask greater = a > b;
    return (floats)((greater & (mask)a) | (~greater & (mask)b));
}

static inline float sum_lanes(floats x) {
    float s = 0;
    for (int i = 0; i < LANES; i++) s += x[i];
    return s;
}

static inline float max_lanes(floats x) {
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
        floats x = load(a->x + i);
        floats inner = 0.7978845608f * (x + 0.044715f * (x * x * x));
        store(a->out + i, 0.5f * x * (1.0f + TANH(inner)));
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
        floats m = load(x), total = splat(0);
        for (int64_t i = LANES; i < a->columns; i += LANES) m = larger(m, load(x + i));
        floats largest = splat(max_lanes(m));
        for (int64_t i = 0; i < a->columns; i += LANES) {
            floats e = EXP(load(x + i) - largest);
            store(out + i, e);
            total += e;
        }
        floats scale = splat(1.0f / sum_lanes(total));
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
        floats total = splat(0), squares = splat(0);
        for (int64_t i = 0; i < a->columns; i += LANES) total += load(x + i);
        floats mean = splat(sum_lanes(total) / a->columns);
        for (int64_t i = 0; i < a->columns; i += LANES) {
            floats centered = load(x + i) - mean;
            squares += centered * centered;
        }
        floats scale = splat(1.0f / __builtin_sqrtf(sum_lanes(squares) / a->columns + a->epsilon));
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
        floats s[4] = {splat(0), splat(0), splat(0), splat(0)};
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
    for (int64_t i = begin; i < end; i += LANES) STREAM(a->out + i, load(a->x + i));
}

void copy(const float *x, float *out, int64_t n, int threads) {
    parallel(copy_body, &(Arguments){.x = x, .out = out}, n, LANES, threads);
}

// Independent multiply-adds of vectors: 12 chains hide the latency of a unit that starts two a cycle. 12 * LANES * 2 flops a step.
#define EACH(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11)
#define START(j) floats s##j = splat((float)j);
#define STEP(j) s##j = s##j * factor + term;
#define PIN(j) __asm__ volatile("" : REGISTER(s##j)); // the compiler may not shorten the chain
#define TOTAL(j) total += s##j;

static void fma_body(const void *p, int64_t begin, int64_t end) {
    const Arguments *a = p;
    floats factor = load(a->x), term = load(a->y), total = splat(0);
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
