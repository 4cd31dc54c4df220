#include "solver/optimizer.h"

#include <cmath>
#include <sstream>

#include "base/error.h"
#include "device/range.h"
#include "solver/checksum.h"

namespace crema {
namespace {

void check_rule(const SolverParameter& s, UpdateRule rule) {
  const bool squares = rule == UpdateRule::adagrad || rule == UpdateRule::rmsprop;
  require(!squares || s.momentum() == 0, "momentum is ", s.momentum(), ", but type \"", s.type(),
          "\" has no momentum: remove "
          "it, or choose \"Adam\"");
  require(s.regularization_type() == "L1" || s.regularization_type() == "L2",
          "unknown regularization_type \"", s.regularization_type(), "\"; the types are L1, L2");
  const auto decays = [&](const char* field, float value) {
    require(value >= 0 && value < 1, field, " is ", value, ": type \"", s.type(),
            "\" needs at least 0 and less than 1");
  };
  if (rule == UpdateRule::rmsprop) decays("rms_decay", s.rms_decay());
  if (rule == UpdateRule::adam) {
    decays("momentum", s.momentum());
    decays("momentum2", s.momentum2());
  }
}

// Shapes as they are stored: with four axes always in files of Caffe's first year.
Shape stored_shape(const BlobProto& blob) {
  if (blob.has_shape())
    return Shape(std::vector<int64_t>(blob.shape().dim().begin(), blob.shape().dim().end()));
  return Shape{blob.num(), blob.channels(), blob.height(), blob.width()};
}

int64_t value_count(const BlobProto& blob) {
  return std::max(blob.data_size(), blob.double_data_size());
}

}  // namespace

Optimizer::Optimizer(const SolverParameter& solver, Net& net)
    : solver_(solver), net_(net), rule_(update_rule(solver.type())) {
  check_rule(solver, rule_);
  std::vector<Segment> segments;
  for (size_t i = 0; i < net.parameters().size(); ++i) {
    const Parameter& p = net.parameters()[i];
    if (!p.learned || p.lr_mult == 0) continue;
    segments.push_back(
        {net.parameter_offset(static_cast<int>(i)), p.data.elements(), p.lr_mult, p.decay_mult});
  }
  update_.emplace(net.context(), rule_, segments);
  for (int i = 0; i < history_count(rule_); ++i) {
    history_.emplace_back(net.context(), net.parameter_arena().shape(),
                          net.parameter_arena().dtype());
  }
}

std::optional<Optimizer::Clipped> Optimizer::clip(float* scale) {
  const float limit = solver_.clip_gradients();
  if (limit < 0) return std::nullopt;
  const double norm = std::sqrt(update_->squared_norm(net_.context(), net_.diff_arena()));
  if (norm <= limit) return std::nullopt;
  *scale = static_cast<float>(limit / norm);
  return Clipped{norm, limit, *scale};
}

UpdateStep Optimizer::step_at(int64_t iteration) const {
  UpdateStep step;
  step.scale = 1 / static_cast<float>(solver_.iter_size());
  step.weight_decay = solver_.weight_decay();
  step.l1 = solver_.regularization_type() == "L1";
  step.momentum = solver_.momentum();
  step.momentum2 = solver_.momentum2();
  step.delta = solver_.delta();
  step.rms_decay = solver_.rms_decay();
  step.iteration = iteration;
  return step;
}

std::optional<Optimizer::Clipped> Optimizer::update(double rate, int64_t iteration) {
  const Range range("update");
  UpdateStep step = step_at(iteration);
  step.rate = static_cast<float>(rate);
  // The norm is that of the sum over iter_size batches, as Caffe takes it; only then the mean is
  // made.
  float scale = 1;
  std::optional<Clipped> clipped = clip(&scale);
  step.scale = scale / static_cast<float>(solver_.iter_size());
  update_->run(net_.context(), step, net_.parameter_arena(), net_.diff_arena(), history_,
               net_.half_arena());
  return clipped;
}

void Optimizer::queue_update(const LiveUpdate& live) {
  if (live.limits.clip >= 0 || live.limits.scales_loss)
    update_->measure(net_.context(), net_.diff_arena(), live);
  update_->run(net_.context(), step_at(0), net_.parameter_arena(), net_.diff_arena(), history_,
               net_.half_arena(), &live);
}

UpdateLimits Optimizer::limits() const {
  UpdateLimits limits;
  limits.clip = solver_.clip_gradients();
  return limits;
}

double Optimizer::rate_factor(int64_t iteration) const {
  return Update::rate_factor(rule_, step_at(iteration));
}

Tensor Optimizer::history_of(size_t arena, size_t parameter) const {
  const Tensor& all = history_[arena];
  const Tensor& data = net_.parameters()[parameter].data;
  const size_t offset = static_cast<size_t>(net_.parameter_offset(static_cast<int>(parameter))) *
                        size_of(all.dtype());
  return Tensor(all.memory(), offset, data.shape(), all.dtype(), data.format());
}

void Optimizer::store(SolverState* state) const {
  for (size_t arena = 0; arena < history_.size(); ++arena) {
    for (size_t i = 0; i < net_.parameters().size(); ++i) {
      const Tensor history = history_of(arena, i);
      BlobProto* blob = state->add_history();
      blob->mutable_shape();
      for (int64_t extent : history.shape().dims()) blob->mutable_shape()->add_dim(extent);
      if (history.dtype() == DType::f64) {
        const std::vector<double> values = to_doubles(net_.context(), history);
        blob->mutable_double_data()->Add(values.begin(), values.end());
      } else {
        const std::vector<float> values = to_floats(net_.context(), history);
        blob->mutable_data()->Add(values.begin(), values.end());
      }
    }
  }
}

void Optimizer::restore(const SolverState& state, const std::string& path) {
  const size_t parameters = net_.parameters().size();
  require(state.history_size() == static_cast<int>(parameters * history_.size()), path, ": holds ",
          state.history_size(), " history blobs, but net \"", net_.name(), "\" has ", parameters,
          " parameters, and type \"", solver_.type(), "\" keeps ", history_.size(),
          " for each: the snapshot is of another net or another solver type");
  for (int i = 0; i < state.history_size(); ++i) {
    const BlobProto& blob = state.history(i);
    const Parameter& parameter = net_.parameters()[i % parameters];
    const Shape stored = stored_shape(blob);
    require(stored.count() == parameter.shape.count() &&
                (!blob.has_shape() || stored == parameter.shape),
            path, ": history blob ", i, " is ", stored.brief(), ", but parameter ", parameter.index,
            " of layer \"", parameter.layer, "\" is ", parameter.shape.brief(),
            ": the snapshot is of another net");
    require(value_count(blob) == stored.count(), path, ": history blob ", i, " of shape ",
            stored.brief(), " holds ", value_count(blob), " values: the file is damaged");
  }
  for (int i = 0; i < state.history_size(); ++i) {
    const BlobProto& blob = state.history(i);
    const Tensor history = history_of(i / parameters, i % parameters);
    if (blob.double_data_size() > 0) {
      from_doubles(net_.context(), blob.double_data().data(), history);
    } else {
      from_floats(net_.context(), blob.data().data(), history);
    }
  }
}

std::string fingerprint_of(const Graph& graph) {
  Checksum hash;
  for (const Parameter& parameter : graph.parameters) {
    const std::string text =
        cat(parameter.layer, "/", parameter.index, ":", parameter.shape.brief(), ";");
    hash.add(text.data(), text.size());
  }
  std::ostringstream text;
  text << std::hex << hash.value();
  return text.str();
}

uint64_t weights_checksum(Net& net) {
  Checksum hash;
  for (const Parameter& parameter : net.parameters()) {
    const std::vector<float> values = to_floats(net.context(), parameter.data);
    hash.add(values.data(), values.size() * sizeof(float));
  }
  return hash.value();
}

}  // namespace crema
