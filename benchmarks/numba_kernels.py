"""The benchmark's loops as a Numba user writes them: parallel, fast-math, compiled on first call."""
# pyright: basic

from __future__ import annotations

import math

import numpy as np
from numba import njit, prange


@njit(parallel=True, fastmath=True)
def add(x, y, out):
    for i in prange(x.size):
        out[i] = x[i] + y[i]


@njit(parallel=True, fastmath=True)
def gelu(x, out):
    for i in prange(x.size):
        v = x[i]
        inner = np.float32(0.7978845608) * (v + np.float32(0.044715) * (v * v * v))
        out[i] = np.float32(0.5) * v * (np.float32(1) + math.tanh(inner))


@njit(parallel=True, fastmath=True)
def softmax(x, out):
    rows, columns = x.shape
    for row in prange(rows):
        largest = x[row, 0]
        for i in range(columns):
            largest = max(largest, x[row, i])
        total = np.float32(0)
        for i in range(columns):
            e = math.exp(x[row, i] - largest)
            out[row, i] = e
            total += e
        for i in range(columns):
            out[row, i] /= total


@njit(parallel=True, fastmath=True)
def layer_norm(x, weight, bias, out):
    rows, columns = x.shape
    for row in prange(rows):
        total = np.float32(0)
        for i in range(columns):
            total += x[row, i]
        mean = total / np.float32(columns)
        squares = np.float32(0)
        for i in range(columns):
            centered = x[row, i] - mean
            squares += centered * centered
        scale = np.float32(1) / math.sqrt(squares / np.float32(columns) + np.float32(1e-5))
        for i in range(columns):
            out[row, i] = (x[row, i] - mean) * scale * weight[i] + bias[i]


@njit(parallel=True, fastmath=True)
def row_sum(x, out):
    rows, columns = x.shape
    for row in prange(rows):
        total = np.float32(0)
        for i in range(columns):
            total += x[row, i]
        out[row] = total


@njit(parallel=True)
def gather(table, index, out):
    for row in prange(index.size):
        for i in range(table.shape[1]):
            out[row, i] = table[index[row], i]
