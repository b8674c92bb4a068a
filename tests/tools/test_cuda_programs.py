"""tools/cuda_programs: what host code asks of the device, by its hooks; with nvcc a program of host and device code."""

from __future__ import annotations

import ctypes
import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from weft.emulator import Module, TensorMap

TOOL = Path(__file__).parents[2] / "tools" / "cuda_programs" / "run.py"

PTX = """
.version 8.0
.target sm_90a
.address_size 64
.const .align 4 .f32 factor;
.visible .entry scale(.param .u64 p, .param .u32 n, .param .align 8 .b8 pair[16]) {
  .reg .b32 %r<4>; .reg .b64 %d<4>; .reg .f32 %f<4>; .reg .pred %p;
  ld.param.u64 %d0, [p]; ld.param.u32 %r0, [n]; mov.u32 %r1, %tid.x; setp.ge.u32 %p, %r1, %r0; @%p ret;
  mul.wide.u32 %d1, %r1, 4; add.u64 %d0, %d0, %d1; ld.global.f32 %f0, [%d0]; ld.const.f32 %f1, [factor];
  mul.f32 %f0, %f0, %f1; ld.param.f32 %f2, [pair+8]; add.f32 %f0, %f0, %f2; st.global.f32 [%d0], %f0; ret;
}
"""


