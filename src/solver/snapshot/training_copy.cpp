#include "solver/snapshot/training_copy.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>

#include "base/error.h"
#include "base/strings.h"
#include "net/prototxt/prototxt.h"
#include "solver/iteration/optimizer.h"

namespace crema {
namespace {

constexpr size_t kChunk =
    1 << 18;  // bytes that one thread copies at a time; they fit into its cache

// The exponent's bits are all set in nan and infinite numbers only.
template <typename Bits>
bool all_finite(const char* bytes, size_t count, Bits exponent) {
  bool found = false;
  for (size_t i = 0; i < count / sizeof(Bits); ++i) {
    Bits bits;
    std::memcpy(&bits, bytes + i * sizeof(Bits), sizeof(Bits));
    found |= (bits & exponent) == exponent;
  }
  return !found;
}

bool all_finite(const char* bytes, size_t count, DType dtype) {
  return dtype == DType::f64 ? all_finite<uint64_t>(bytes, count, 0x7FF0000000000000u)
                             : all_finite<uint32_t>(bytes, count, 0x7F800000u);
}

// Bytes of the values of all parameters.
uint64_t bytes_of_all(const Net& net) {
  uint64_t bytes = 0;
  for (const Parameter& parameter : net.graph().parameters)
    bytes += static_cast<uint64_t>(parameter.data.count()) * size_of(parameter.data.dtype());
  return bytes;
}

std::vector<Optimizer::Kept> kept_in(const TrainingCopy::Parts& parts) {
  std::vector<Optimizer::Kept> kept;
  if (parts.state) kept = {Optimizer::Kept::history, Optimizer::Kept::slow};
  if (parts.average) kept.push_back(Optimizer::Kept::average);
  return kept;
}

}  // namespace

void ArenaCopy::take(Context& context, const Tensor& arena) {
  const size_t bytes = arena ? arena.bytes() : 0;
  dtype_ = arena.dtype();
  if (bytes_ != bytes) {
    bytes_ = 0;
    data_.reset(new (std::nothrow) char[bytes]);  // not cleared
    require(data_ != nullptr, "memory is short: the copy that a snapshot is written from needs ",
            size_text(bytes), " more");
    bytes_ = bytes;
  }
  const bool here = arena.device() == Device::cpu;
  if (!here) copy_bytes(context, data_.get(), Device::cpu, arena.raw(), arena.device(), bytes_);
  const char* const from = static_cast<const char*>(arena.raw());
  const auto chunks = static_cast<int64_t>((bytes_ + kChunk - 1) / kChunk);
  bool finite = true;
#pragma omp parallel for schedule(static) reduction(&& : finite) if (chunks > 1)
  for (int64_t i = 0; i < chunks; ++i) {
    const size_t at = static_cast<size_t>(i) * kChunk, count = std::min(kChunk, bytes_ - at);
    if (here) std::memcpy(&data_[at], from + at, count);
    finite = finite && all_finite(&data_[at], count, dtype_);
  }
  finite_ = finite;
}

Tensor ArenaCopy::part(const Tensor& parameter, int64_t offset) const {
  return Tensor::wrap(&data_[static_cast<size_t>(offset) * size_of(dtype_)], parameter.shape(),
                      dtype_, parameter.format());
}

void TrainingCopy::take(Net& net, const Optimizer& optimizer, const Parts& parts) {
  Context& context = net.context();
  parameters_.clear();
  offsets_.clear();
  correlations_.clear();
  history_parts_.clear();
  average_parts_.clear();
  slow_parts_.clear();
  take_kept(context, optimizer, parts);
  weights_ = weights_content(net, parts.gradients);
  average_ = {};
  data_.take(context, net.parameter_arena());
  if (parts.gradients) diff_.take(context, net.diff_arena());
  for (size_t i = 0; i < weights_.parameters.size(); ++i) {
    WeightsContent::Values& values = weights_.parameters[i];
    offsets_.push_back(net.parameter_offset(static_cast<int>(i)));
    values.data = data_.part(values.data, offsets_[i]);
    if (values.diff) values.diff = diff_.part(values.diff, offsets_[i]);
    parameters_.push_back(values.data);
  }
  if (parts.state) {
    for (const ArenaCopy& history : history_) {
      for (const Tensor& part : parts_of(history)) history_parts_.push_back(part);
    }
    if (optimizer.keeps_slow()) slow_parts_ = parts_of(slow_);
    correlations_ = optimizer.correlations();
  }
  if (parts.average && optimizer.averages()) take_average(net, optimizer);
}

// The other ranks help in any case: an error here waits until the last of their calls.
void TrainingCopy::take_kept(Context& context, const Optimizer& optimizer, const Parts& parts) {
  std::exception_ptr error;
  if (parts.state) history_.resize(optimizer.histories());
  optimizer.visit_kept(kept_in(parts), [&](Optimizer::Kept what, size_t i, const Tensor& arena) {
    if (error) return;
    try {
      (what == Optimizer::Kept::history   ? history_[i]
       : what == Optimizer::Kept::average ? average_arena_
                                          : slow_)
          .take(context, arena);
    } catch (...) {
      error = std::current_exception();
    }
  });
  if (error) std::rethrow_exception(error);
}

void TrainingCopy::help_to_take(const Optimizer& optimizer, const Parts& parts) {
  optimizer.visit_kept(kept_in(parts), [](Optimizer::Kept, size_t, const Tensor&) {});
}

void TrainingCopy::take_average(Net& net, const Optimizer& optimizer) {
  average_parts_ = parts_of(average_arena_);
  average_ = weights_content(net);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const bool updated = optimizer.updates(i);
    average_.parameters[i].data = updated ? average_parts_[i] : parameters_[i];
    if (!updated || !optimizer.exchanged()) continue;
    // In the middle of a test with the average: each is where the other belongs.
    std::swap(weights_.parameters[i].data, average_.parameters[i].data);
    average_parts_[i] = average_.parameters[i].data;
  }
}

