// The CUDA runtime as far as host programs need it to run on weft's emulator: see run.py, which sets the hooks.
//
// Device memory is memory of the host, and streams have nothing to wait for. What the emulator has to know goes to the hooks:
// allocations, registrations, launches, copies to and from symbols, tensor maps. Everything else succeeds and does nothing. A
// function that is not here ends the program with the name of the symbol, where it is called.

#include <cuda.h>
#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>

#include <cstdlib>
#include <cstring>

#define API extern "C" __attribute__((visibility("default")))

struct Hooks {
  void *(*allocate)(size_t bytes);
  int (*release)(void *address);
  void (*function)(const void *host, const char *name);
  void (*variable)(const void *host, const char *name);
  int (*launch)(const void *host, const unsigned *shape, void **arguments, size_t shared, int cooperative);
  void *(*symbol)(const void *host, size_t *bytes);
  int (*tensor_map)(void *map, int type, int rank, void *address, const void *sizes, const void *strides, const void *box,
                    const void *steps, const int *modes);
};

static Hooks hooks;
static int compute_capability = 80;
static int processors = 4;
static cudaError_t last = cudaSuccess;

API void weft_start(const Hooks *given, int capability, int count) {
  hooks = *given;
  compute_capability = capability;
  processors = count;
}

static cudaError_t said(int failed, cudaError_t error) { return last = failed ? error : cudaSuccess; }

// ---- registration, by the code that nvcc writes -----------------------------------------------------------------------------

API void **__cudaRegisterFatBinary(void *) {
  static void *handle;
  return &handle;
}
API void __cudaRegisterFatBinaryEnd(void **) {}
API void __cudaUnregisterFatBinary(void **) {}
API char __cudaInitModule(void **) { return 0; }
API void __cudaRegisterFunction(void **, const char *host, char *, const char *name, int, uint3 *, uint3 *, dim3 *, dim3 *, int *) {
  hooks.function(host, name);
}
API void __cudaRegisterVar(void **, char *host, char *, const char *name, int, size_t, int, int) { hooks.variable(host, name); }
API void __cudaRegisterManagedVar(void **, void **, char *, const char *, int, size_t, int, int) { abort(); }
API cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host) {
  *kernel = (cudaKernel_t)host;
  return cudaSuccess;
}

// ---- launches ---------------------------------------------------------------------------------------------------------------

static struct { dim3 grid, block; size_t shared; cudaStream_t stream; } pushed;

API unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream) {
  pushed = {grid, block, shared, stream};
  return 0;
}
API cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
  *grid = pushed.grid, *block = pushed.block, *shared = pushed.shared, *(cudaStream_t *)stream = pushed.stream;
  return cudaSuccess;
}

static cudaError_t run(const void *host, dim3 grid, dim3 block, dim3 cluster, void **arguments, size_t shared, bool cooperative) {
  unsigned shape[9] = {grid.x, grid.y, grid.z, block.x, block.y, block.z, cluster.x, cluster.y, cluster.z};
  return said(hooks.launch(host, shape, arguments, shared, cooperative), cudaErrorLaunchFailure);
}

API cudaError_t cudaLaunchKernel(const void *host, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t) {
  return run(host, grid, block, {0, 0, 0}, arguments, shared, false);
}
API cudaError_t __cudaLaunchKernel(cudaKernel_t host, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t) {
  return run((const void *)host, grid, block, {0, 0, 0}, arguments, shared, false);
}
API cudaError_t cudaLaunchCooperativeKernel(const void *host, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t) {
  return run(host, grid, block, {0, 0, 0}, arguments, shared, true);
}
API cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *host, void **arguments) {
  dim3 cluster{0, 0, 0};
  bool cooperative = false;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const cudaLaunchAttribute &attribute = config->attrs[i];
    if (attribute.id == cudaLaunchAttributeClusterDimension) {
      auto &size = attribute.val.clusterDim;
      cluster = {size.x, size.y, size.z};
    }
    if (attribute.id == cudaLaunchAttributeCooperative) cooperative = attribute.val.cooperative != 0;
  }
  return run(host, config->gridDim, config->blockDim, cluster, arguments, config->dynamicSmemBytes, cooperative);
}

API cudaError_t cudaFuncSetAttribute(const void *, cudaFuncAttribute, int) { return cudaSuccess; }
API cudaError_t cudaFuncSetCacheConfig(const void *, cudaFuncCache) { return cudaSuccess; }
API cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *found, const void *) {
  *found = {};
  found->maxThreadsPerBlock = 1024;
  found->numRegs = 32;
  found->maxDynamicSharedSizeBytes = 227 << 10;
  found->ptxVersion = found->binaryVersion = compute_capability; // by which CUB chooses sizes of blocks
  return cudaSuccess;
}
API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *count, const void *, int, size_t) {
  *count = 1;
  return cudaSuccess;
}
API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *count, const void *, int, size_t, unsigned) {
  *count = 1;
  return cudaSuccess;
}
API cudaError_t cudaOccupancyMaxActiveClusters(int *count, const void *, const cudaLaunchConfig_t *) {
  *count = processors;
  return cudaSuccess;
}

