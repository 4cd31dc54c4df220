/* Preloaded into a program, lets calls to CUDA's runtime fail. gpu_faults.py compiles it, and says which:
     CREMA_FAULT_CALL   a function, such as cudaMalloc; "any": every one that is listed here
     CREMA_FAULT_NTH    which of these calls, from 1; 0: none
     CREMA_FAULT_ERROR  the number of the cudaError_t that it returns
     CREMA_FAULT_LOST   1: every later call returns it, too, as after the loss of a card
     CREMA_FAULT_COUNT  a file that gets the number of calls by name at the end (with CREMA_FAULT_NTH=0) */
#define _GNU_SOURCE
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static atomic_int made, lost;
static _Thread_local cudaError_t last; /* what cudaGetLastError() returns next; cudaSuccess: what CUDA says */

static const char* setting(const char* name) {
  const char* text = getenv(name);
  return text ? text : "";
}

static cudaError_t error_number(void) { return (cudaError_t)atoi(setting("CREMA_FAULT_ERROR")); }

enum { kNames = 64 };
static struct {
  _Atomic(const char*) name;
  atomic_int calls;
} counts[kNames];

static void count(const char* name) {
  for (int i = 0; i < kNames; ++i) {
    const char* known = NULL;
    if (atomic_compare_exchange_strong(&counts[i].name, &known, name) || strcmp(known, name) == 0) {
      atomic_fetch_add(&counts[i].calls, 1);
      return;
    }
  }
}

__attribute__((destructor)) static void write_counts(void) {
  const char* path = setting("CREMA_FAULT_COUNT");
  FILE* file = *path ? fopen(path, "w") : NULL;
  if (!file) return;
  for (int i = 0; i < kNames && counts[i].name; ++i)
    fprintf(file, "%s %d\n", (const char*)counts[i].name, atomic_load(&counts[i].calls));
  fclose(file);
}

/* Counts a call; true when it fails. */
static int fails(const char* name) {
  count(name);
  if (!atomic_load(&lost)) {
    const char* wanted = setting("CREMA_FAULT_CALL");
    if (strcmp(wanted, "any") != 0 && strcmp(wanted, name) != 0) return 0;
    if (atomic_fetch_add(&made, 1) + 1 != atoi(setting("CREMA_FAULT_NTH"))) return 0;
    if (*setting("CREMA_FAULT_LOST") == '1') atomic_store(&lost, 1);
  }
  last = error_number();
  return 1;
}

#define CALL(name, parameters, arguments)                                    \
  cudaError_t CUDARTAPI name parameters {                                    \
    static __typeof__(name)* real;                                           \
    if (!real) real = (__typeof__(name)*)dlsym(RTLD_NEXT, #name);            \
    return fails(#name) ? error_number() : real arguments;                   \
  }

CALL(cudaMalloc, (void** data, size_t bytes), (data, bytes))
CALL(cudaMallocHost, (void** data, size_t bytes), (data, bytes))
CALL(cudaHostRegister, (void* data, size_t bytes, unsigned flags), (data, bytes, flags))
CALL(cudaMemGetInfo, (size_t* available, size_t* total), (available, total))
CALL(cudaMemset, (void* data, int value, size_t bytes), (data, value, bytes))
CALL(cudaMemsetAsync, (void* data, int value, size_t bytes, cudaStream_t stream), (data, value, bytes, stream))
CALL(cudaMemcpyAsync, (void* to, const void* from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream),
     (to, from, bytes, kind, stream))
CALL(cudaStreamCreateWithPriority, (cudaStream_t * stream, unsigned flags, int priority), (stream, flags, priority))
CALL(cudaStreamSynchronize, (cudaStream_t stream), (stream))
CALL(cudaStreamQuery, (cudaStream_t stream), (stream))
CALL(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned flags), (stream, event, flags))
CALL(cudaStreamBeginCapture, (cudaStream_t stream, enum cudaStreamCaptureMode mode), (stream, mode))
CALL(cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t* graph), (stream, graph))
CALL(cudaEventCreate, (cudaEvent_t * event), (event))
CALL(cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned flags), (event, flags))
CALL(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), (event, stream))
CALL(cudaEventSynchronize, (cudaEvent_t event), (event))
CALL(cudaEventElapsedTime, (float* milliseconds, cudaEvent_t from, cudaEvent_t to), (milliseconds, from, to))
CALL(cudaGraphInstantiate, (cudaGraphExec_t * made_graph, cudaGraph_t graph, unsigned long long flags), (made_graph, graph, flags))
CALL(cudaGraphLaunch, (cudaGraphExec_t graph, cudaStream_t stream), (graph, stream))
CALL(cudaLaunchKernel, (const void* kernel, dim3 grid, dim3 block, void** arguments, size_t shared, cudaStream_t stream),
     (kernel, grid, block, arguments, shared, stream))
CALL(cudaLaunchKernelExC, (const cudaLaunchConfig_t* how, const void* kernel, void** arguments), (how, kernel, arguments))
CALL(cudaLaunchHostFunc, (cudaStream_t stream, cudaHostFn_t function, void* data), (stream, function, data))
CALL(cudaFuncSetAttribute, (const void* kernel, enum cudaFuncAttribute attribute, int value), (kernel, attribute, value))
CALL(cudaSetDevice, (int device), (device))
CALL(cudaDeviceSynchronize, (void), ())

static cudaError_t last_error(const char* name, int clear) {
  cudaError_t (*real)(void) = (cudaError_t(*)(void))dlsym(RTLD_NEXT, name);
  if (atomic_load(&lost)) return error_number();
  const cudaError_t said = last;
  if (clear) last = cudaSuccess;
  return said != cudaSuccess ? said : real();
}
cudaError_t CUDARTAPI cudaGetLastError(void) { return last_error("cudaGetLastError", 1); }
cudaError_t CUDARTAPI cudaPeekAtLastError(void) { return last_error("cudaPeekAtLastError", 0); }