@pytest.fixture(scope="module")
def tool() -> Any:
    spec = importlib.util.spec_from_file_location("cuda_programs", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def launched(device: Any, *arguments: Any, block: int = 32) -> int:
    """A launch of the kernel at address 77, as the runtime asks for it."""
    pointers = (ctypes.c_void_p * len(arguments))(*(ctypes.addressof(a) for a in arguments))
    return device.launch(77, (ctypes.c_uint * 9)(1, 1, 1, block, 1, 1, 0, 0, 0), pointers, 0, 0)


def test_a_launch(tool: Any, tmp_path: Path, capsys: Any) -> None:
    """The host writes memory and a symbol, launches twice, and reads: x 3 + 0.5 of 20 numbers, then a fault of 33."""
    device = tool.Device([Module(PTX)], tmp_path / "log")
    device.function(77, b"scale")
    device.variable(78, b"factor")
    address, size = device.allocate(80), ctypes.c_size_t()
    assert address % 256 == 0
    at = device.symbol(78, ctypes.pointer(size))
    assert size.value == 4
    ctypes.c_float.from_address(at).value = 3
    memory = np.ctypeslib.as_array((ctypes.c_float * 20).from_address(address))
    memory[:] = np.arange(20)
    pair = (ctypes.c_float * 4)(9, 9, 0.5, 9)
    assert launched(device, ctypes.c_uint64(address), ctypes.c_uint32(20), pair) == 0
    np.testing.assert_array_equal(memory, np.arange(20) * 3 + np.float32(0.5))
    assert launched(device, ctypes.c_uint64(address), ctypes.c_uint32(33), pair) == 1
    assert "out of bounds" in capsys.readouterr().err
    (tmp_path / "log").rename(tmp_path / "launches")
    assert tool.report(tmp_path).splitlines()[0] == "     2 scale"
    assert "2 launches of 1 kernels, 1 failed" in tool.report(tmp_path)
    assert [bool(json.loads(line)["problem"]) for line in (tmp_path / "launches").read_text().splitlines()] == [
        False,
        True,
    ]
    assert (device.release(address), device.release(address)) == (0, 1)


def test_a_tensor_map(tool: Any, tmp_path: Path) -> None:
    """The driver counts dimensions from the innermost: a box of 8 by 16 of a tensor of 40 rows of 24 float16, 64 bytes apart."""
    device = tool.Device([Module(PTX)], tmp_path / "log")
    address, where = device.allocate(40 * 64), (ctypes.c_uint8 * 128)()
    sizes, strides = (ctypes.c_uint64 * 2)(24, 40), (ctypes.c_uint64 * 1)(64)
    box, steps = (ctypes.c_uint32 * 2)(16, 8), (ctypes.c_uint32 * 2)(1, 1)
    modes = (ctypes.c_int * 4)(0, 1, 3, 1)
    given = [ctypes.addressof(a) for a in (sizes, strides, box, steps)]
    assert device.tensor_map(ctypes.addressof(where), 6, 2, address, *given, modes) == 0
    rows = device._arrays[address].view(np.float16).reshape(40, 32)[:, :24]
    expected = TensorMap(rows, box=(8, 16), swizzle="32B", fill="nan", l2_promotion="256B").encode(address)
    assert bytes(where) == expected
    assert device.tensor_map(ctypes.addressof(where), 9, 2, address, *given, modes) == 0
    assert where[17] == tool.BY_NAME["bf16"].code
    modes[1] = 3  # 128 bytes, of which a row has 32
    assert device.tensor_map(ctypes.addressof(where), 6, 2, address, *given, modes) == 1


PROGRAM = """
#include <cstdio>
#include <cuda_runtime.h>
__constant__ int start;
__device__ int total;
struct Range { int first, last; };
__global__ void add(const int *x, Range r) {
  for (int i = r.first + threadIdx.x; i < r.last; i += blockDim.x) atomicAdd(&total, x[i] + start);
}
int main(int argc, char **argv) {
  int count = argc > 1 ? 2000 : 1000, host[1000], *x, five = 5, sum = 0;
  for (int i = 0; i < 1000; ++i) host[i] = i;
  cudaMalloc(&x, sizeof host);
  cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice);
  cudaMemcpyToSymbol(start, &five, sizeof five);
  add<<<1, 128>>>(x, Range{0, count});
  if (cudaDeviceSynchronize() != cudaSuccess) return 3;
  cudaMemcpyFromSymbol(&sum, total, sizeof sum);
  printf("%d\\n", sum);
  return sum != 999 * 500 + 5000;
}
"""


@pytest.mark.nightly
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="there is no nvcc on this machine to compile CUDA programs")
def test_a_program(tmp_path: Path) -> None:
    source = tmp_path / "sum.cu"
    source.write_text(PROGRAM)
    command = [sys.executable, str(TOOL), str(source), "--report", "--folder", str(tmp_path / "built")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "504500"), done.stderr
    assert "1 launches of 1 kernels, 0 failed" in done.stdout
    done = subprocess.run([*command, "--", "beyond"], capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "out of bounds: read of 4 bytes of global memory" in done.stderr


SORTED = """
#include <algorithm>
#include <cstdio>
#include <cub/device/device_radix_sort.cuh>
#include <numeric>
#include <vector>
int main() {
  const int n = 20000;
  std::vector<float> given(n), found(n);
  std::iota(given.begin(), given.end(), -n / 2);
  for (int i = 0; i < n; ++i) std::swap(given[i], given[i * 7919LL % n]);
  float *from, *to;
  void *room = nullptr;
  size_t bytes = 0;
  cub::DeviceRadixSort::SortKeys(room, bytes, from, to, n);
  if (cudaMalloc(&room, bytes) || cudaMalloc(&from, 4 * n) || cudaMalloc(&to, 4 * n)) return 2;
  cudaMemcpy(from, given.data(), 4 * n, cudaMemcpyHostToDevice);
  if (cub::DeviceRadixSort::SortKeys(room, bytes, from, to, n)) return 3;
  cudaMemcpy(found.data(), to, 4 * n, cudaMemcpyDeviceToHost);
  if (found == given) return 4;
  std::sort(given.begin(), given.end());
  return found != given;
}
"""


@pytest.mark.nightly
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="there is no nvcc on this machine to compile CUDA programs")
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_a_library(tmp_path: Path, arch: str) -> None:
    """CUB's radix sort, whose blocks wait for sums of the blocks before them; it asks for which architecture it was compiled."""
    source = tmp_path / "sort.cu"
    source.write_text(SORTED)
    command = [sys.executable, str(TOOL), str(source), "--arch", arch, "--report", "--folder", str(tmp_path / "built")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "DeviceRadixSortOnesweepKernel" in done.stdout
    assert done.stdout.endswith("s in the emulator\n") and ", 0 failed, " in done.stdout
