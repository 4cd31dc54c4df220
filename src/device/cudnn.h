// The seam to cuDNN, the only header about it that other floors include. A GPU build configured
// with -DCREMA_CUDNN=OFF, and one without CUDA, compile cudnn_absent.cpp instead of gpu_cudnn.cpp;
// then there is no cuDNN, and no part of it is included, linked or loaded.
#pragma once

struct cudnnContext;  // a cudnnHandle_t points to one
struct CUstream_st;   // a cudaStream_t points to one

namespace crema {

// Whether this build can use cuDNN.
bool has_cudnn();

// 91400 is 9.14.0; 0 without cuDNN. Loads the library on the first call: Error with the loader's
// reason. Thread-safe.
int cudnn_version();

// A handle that queues work on `stream`; null without cuDNN, and then the others do nothing.
cudnnContext* open_cudnn(CUstream_st* stream);
void set_cudnn_stream(cudnnContext* handle, CUstream_st* stream);
void close_cudnn(cudnnContext* handle);

}  // namespace crema
