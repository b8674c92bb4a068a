// A 32 by 32 tile through shared memory. Columns of a tile 32 words wide lie in one bank: 32 wavefronts where one would do. A
// word of padding a row puts a column's words into 32 banks.

template <int PADDING>
__device__ void transpose(const float *x, float *out, int rows, int columns) {
    __shared__ float tile[32][32 + PADDING];
    int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
    for (int i = 0; i < 32; i += 8) tile[threadIdx.y + i][threadIdx.x] = x[(row + i) * columns + column];
    __syncthreads();
    column = blockIdx.y * 32 + threadIdx.x;
    row = blockIdx.x * 32 + threadIdx.y;
    for (int i = 0; i < 32; i += 8) out[(row + i) * rows + column] = tile[threadIdx.x][threadIdx.y + i];
}

extern "C" __global__ void transpose_padded(const float *x, float *out, int rows, int columns) {
    transpose<1>(x, out, rows, columns);
}

extern "C" __global__ void transpose_conflicts(const float *x, float *out, int rows, int columns) {
    transpose<0>(x, out, rows, columns);
}
