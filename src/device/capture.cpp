#include "device/capture.h"

#include "base/error.h"
#ifdef CREMA_CUDA
#include "device/gpu.h"
#endif

namespace crema {

#ifdef CREMA_CUDA

struct Capture::Graph {
  cudaGraphExec_t executable = nullptr;
  ~Graph() {
    if (executable) cudaGraphExecDestroy(executable);
  }
};

void Capture::record(Context& context, const std::function<void()>& work) {
  const cudaStream_t stream = context.gpu().stream;
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
             "recording a CUDA graph");
  cudaGraph_t graph = nullptr;
  try {
    work();
  } catch (...) {
    cudaStreamEndCapture(stream, &graph);
    if (graph) cudaGraphDestroy(graph);
    cudaGetLastError();  // clears the error of the failed capture: the exception says more
    throw;
  }
  check_cuda(cudaStreamEndCapture(stream, &graph), "recording a CUDA graph");
  auto made = std::make_unique<Graph>();
  const cudaError_t status = cudaGraphInstantiate(&made->executable, graph, 0);
  cudaGraphDestroy(graph);
  check_cuda(status, "preparing a CUDA graph");
  graph_ = std::move(made);
}

void Capture::launch(Context& context) const {
  check_cuda(cudaGraphLaunch(graph_->executable, context.gpu().stream), "starting a CUDA graph");
}

#else

struct Capture::Graph {};

void Capture::record(Context&, const std::function<void()>&) {
  fail("this build of Crema has no CUDA, so nothing can be captured");
}
void Capture::launch(Context&) const {}

#endif

Capture::Capture() = default;
Capture::~Capture() = default;
void Capture::clear() { graph_.reset(); }
bool Capture::recorded() const { return graph_ != nullptr; }

}  // namespace crema