std::vector<Tensor> TrainingCopy::parts_of(const ArenaCopy& arena) const {
  std::vector<Tensor> parts;
  for (size_t i = 0; i < parameters_.size(); ++i)
    parts.push_back(arena.part(parameters_[i], offsets_[i]));
  return parts;
}

WireMessage TrainingCopy::binary_state(SolverState numbers) const {
  for (const float value : correlations_) numbers.add_larc_correlation(value);
  WireMessage message(numbers.SerializeAsString());
  for (const Tensor& part : history_parts_)
    message.add_blob(SolverState::kHistoryFieldNumber, part);
  for (const Tensor& part : average_parts_)
    message.add_blob(SolverState::kAverageFieldNumber, part);
  for (const Tensor& part : slow_parts_) message.add_blob(SolverState::kSlowFieldNumber, part);
  return message;
}

SolverState TrainingCopy::state(Context& host, SolverState numbers) const {
  for (const float value : correlations_) numbers.add_larc_correlation(value);
  store_blobs(host, history_parts_, numbers.mutable_history());
  store_blobs(host, average_parts_, numbers.mutable_average());
  store_blobs(host, slow_parts_, numbers.mutable_slow());
  return numbers;
}

namespace {

uint64_t state_bytes(const Net& net, const Optimizer& optimizer) {
  const size_t kept =
      optimizer.histories() + (optimizer.averages() ? 1 : 0) + (optimizer.keeps_slow() ? 1 : 0);
  return kept * bytes_of_all(net);
}

}  // namespace

uint64_t snapshot_bytes(const Net& net, const Optimizer& optimizer,
                        const TrainingCopy::Parts& parts, bool hdf5) {
  uint64_t bytes = bytes_of_values(weights_content(net, parts.gradients), hdf5);
  if (parts.average && optimizer.averages()) bytes += bytes_of_values(weights_content(net), hdf5);
  return parts.state ? bytes + state_bytes(net, optimizer) : bytes;
}

void check_snapshot_size(const SolverFile& file, const Net& net, const Optimizer& optimizer,
                         uint64_t limit) {
  check_snapshot_size(file,
                      bytes_of_values(weights_content(net, file.solver.snapshot_diff()), false),
                      state_bytes(net, optimizer), limit);
}

void check_snapshot_size(const SolverFile& file, uint64_t weights, uint64_t state, uint64_t limit) {
  const SolverParameter& solver = file.solver;
  const bool writes = solver.snapshot() > 0 || solver.snapshot_minutes() > 0 ||
                      solver.has_keep_best() || solver.snapshot_after_train();
  if (!writes || solver.snapshot_format() == SolverParameter::HDF5) return;
  const auto check = [&](const char* what, uint64_t bytes) {
    require(bytes <= limit, file.where("snapshot_format"), ": a snapshot's ", what, " would take ",
            size_text(bytes), ", but the binary format holds no more than ", size_text(limit),
            ": write snapshot_format: HDF5, which has no such limit");
  };
  check("weights", weights);
  if (solver.snapshot_include_state()) check("optimizer state", state);
}

}  // namespace crema
