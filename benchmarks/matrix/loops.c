// The matrix's loops as a C programmer would write them, where that is the peer. Threads and vectors are baseline.c's.

#include "../baseline.c"
#include <string.h>

typedef struct {
    const void *x, *y;
    const int32_t *index;
    void *out;
    int64_t m, n;
    int weight;
} Loop;

static void gemv_body(const void *p, int64_t begin, int64_t end) {
    const Loop *a = p;
    const float *x = a->y;
    for (int64_t row = begin; row < end; row++) {
        const float *r = (const float *)a->x + row * a->n;
        floats s[4] = {splat(0), splat(0), splat(0), splat(0)};
        int64_t i = 0;
        for (; i + 4 * LANES <= a->n; i += 4 * LANES)
            for (int j = 0; j < 4; j++) s[j] += load(r + i + j * LANES) * load(x + i + j * LANES);
        float rest = 0;
        for (; i < a->n; i++) rest += r[i] * x[i];
        ((float *)a->out)[row] = sum_lanes((s[0] + s[1]) + (s[2] + s[3])) + rest;
    }
}

void gemv(const float *a, const float *x, float *out, int64_t m, int64_t n, int threads) {
    parallel(gemv_body, &(Loop){.x = a, .y = x, .out = out, .m = m, .n = n}, m, 1, threads);
}

static void row_sums_body(const void *p, int64_t begin, int64_t end) {
    const Loop *a = p;
    for (int64_t row = begin; row < end; row++) {
        const float *r = (const float *)a->x + row * a->n;
        floats s[4] = {splat(0), splat(0), splat(0), splat(0)};
        int64_t i = 0;
        for (; i + 4 * LANES <= a->n; i += 4 * LANES)
            for (int j = 0; j < 4; j++) s[j] += load(r + i + j * LANES);
        float rest = 0;
        for (; i < a->n; i++) rest += r[i];
        ((float *)a->out)[row] = sum_lanes((s[0] + s[1]) + (s[2] + s[3])) + rest;
    }
}

void row_sums(const float *a, float *out, int64_t m, int64_t n, int threads) {
    parallel(row_sums_body, &(Loop){.x = a, .out = out, .m = m, .n = n}, m, 1, threads);
}

// Columns are divided between threads; each walks whole lines, with sums of 1,024 columns in the first cache.
static void column_sum_body(const void *p, int64_t begin, int64_t end) {
    const Loop *a = p;
    float *out = a->out;
    for (int64_t first = begin; first < end; first += 1024) {
        int64_t last = first + 1024 < end ? first + 1024 : end;
        memset(out + first, 0, (last - first) * sizeof(float));
        for (int64_t row = 0; row < a->m; row++) {
            const float *r = (const float *)a->x + row * a->n;
            for (int64_t j = first; j < last; j++) out[j] += r[j];
        }
    }
}

void column_sum(const float *a, float *out, int64_t m, int64_t n, int threads) {
    parallel(column_sum_body, &(Loop){.x = a, .out = out, .m = m, .n = n}, n, 1, threads);
}

static void transpose_body(const void *p, int64_t begin, int64_t end) {
    const Loop *a = p;
    const float *x = a->x;
    float *out = a->out;
    enum { STEP = 16 };
    for (int64_t i0 = begin * STEP; i0 < end * STEP && i0 < a->m; i0 += STEP)
        for (int64_t j0 = 0; j0 < a->n; j0 += STEP) {
            int64_t m = i0 + STEP < a->m ? i0 + STEP : a->m, n = j0 + STEP < a->n ? j0 + STEP : a->n;
            for (int64_t j = j0; j < n; j++)
                for (int64_t i = i0; i < m; i++) out[j * a->m + i] = x[i * a->n + j];
        }
}

void transpose(const float *a, float *out, int64_t m, int64_t n, int threads) {
    parallel(transpose_body, &(Loop){.x = a, .out = out, .m = m, .n = n}, (m + 15) / 16, 1, threads);
}

#define STRIDES(DO) DO(2) DO(3) DO(4)

static void strided_load_body(const void *p, int64_t begin, int64_t end) {
    const Loop *a = p;
    const float *x = a->x;
    float *restrict out = a->out;
#define LOAD(S) if (a->n == S) for (int64_t i = begin; i < end; i++) out[i] = x[i * S];
    STRIDES(LOAD)
}

void strided_load(const float *x, float *out, int64_t n, int64_t stride, int threads) {
    parallel(strided_load_body, &(Loop){.x = x, .out = out, .n = stride}, n, 1, threads);
}

static void strided_store_body(const void *p, int64_t begin, int64_t end) {
    const Loop *a = p;
    const float *x = a->x;
    float *restrict out = a->out;
#define STORE(S) if (a->n == S) for (int64_t i = begin; i < end; i++) out[i * S] = x[i];
    STRIDES(STORE)
}

void strided_store(const float *x, float *out, int64_t n, int64_t stride, int threads) {
    parallel(strided_store_body, &(Loop){.x = x, .out = out, .n = stride}, n, 1, threads);
}

void scatter_add(const float *values, const int32_t *index, float *out, int64_t n, int64_t size, int threads) {
    memset(out, 0, size * sizeof(float));
    for (int64_t i = 0; i < n; i++) out[index[i]] += values[i];
}

// Four tables, so that equal neighbours do not wait for each other.
void histogram(const uint8_t *values, int32_t *out, int64_t n, int threads) {
    int32_t counts[4][256];
    memset(counts, 0, sizeof counts);
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (int j = 0; j < 4; j++) counts[j][values[i + j]]++;
    for (; i < n; i++) counts[0][values[i]]++;
    for (int b = 0; b < 256; b++) out[b] = counts[0][b] + counts[1][b] + counts[2][b] + counts[3][b];
}

static void blend_body(const void *p, int64_t begin, int64_t end) {
    const Loop *a = p;
    const uint8_t *x = a->x, *y = a->y;
    uint8_t *restrict out = a->out;
    uint16_t w = a->weight, v = 256 - w;
    for (int64_t i = begin; i < end; i++) out[i] = (uint16_t)(x[i] * w + y[i] * v) >> 8;
}

void blend(const uint8_t *x, const uint8_t *y, uint8_t *out, int64_t n, int64_t weight, int threads) {
    parallel(blend_body, &(Loop){.x = x, .y = y, .out = out, .weight = weight}, n, 64, threads);
}

static void byte_max_body(const void *p, int64_t begin, int64_t end) {
    const Loop *a = p;
    const uint8_t *x = a->x, *y = a->y;
    uint8_t *restrict out = a->out;
    for (int64_t i = begin; i < end; i++) out[i] = (x[i] > y[i] ? x[i] : y[i]) - (x[i] & y[i]);
}

void byte_max(const uint8_t *x, const uint8_t *y, uint8_t *out, int64_t n, int threads) {
    parallel(byte_max_body, &(Loop){.x = x, .y = y, .out = out}, n, 64, threads);
}
