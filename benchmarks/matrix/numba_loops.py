"""The matrix's loops as a Numba user writes them: parallel where that is right, fast-math, compiled on first call."""
# pyright: basic

from __future__ import annotations

import numpy as np
from numba import get_num_threads, njit, prange


@njit(parallel=True, fastmath=True)
def gemv(a, x, out):
    for i in prange(a.shape[0]):
        total = np.float32(0)
        for j in range(a.shape[1]):
            total += a[i, j] * x[j]
        out[i] = total


@njit(parallel=True, fastmath=True)
def row_sum(a, out):
    for i in prange(a.shape[0]):
        total = np.float32(0)
        for j in range(a.shape[1]):
            total += a[i, j]
        out[i] = total


@njit(parallel=True)
def transpose(a, out):
    step = 32
    for block in prange((a.shape[0] + step - 1) // step):
        for j0 in range(0, a.shape[1], step):
            for i in range(block * step, min(block * step + step, a.shape[0])):
                for j in range(j0, min(j0 + step, a.shape[1])):
                    out[j, i] = a[i, j]


@njit(parallel=True)
def strided_load(a, out, stride):
    for i in prange(out.size):
        out[i] = a[i * stride]


@njit(parallel=True)
def strided_store(a, out, stride):
    for i in prange(a.size):
        out[i * stride] = a[i]


@njit(parallel=True)
def copy_2d(a, out):
    for i in prange(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = a[i, j]


@njit(parallel=True)
def count(out):
    for i in prange(out.size):
        out[i] = i


@njit
def scatter_add(values, index, out):
    out[:] = 0
    for i in range(values.size):
        out[index[i]] += values[i]


@njit
def row_add(values, index, out):
    out[:] = 0
    for i in range(index.size):
        for j in range(values.shape[1]):
            out[index[i], j] += values[i, j]


@njit(parallel=True)
def histogram(values, out):
    threads = get_num_threads()
    counts = np.zeros((threads, 256), np.int32)
    for t in prange(threads):
        for i in range(values.size * t // threads, values.size * (t + 1) // threads):
            counts[t, values[i]] += 1
    out[:] = counts.sum(axis=0)


@njit(parallel=True, fastmath=True)
def embedding_bag(table, index, out):
    for i in prange(index.shape[0]):
        out[i] = 0
        for k in range(index.shape[1]):
            for j in range(table.shape[1]):
                out[i, j] += table[index[i, k], j]


@njit(parallel=True)
def blend(a, b, out, weight):
    for i in prange(a.size):
        out[i] = (np.uint16(a[i]) * np.uint16(weight) + np.uint16(b[i]) * np.uint16(256 - weight)) >> 8


@njit(parallel=True)
def byte_max(a, b, out):
    for i in prange(a.size):
        out[i] = max(a[i], b[i]) - (a[i] & b[i])


@njit(parallel=True, fastmath=True)
def layer_norm_backward(dy, x, weight, mean, scale, out):
    rows, columns = x.shape
    threads = get_num_threads()
    sums = np.zeros((threads, 2, columns), np.float32)
    for t in prange(threads):
        for i in range(rows * t // threads, rows * (t + 1) // threads):
            c1 = np.float32(0)
            c2 = np.float32(0)
            for j in range(columns):
                normed = (x[i, j] - mean[i]) * scale[i]
                wg = weight[j] * dy[i, j]
                c1 += normed * wg
                c2 += wg
            c1 /= np.float32(columns)
            c2 /= np.float32(columns)
            for j in range(columns):
                normed = (x[i, j] - mean[i]) * scale[i]
                out[i, j] = (weight[j] * dy[i, j] - (normed * c1 + c2)) * scale[i]
                sums[t, 0, j] += dy[i, j] * normed
                sums[t, 1, j] += dy[i, j]
    return sums.sum(axis=0)
