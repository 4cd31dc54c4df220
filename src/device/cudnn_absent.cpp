#include "device/cudnn.h"

namespace crema {

bool has_cudnn() { return false; }

int cudnn_version() { return 0; }

cudnnContext* open_cudnn(CUstream_st*) { return nullptr; }

void set_cudnn_stream(cudnnContext*, CUstream_st*) {}

void close_cudnn(cudnnContext*) {}

}  // namespace crema