// ---- memory -----------------------------------------------------------------------------------------------------------------

static cudaError_t give(void **address, size_t bytes) {
  *address = hooks.allocate(bytes);
  return said(*address == nullptr, cudaErrorMemoryAllocation);
}

API cudaError_t cudaMalloc(void **address, size_t bytes) { return give(address, bytes); }
API cudaError_t cudaMallocManaged(void **address, size_t bytes, unsigned) { return give(address, bytes); }
API cudaError_t cudaMallocHost(void **address, size_t bytes) { return give(address, bytes); }
API cudaError_t cudaHostAlloc(void **address, size_t bytes, unsigned) { return give(address, bytes); }
API cudaError_t cudaMallocAsync(void **address, size_t bytes, cudaStream_t) { return give(address, bytes); }
API cudaError_t cudaMallocPitch(void **address, size_t *pitch, size_t width, size_t height) {
  *pitch = (width + 255) / 256 * 256;
  return give(address, *pitch * height);
}
API cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned) {
  *device = host;
  return cudaSuccess;
}
API cudaError_t cudaFree(void *address) { return said(address && hooks.release(address), cudaErrorInvalidValue); }
API cudaError_t cudaFreeHost(void *address) { return cudaFree(address); }
API cudaError_t cudaFreeAsync(void *address, cudaStream_t) { return cudaFree(address); }

API cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind) {
  memmove(to, from, bytes);
  return cudaSuccess;
}
API cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t) {
  return cudaMemcpy(to, from, bytes, kind);
}
API cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, cudaMemcpyKind) {
  for (size_t row = 0; row < height; ++row) memmove((char *)to + row * to_pitch, (const char *)from + row * from_pitch, width);
  return cudaSuccess;
}
API cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                                  cudaMemcpyKind kind, cudaStream_t) {
  return cudaMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind);
}
API cudaError_t cudaMemset(void *to, int value, size_t bytes) {
  memset(to, value, bytes);
  return cudaSuccess;
}
API cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t) { return cudaMemset(to, value, bytes); }
API cudaError_t cudaMemGetInfo(size_t *available, size_t *total) {
  *available = *total = (size_t)8 << 30;
  return cudaSuccess;
}

API cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset, cudaMemcpyKind) {
  size_t size = 0;
  char *at = (char *)hooks.symbol(symbol, &size);
  if (!at || offset + bytes > size) return said(1, cudaErrorInvalidSymbol);
  memcpy(at + offset, from, bytes);
  return cudaSuccess;
}
API cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset, cudaMemcpyKind) {
  size_t size = 0;
  char *at = (char *)hooks.symbol(symbol, &size);
  if (!at || offset + bytes > size) return said(1, cudaErrorInvalidSymbol);
  memcpy(to, at + offset, bytes);
  return cudaSuccess;
}

API cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t bytes, size_t offset, cudaMemcpyKind kind, cudaStream_t) {
  return cudaMemcpyToSymbol(symbol, from, bytes, offset, kind);
}
API cudaError_t cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t bytes, size_t offset, cudaMemcpyKind kind, cudaStream_t) {
  return cudaMemcpyFromSymbol(to, symbol, bytes, offset, kind);
}
API cudaError_t cudaHostRegister(void *, size_t, unsigned) { return said(1, cudaErrorNotSupported); }
API cudaError_t cudaMemPrefetchAsync(const void *, size_t, cudaMemLocation, unsigned, cudaStream_t) { return cudaSuccess; }
API cudaError_t cudaMemAdvise(const void *, size_t, cudaMemoryAdvise, cudaMemLocation) { return cudaSuccess; }

// ---- the device -------------------------------------------------------------------------------------------------------------

