#include <algorithm>
#include <chrono>
#include <sstream>

#include "device/aligned.h"
#include "device/cudnn.h"
#include "device/device_scope.h"
#include "device/tuning.h"
#include "kernels/conv/cudnn_graph.h"

namespace crema {
namespace {

constexpr double kBuildSeconds = 0.3;  // for the candidates of one computation
constexpr int64_t kBuildThreads = 8;

using cudnn_frontend::DataType_t;
using cudnn_frontend::NumericalNote_t;

DataType_t cudnn_type(DType type) {
  switch (type) {
    case DType::f16:
      return DataType_t::HALF;
    case DType::bf16:
      return DataType_t::BFLOAT16;
    default:
      return DataType_t::FLOAT;
  }
}

size_t elements_of(const std::vector<int64_t>& dims, const std::vector<int64_t>& strides) {
  int64_t last = 0;
  for (size_t i = 0; i < dims.size(); ++i) last += (dims[i] - 1) * strides[i];
  return static_cast<size_t>(last + 1);
}

}  // namespace

CudnnGraph::CudnnGraph(DType storage) : element_(size_of(storage)) {
  graph_.set_io_data_type(cudnn_type(storage))
      .set_intermediate_data_type(DataType_t::FLOAT)
      .set_compute_data_type(DataType_t::FLOAT);
}

CudnnGraph::Attributes CudnnGraph::input(const std::vector<int64_t>& dims,
                                         const std::vector<int64_t>& strides, int64_t uid) {
  extents_.push_back({uid, elements_of(dims, strides) * element_});
  return graph_.tensor(
      cudnn_frontend::graph::Tensor_attributes().set_dim(dims).set_stride(strides).set_uid(uid));
}

void CudnnGraph::output(const Attributes& tensor, const std::vector<int64_t>& dims,
                        const std::vector<int64_t>& strides, int64_t uid) {
  extents_.push_back({uid, elements_of(dims, strides) * element_});
  tensor->set_output(true).set_dim(dims).set_stride(strides).set_uid(uid);
}

void CudnnGraph::output_sums(const Attributes& tensor, int64_t channels, int64_t uid) {
  any_order_ = true;
  extents_.push_back({uid, static_cast<size_t>(channels) * sizeof(float)});
  tensor->set_output(true).set_data_type(DataType_t::FLOAT).set_uid(uid);
}

CudnnTarget::CudnnTarget(const std::string& json) {
  const int cudnn = cudnn_version();
  const auto properties = std::make_shared<cudnn_frontend::DeviceProperties>();
  auto status = properties->deserialize({json.begin(), json.end()});
  require(status.is_good(), "cuDNN ", cudnn,
          " does not take the description of a card: ", status.get_message());
  properties_ = properties;
  const std::string field = "\"deviceVer\": ";
  const size_t at = json.find(field);
  require(at != std::string::npos, "the description of a card has no deviceVer");
  version_ = std::stoi(json.substr(at + field.size())) / 10;
}

cudnn_frontend::error_t CudnnTarget::describe_to(cudnn_frontend::graph::Graph& graph) const {
  if (context_) return graph.build_operation_graph(context_->gpu().cudnn);
  graph.set_device_properties(properties_).set_sm_version(version_);
  return graph.build_operation_graph();
}

void CudnnGraph::start(const CudnnTarget& target, Precision precision, const std::string& key) {
  target_ = target;
  precision_ = precision;
  key_ = key;
  std::optional<std::string> known;
  int gpu = -1;
  if (Context* const context = target.context()) {
    known = context->gpu().tuning.find(key);
    check_cuda(cudaGetDevice(&gpu), "asking for the current GPU");
  }
  found_ = std::async(std::launch::async, [this, gpu, known] {
    std::optional<DeviceScope> scope;
    if (gpu >= 0) scope.emplace(gpu);
    return look(known);
  });
}

bool CudnnGraph::build(std::string& reason) {
  if (!found_.get()) {
    reason = reason_;
    return false;
  }
  Context* const context = target_->context();
  if (!context) return true;
  if (!choose_plan(*context, reason)) return false;
  std::string name;
  if (graph_.get_plan_name_at_index(plan_, name).is_good()) {
    const std::string words = key_.substr(0, key_.find(cat(" ", name_of(precision_), " ")));
    context->chosen.push_back(cat(words, " ", name));
  }
  return true;
}

bool CudnnGraph::look(const std::optional<std::string>& known) {
  cudnn_frontend::error_t status = graph_.validate();
  if (status.is_good()) status = target_->describe_to(graph_);
  if (status.is_good()) return (known && recall(*known)) || find_plans();
  reason_ = status.get_message();
  return false;
}

// Makes the plan that was chosen before, by its name, "eng36_k2=0_k13=4": asking the heuristics takes
// ten times as long.
bool CudnnGraph::recall(const std::string& name) {
  std::istringstream text(name);
  const auto skip = [&](const char* word) {
    for (; *word && text.peek() == *word; ++word) text.get();
    return *word == 0;
  };
  int64_t engine = 0, value = 0;
  int knob = 0;
  std::unordered_map<cudnn_frontend::KnobType_t, int64_t> knobs;
  if (!skip("eng") || !(text >> engine)) return false;
  while (skip("_k") && text >> knob && skip("=") && text >> value) {
    const auto type = static_cast<cudnnBackendKnobType_t>(knob);
    knobs[cudnn_frontend::convert_from_backend_knob_type(type)] = value;
  }
  std::string made;
  return graph_.create_execution_plan(engine, knobs).is_good() &&
         graph_.get_plan_name_at_index(0, made).is_good() && made == name && exclude() &&
         graph_.build_plan_at_index(0).is_good();
}

bool CudnnGraph::find_plans() {
  auto status = graph_.create_execution_plans(
      {cudnn_frontend::HeurMode_t::A, cudnn_frontend::HeurMode_t::FALLBACK});
  if (status.is_good()) return exclude();
  reason_ = status.get_message();
  return false;
}

bool CudnnGraph::exclude() {
  std::vector<NumericalNote_t> unwanted = {NumericalNote_t::REDUCED_PRECISION_REDUCTION,
                                           NumericalNote_t::FFT, NumericalNote_t::WINOGRAD_TILE_6x6,
                                           NumericalNote_t::WINOGRAD_TILE_13x13};
  if (!any_order_) unwanted.push_back(NumericalNote_t::NONDETERMINISTIC);
  if (precision_ == Precision::fp32) {
    unwanted.push_back(NumericalNote_t::TENSOR_CORE);
    unwanted.push_back(NumericalNote_t::DOWN_CONVERT_INPUTS);
  }
  graph_.deselect_numeric_notes(unwanted);
  auto status = graph_.check_support();
  if (status.is_bad()) reason_ = status.get_message();
  return status.is_good();
}

bool CudnnGraph::choose_plan(Context& context, std::string& reason) {
  const int64_t count = graph_.get_execution_plan_count();
  Tuning& tuning = context.gpu().tuning;
  const auto take = [&](const std::optional<std::string>& answer) {
    for (int64_t i = 0; answer && i < count; ++i) {
      std::string name;
      if (graph_.get_plan_name_at_index(i, name).is_good() && name == *answer && use(i))
        return true;
    }
    return false;
  };
  if (take(tuning.find(key_))) return true;
  const Tuning::Spending spending(tuning);
  std::optional<int64_t> best;
  double best_time = 1e30, building = 0;
  int made = 0, timed = 0;
  bool full = false;  // too little memory to time any
  for (int64_t next = 0; next < count && made < tuning.candidates() && !full;) {
    // Compiling some engines takes a second each: those that heuristics name last do not get it.
    if (made > 1 && building > kBuildSeconds && tuning.mode == TuneMode::quick) break;
    const auto begin = std::chrono::steady_clock::now();
    const std::vector<int64_t> usable = build_some(next, tuning.candidates() - made);
    building += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    for (int64_t i : usable) {
      if (!use(i) || workspace_ > kWorkspaceLimit) continue;
      ++made;
      const std::optional<Scratch> memory =
          tuning.candidates() == 1 ? std::nullopt : scratch(context);
      if (!memory) {
        full = true;
        best = best.value_or(i);
        break;
      }
      const double milliseconds = time(context, i, *memory, best_time);
      ++timed;
      if (milliseconds < kClearlyFaster * best_time) best = i, best_time = milliseconds;
      if (!best) best = i;
    }
  }
  tuning.spent.building += building;
  if (!best) {
    for (int64_t i = 0; i < count; ++i) {
      if (use(i)) return true;
    }
    reason = cat("none of ", count, " plans can be built");
    return false;
  }
  use(*best);
  std::string name;
  if (timed > 0 && graph_.get_plan_name_at_index(plan_, name).is_good())
    take(tuning.remember(key_, name));
  return true;
}

std::vector<int64_t> CudnnGraph::build_some(int64_t& next, int wanted) {
  int gpu = -1;
  check_cuda(cudaGetDevice(&gpu), "asking for the current GPU");
  const int64_t begin = next, left = graph_.get_execution_plan_count() - begin;
  next += std::min({left, int64_t{wanted}, kBuildThreads});
  // Each is compiled on a thread of its own.
  std::vector<std::future<bool>> builds;
  for (int64_t i = begin; i < next; ++i) {
    builds.push_back(std::async(std::launch::async, [this, gpu, i] {
      const DeviceScope scope(gpu);
      return graph_.build_plan_at_index(i).is_good();
    }));
  }
  std::vector<int64_t> built;
  for (int64_t i = begin; i < next; ++i) {
    if (builds[static_cast<size_t>(i - begin)].get()) built.push_back(i);
  }
  return built;
}

bool CudnnGraph::use(int64_t plan) {
  if (graph_.build_plan_at_index(plan).is_bad()) return false;
  int64_t bytes = 0;
  if (graph_.get_workspace_size_plan_at_index(plan, bytes).is_bad()) return false;
  plan_ = plan;
  workspace_ = static_cast<size_t>(bytes);
  return true;
}

std::optional<CudnnGraph::Scratch> CudnnGraph::scratch(Context& context) const {
  size_t total = kWorkspaceLimit;
  for (const Extent& extent : extents_) total += aligned(extent.bytes);
  char* at = static_cast<char*>(context.gpu().tuning.scratch(context, total));
  if (!at) return std::nullopt;
  Scratch scratch;
  for (const Extent& extent : extents_) {
    scratch.tensors.push_back({extent.uid, at});
    at += aligned(extent.bytes);
  }
  scratch.workspace = at;
  return scratch;
}

double CudnnGraph::time(Context& context, int64_t plan, const Scratch& scratch, double best) {
  std::unordered_map<int64_t, void*> memory;
  for (const Bound& bound : scratch.tensors) memory[bound.uid] = bound.memory;
  const auto run = [&] {
    return graph_.execute_plan_at_index(context.gpu().cudnn, memory, scratch.workspace, plan)
        .is_good();
  };
  if (!run()) return 1e30;
  double shortest = 1e30, total = 0;
  for (int i = 0; i < 10 && (i < 3 || total < 10); ++i) {
    const double milliseconds = context.gpu().tuning.time(context, [&] { run(); });
    shortest = std::min(shortest, milliseconds);
    total += milliseconds;
    if (is_hopeless(shortest, best)) break;
  }
  return shortest;
}

void CudnnGraph::run(Context& context, const std::vector<Bound>& tensors, void* workspace) {
  std::unordered_map<int64_t, void*> memory;
  for (const Bound& bound : tensors) memory[bound.uid] = bound.memory;
  auto status = graph_.execute_plan_at_index(context.gpu().cudnn, memory, workspace, plan_);
  require(status.is_good(), "cuDNN failed: ", status.get_message());
}

}  // namespace crema
