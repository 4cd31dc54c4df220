// Makes a net's plan: choices made for speed are dropped where memory is scarce.
#include <algorithm>

#include "base/error.h"
#include "base/system.h"
#include "device/communicator.h"
#include "net/graph/graph_builder.h"
#include "net/net.h"
#include "net/plan/arena.h"
#include "net/plan/plan.h"

namespace crema {
namespace {

// In nets whose blobs total less, a GPU is idle while small kernels run one after the other.
constexpr size_t kOverlapBytes = size_t{512} << 20;

}  // namespace

size_t Net::bytes_of_blobs() const {
  size_t bytes = 0;
  for (const Value& value : graph_.values) bytes += value.shape.count() * sizeof(float);
  return bytes;
}

void Net::make_plan() {
  try {
    make_plan_that_fits();
  } catch (...) {
    plan_.reset();  // one that does not fit must not be kept
    throw;
  }
}

void Net::make_plan_that_fits() {
  PlanOptions p;
  p.dtype = options_.dtype;
  p.precision = options_.precision;
  p.backward = !options_.forward_only && (training() || options_.backward ||
                                          options_.seed_outputs || graph_.net.force_backward());
  p.keep_blobs = options_.keep_blobs;
  p.fuse = options_.fuse;
  p.pack = options_.pack && !options_.share;
  p.row_major = options_.row_major;
  p.rounds = options_.rounds;
  // Exact float32 on a GPU: cuDNN's kernels without tensor cores are for row-major (NCHW).
  p.format = options_.format && !options_.row_major &&
             (context_.device() == Device::cpu || options_.precision != Precision::fp32);
  p.reuse_memory = options_.reuse_memory;
  if (options_.micro_batches && context_.device() == Device::cpu && !training() && !p.backward &&
      !p.keep_blobs && p.reuse_memory && !observer_)
    p.cache_bytes = options_.cache_bytes > 0 ? options_.cache_bytes : last_cache_bytes();
  p.overlap = options_.overlap && context_.device() == Device::gpu && p.backward &&
              !options_.keep_blobs && bytes_of_blobs() <= kOverlapBytes;
  const Recompute recompute =
      p.backward && p.reuse_memory && !p.keep_blobs ? options_.recompute : Recompute::off;
  p.recompute = p.overlap ? Recompute::off : recompute;
  p.loss_share = p.sum_share = loss_share();
  p.shares_batches =
      training() && context_.world() && context_.world()->divides_batches && share().all > 0;
  if (p.shares_batches) p.sum_share = 1;
  p.seed_outputs = options_.seed_outputs;
  p.all_parameter_diffs = graph_.net.force_backward();
  plan_with(p);
  while (!fits()) {
    if (!earlier_plans_.empty()) {
      earlier_plans_.pop_back();
      continue;
    }
    if (plan_->packs()) {
      p.pack = false;
    } else if (p.overlap) {
      p.overlap = false;
      p.recompute = recompute;
    } else if (p.recompute == Recompute::cheap) {
      p.recompute = Recompute::all;
    } else if (release_resident()) {
      continue;
    } else {
      break;
    }
    plan_with(p);
  }
  if (!parameter_data_ && !ranks_choose_alike()) {
    p.row_major_parameters = true;
    plan_with(p);
  }
  check_memory();
  options_.arena->reserve(plan_->arena_bytes);
}

// Whether all ranks have chosen the same formats for the parameters: their gradients are summed as
// stored. The choice depends on the rank's part of the batch, its threads and its processor.
bool Net::ranks_choose_alike() {
  if (!training() || context_.ranks() == 1 || options_.row_major) return true;
  std::string formats;
  for (const std::optional<Format>& format : plan_->parameter_formats)
    formats += format->str() + ";";
  for (const std::string& other : context_.world()->gather(formats)) {
    if (other != formats) return false;
  }
  return true;
}

void Net::plan_with(const PlanOptions& options) {
  plan_ = std::make_unique<Plan>(context_, graph_, options);
  shapes_ = source_shapes();
  context_.end_tuning();
  if (!parameter_data_) place_parameters();
}

// Records that were kept in a GPU's memory are read from the host again. False: there were none.
bool Net::release_resident() {
  bool released = options_.share && options_.share->release_resident();
  for (const auto& [node, source] : sources_of(graph_)) {
    if (source.resident_bytes() == 0) continue;
    context_.log().info(cat("Layer ", node.message.name(), ": its records, ",
                            size_text(source.resident_bytes()),
                            ", stay on the host, because the net needs the GPU's memory"));
    source.release_resident();
    released = true;
  }
  const auto renew = [](Plan& plan) {
    plan.count_host_nodes();
    ++plan.generation;
  };
  if (plan_) renew(*plan_);
  for (EarlierPlan& earlier : earlier_plans_) renew(*earlier.plan);
  ++generation_;
  return released;
}

std::vector<Shape> Net::source_shapes() const {
  std::vector<Shape> shapes;
  for (const Node& node : graph_.nodes) {
    if (!node.bottoms.empty()) continue;
    for (const int value : node.tops) shapes.push_back(graph_.values[value].shape);
  }
  return shapes;
}

// The shapes change: keeps the plan, in case they come back. Without gradients that is worth its
// memory; with them, only the last batch of an epoch has another size.
void Net::set_plan_aside() {
  constexpr size_t kKept = 4;
  if (!plan_) return;
  if (!plan_->options.backward || options_.whole_epochs) {
    earlier_plans_.insert(earlier_plans_.begin(), {shapes_, std::move(plan_)});
    if (earlier_plans_.size() > kKept) earlier_plans_.pop_back();
  }
  plan_.reset();
}

bool Net::take_earlier_plan() {
  const auto found =
      std::find_if(earlier_plans_.begin(), earlier_plans_.end(),
                   [shapes = source_shapes()](const EarlierPlan& e) { return e.shapes == shapes; });
  if (found == earlier_plans_.end()) return false;
  shapes_ = found->shapes;
  plan_ = std::move(found->plan);
  earlier_plans_.erase(found);
  options_.arena->reserve(plan_->arena_bytes);
  ++generation_;
  diffs_are_clear_ = false;
  if (live_pass_) set_live_pass(live_pass_);
  clear_carried();
  return true;
}

void Net::parameters_moved() {
  parameters_changed();
  earlier_plans_.clear();
  ++generation_;
  if (plan_ && plan_->bound())
    plan_->bind(context_, options_.arena->buffer(context_), graph_.parameters);
}

void Net::drop_plans() {
  plan_.reset();
  earlier_plans_.clear();
}

void Net::plan_for(uint64_t pass) {
  update_source_shapes(pass);
  planned();
}

Plan& Net::planned() {
  if (!plan_ && !take_earlier_plan()) make_plan();
  return *plan_;
}

// Each parameter starts at a multiple of 16 elements, to align vector loads.
void Net::place_parameters() {
  parameter_offsets_.clear();
  parameter_elements_ = 0;
  for (size_t i = 0; i < graph_.parameters.size(); ++i) {
    parameter_offsets_.push_back(parameter_elements_);
    const Parameter& parameter = graph_.parameters[i];
    if (parameter.data) continue;
    const int64_t elements = plan_->parameter_formats[i]->elements(parameter.shape);
    parameter_elements_ += (elements + 15) / 16 * 16;
  }
}

}  // namespace crema