API cudaError_t cudaGetDeviceCount(int *count) {
  *count = 1;
  return cudaSuccess;
}
API cudaError_t cudaGetDevice(int *device) {
  *device = 0;
  return cudaSuccess;
}
API cudaError_t cudaSetDevice(int) { return cudaSuccess; }
API cudaError_t cudaSetDeviceFlags(unsigned) { return cudaSuccess; }
API cudaError_t cudaGetDeviceProperties(cudaDeviceProp *found, int) {
  memset(found, 0, sizeof *found);
  strcpy(found->name, "weft's emulator");
  found->major = compute_capability / 10;
  found->minor = compute_capability % 10;
  found->multiProcessorCount = processors;
  found->warpSize = 32;
  found->maxThreadsPerBlock = 1024;
  found->maxThreadsPerMultiProcessor = 2048;
  found->maxBlocksPerMultiProcessor = 32;
  for (int i = 0; i < 3; ++i) found->maxThreadsDim[i] = i < 2 ? 1024 : 64, found->maxGridSize[i] = i ? 65535 : 2147483647;
  found->totalGlobalMem = (size_t)8 << 30;
  found->totalConstMem = 64 << 10;
  found->sharedMemPerBlock = 48 << 10;
  found->sharedMemPerBlockOptin = found->sharedMemPerMultiprocessor = 227 << 10;
  found->regsPerBlock = found->regsPerMultiprocessor = 64 << 10;
  found->cooperativeLaunch = found->managedMemory = found->concurrentManagedAccess = found->unifiedAddressing = 1;
  found->canMapHostMemory = found->concurrentKernels = found->asyncEngineCount = found->clusterLaunch = 1;
  return cudaSuccess;
}
API cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int) {
  cudaDeviceProp known;
  cudaGetDeviceProperties(&known, 0);
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor: *value = known.major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = known.minor; break;
    case cudaDevAttrMultiProcessorCount: *value = processors; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = 48 << 10; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = 227 << 10; break;
    case cudaDevAttrMaxThreadsPerBlock: *value = 1024; break;
    case cudaDevAttrWarpSize: *value = 32; break;
    case cudaDevAttrComputeMode: *value = 0; break;
    case cudaDevAttrClockRate: *value = 1000000; break;
    case cudaDevAttrL2CacheSize: *value = 1 << 25; break;
    default: *value = 1;
  }
  return cudaSuccess;
}
API cudaError_t cudaDeviceSynchronize() { return last; }
API cudaError_t cudaDeviceReset() { return cudaSuccess; }
API cudaError_t cudaDeviceSetLimit(cudaLimit, size_t) { return cudaSuccess; }
API cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return cudaSuccess; }
API cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  *least = *greatest = 0;
  return cudaSuccess;
}
API cudaError_t cudaDeviceCanAccessPeer(int *can, int, int) {
  *can = 0;
  return cudaSuccess;
}
API cudaError_t cudaProfilerStart() { return cudaSuccess; }
API cudaError_t cudaProfilerStop() { return cudaSuccess; }
// CUTLASS changes bits of the tensor maps of drivers before 13.2, which emulated ones have other meanings for.
API cudaError_t cudaDriverGetVersion(int *version) {
  *version = CUDART_VERSION > 13020 ? CUDART_VERSION : 13020;
  return cudaSuccess;
}
API cudaError_t cudaRuntimeGetVersion(int *version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
API cudaError_t cudaGetLastError() {
  cudaError_t found = last;
  last = cudaSuccess;
  return found;
}
API cudaError_t cudaPeekAtLastError() { return last; }
API const char *cudaGetErrorString(cudaError_t error) { return error ? "an error of the emulator's runtime" : "no error"; }
API const char *cudaGetErrorName(cudaError_t error) { return error ? "cudaError" : "cudaSuccess"; }

// ---- streams and events: everything is done when it is asked for ------------------------------------------------------------

API cudaError_t cudaStreamCreate(cudaStream_t *stream) {
  *stream = (cudaStream_t)malloc(1);
  return cudaSuccess;
}
API cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned) { return cudaStreamCreate(stream); }
API cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned, int) { return cudaStreamCreate(stream); }
API cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  free(stream);
  return cudaSuccess;
}
API cudaError_t cudaStreamSynchronize(cudaStream_t) { return last; }
API cudaError_t cudaStreamQuery(cudaStream_t) { return cudaSuccess; }
API cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
API cudaError_t cudaLaunchHostFunc(cudaStream_t, cudaHostFn_t function, void *data) {
  function(data);
  return cudaSuccess;
}
API cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void *data, unsigned) {
  callback(stream, last, data);
  return cudaSuccess;
}
API cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus *status) {
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
API cudaError_t cudaEventCreate(cudaEvent_t *event) {
  *event = (cudaEvent_t)malloc(1);
  return cudaSuccess;
}
API cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned) { return cudaEventCreate(event); }
API cudaError_t cudaEventDestroy(cudaEvent_t event) {
  free(event);
  return cudaSuccess;
}
API cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
API cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
API cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }
API cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t, cudaEvent_t) {
  *ms = 1;
  return cudaSuccess;
}

// ---- tensor maps ------------------------------------------------------------------------------------------------------------

API CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address, const cuuint64_t *sizes,
                                    const cuuint64_t *strides, const cuuint32_t *box, const cuuint32_t *steps,
                                    CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                    CUtensorMapFloatOOBfill fill) {
  int modes[4] = {(int)interleave, (int)swizzle, (int)promotion, (int)fill};
  return hooks.tensor_map(map, type, (int)rank, address, sizes, strides, box, steps, modes) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static cudaError_t entry(const char *symbol, void **function, cudaDriverEntryPointQueryResult *status) {
  *function = strcmp(symbol, "cuTensorMapEncodeTiled") ? nullptr : (void *)cuTensorMapEncodeTiled;
  if (status) *status = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}
API cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned, unsigned long long,
                                                 cudaDriverEntryPointQueryResult *status) {
  return entry(symbol, function, status);
}
API cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long, cudaDriverEntryPointQueryResult *status) {
  return entry(symbol, function, status);
}
