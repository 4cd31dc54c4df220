#include "solver/iteration/optimizer.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "device/range.h"
#include "kernels/optim/zeros.h"
#include "solver/rates/schedules.h"
#include "tensor/shape_limits.h"

namespace crema {
namespace {

// The stored shape: always four axes in files of Caffe's first year.
Shape stored_shape(const BlobProto& blob) {
  if (blob.has_shape())
    return Shape(std::vector<int64_t>(blob.shape().dim().begin(), blob.shape().dim().end()));
  return Shape{blob.num(), blob.channels(), blob.height(), blob.width()};
}

// One segment per parameter that learns; those of a layer have its number.
std::vector<Segment> segments_of(const Net& net, const std::vector<Parameter>& parameters) {
  std::vector<Segment> segments;
  int layer = 0;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& p = parameters[i];
    if (i > 0 && p.layer != parameters[i - 1].layer) ++layer;
    if (!p.learned || p.lr_mult == 0) continue;
    segments.push_back({net.parameter_offset(static_cast<int>(i)), p.data.elements(), p.lr_mult,
                        p.decay_mult, layer, p.shape, p.data.format(), false, !p.muon});
  }
  return segments;
}

void check_blobs(const google::protobuf::RepeatedPtrField<BlobProto>& blobs, const char* what,
                 const std::vector<Parameter>& parameters, const std::string& path) {
  for (int i = 0; i < blobs.size(); ++i) {
    const BlobProto& blob = blobs[i];
    const Parameter& parameter = parameters[i % parameters.size()];
    const Shape stored = stored_shape(blob);
    const int64_t count = parameter.shape.count();
    const bool fits = blob.has_shape() ? stored == parameter.shape
                                       : at_most(stored, count) && stored.count() == count;
    require(fits, path, ": ", what, " blob ", i, " is ",
            stored.axes() > kMaxBlobAxes ? cat("of ", stored.axes(), " axes") : stored.brief(),
            ", but parameter ", parameter.index, " of layer \"", parameter.layer, "\" is ",
            parameter.shape.brief(), ": the snapshot is of another net");
    require(blob.data_size() == 0 || blob.double_data_size() == 0, path, ": ", what, " blob ", i,
            " holds ", blob.data_size(), " floats and ", blob.double_data_size(),
            " doubles, but a blob has only one kind: the file is damaged");
    const int64_t values = blob.data_size() + blob.double_data_size();
    require(values == count, path, ": ", what, " blob ", i, " of shape ", stored.brief(), " holds ",
            values, " values: the file is damaged");
  }
}

}  // namespace

void read_blob(Context& context, const BlobProto& blob, const Tensor& to) {
  if (blob.double_data_size() > 0) {
    from_doubles(context, blob.double_data().data(), to);
  } else {
    from_floats(context, blob.data().data(), to);
  }
}

int kept_arenas(const SolverParameter& solver) {
  return update_rule(solver.type()).histories + (solver.ema_decay() > 0 ? 1 : 0) +
         (solver.lookahead() ? 1 : 0) + (solver.has_prune() ? 1 : 0);
}

Optimizer::Optimizer(const SolverParameter& solver, Net& net, bool shard)
    : solver_(solver), net_(net), rule_(update_rule(solver.type())) {
  check_schedules(solver, rule_);
  if (shard && net.context().ranks() > 1) shard_.emplace(net);
  arenas_.data = own(net.parameter_arena());
  arenas_.diff = own(net.diff_arena());
  const auto arena = [&] {
    return Tensor(net.context(), arenas_.data.shape(), arenas_.data.dtype());
  };
  const std::vector<Segment> segments = this->segments();
  const DType dtype = arenas_.data.dtype();
  update_.emplace(net.context(), rule_, segments, factor_rules(solver), dtype,
                  muon_options(solver, net.options().precision));
  if (solver.grad_centralization()) centralizer_.emplace(net.context(), segments, dtype);
  for (int i = 0; i < rule_.histories; ++i) arenas_.history.push_back(arena());
  if (solver.ema_decay() > 0) arenas_.average = arena();
  if (solver.lookahead()) arenas_.slow = arena();
  for (const char* field : {"ema_decay", "lookahead"}) restart(field);
  if (!solver.has_prune()) return;
  const Tensor& all = net.parameter_arena();
  mask_ = Tensor(net.context(), all.shape(), DType::u8);
  keep_zeros(std::vector<std::vector<float>>(net.parameters().size()));
}

void Optimizer::keep_zeros(const std::vector<std::vector<float>>& masks) {
  make_mask(net_.context(), {}, mask_);
  for (size_t i = 0; i < masks.size(); ++i) {
    if (masks[i].empty()) continue;
    const Tensor& data = net_.parameters()[i].data;
    const Tensor values(net_.context(), data.shape(), data.dtype(), data.format());
    from_floats(net_.context(), masks[i].data(), values);
    make_mask(net_.context(), values, part_of(mask_, i));
  }
  crema::keep_zeros(net_.context(), mask_, net_.parameter_arena());
  prune();
  net_.parameters_changed();
}

// After an update.
void Optimizer::prune() {
  if (!mask_) return;
  const Tensor mask = own(mask_);
  for (const Tensor& kept : {arenas_.data, arenas_.half, arenas_.average, arenas_.slow})
    if (kept) crema::keep_zeros(net_.context(), mask, kept);
}

std::vector<Segment> Optimizer::segments() const {
  if (solver_.disabled_update()) return {};
  const std::vector<Segment> all = segments_of(net_, net_.parameters());
  return shard_ ? shard_->within(all) : all;
}

void Optimizer::reduce_gradients() { shard_->sum_gradients(); }

size_t Optimizer::bytes_like(const Tensor& arena) const {
  const int arenas = kept_arenas(solver_) - (mask_ ? 1 : 0);
  return arena.bytes() * static_cast<size_t>(arenas) + (mask_ ? mask_.bytes() : 0);
}

size_t Optimizer::kept_bytes() const { return bytes_like(arenas_.data); }

size_t Optimizer::whole_bytes() const { return bytes_like(net_.parameter_arena()); }

void Optimizer::restart(const std::string& field) {
  const Tensor& kept = field == "ema_decay" ? arenas_.average : arenas_.slow;
  if (kept) copy(net_.context(), arenas_.data, kept);
}

void Optimizer::exchange_average() {
  update_->exchange(net_.context(), arenas_.data, arenas_.average);
  if (shard_) shard_->share_weights();
  exchanged_ = !exchanged_;
  net_.parameters_changed();
}

std::optional<Optimizer::Clipped> Optimizer::clip(float* scale) {
  const float limit = solver_.clip_gradients();
  if (limit < 0) return std::nullopt;
  double squares = update_->squared_norm(net_.context(), arenas_.diff);
  if (shard_) shard_->sum({&squares, 1});
  const double norm = std::sqrt(squares);
  if (norm <= limit) return std::nullopt;
  *scale = static_cast<float>(limit / norm);
  return Clipped{norm, limit, *scale};
}

bool Optimizer::weights_may_not_be_finite() const {
  double squares = update_->squared_norm(net_.context(), arenas_.data);
  if (shard_) shard_->sum({&squares, 1});
  return !std::isfinite(squares);
}

UpdateSettings Optimizer::common_settings() const {
  UpdateSettings settings;
  settings.batches = static_cast<float>(solver_.iter_size());
  settings.scale = 1 / settings.batches;
  settings.limit = solver_.clip_gradients_value();
  settings.l1 = solver_.regularization_type() == "L1";
  settings.momentum2 = momentum2_of(solver_, rule_);
  settings.delta = solver_.delta();
  settings.rms_decay = solver_.rms_decay();
  settings.amsgrad = solver_.amsgrad();
  settings.belief = solver_.adabelief();
  settings.keep = solver_.ema_decay();
  settings.slow_length = solver_.lookahead_alpha();
  settings.slow_every = solver_.lookahead_steps();
  return settings;
}

Hyperparameters Optimizer::hyperparameters(int64_t iteration, double rate) const {
  return hyperparameters_at(solver_, rule_, iteration, rate);
}

std::optional<Optimizer::Clipped> Optimizer::update(double rate, int64_t iteration) {
  const Range range("update");
  UpdateSettings settings = common_settings();
  settings.at = hyperparameters(iteration, rate);
  settings.iteration = iteration;
  if (centralizer_) centralizer_->run(net_.context(), arenas_.diff);
  // As in Caffe, the norm is that of the sum over iter_size batches; the mean is taken only
  // afterwards.
  float scale = 1;
  std::optional<Clipped> clipped = clip(&scale);
  settings.scale = scale / settings.batches;
  if (!shard_) arenas_.half = net_.half_arena();
  update_->run(net_.context(), settings, arenas_);
  prune();
  if (shard_) shard_->share_weights();
  net_.parameters_updated();
  return clipped;
}

bool Optimizer::prepare_queued() {
  if (shard_) return false;  // which clears all gradients, and needs all before the update
  std::vector<Segment> segments = segments_of(net_, net_.parameters());
  const auto with_offset_of = [&](const auto& parameters) {
    std::set<int64_t> offsets;
    for (int parameter : parameters) offsets.insert(net_.parameter_offset(parameter));
    return [offsets](const Segment& s) { return offsets.count(s.offset) > 0; };
  };
  const std::set<int>& cleared = net_.cleared_parameters();
  const auto clears = with_offset_of(cleared);
  const auto count = std::count_if(segments.begin(), segments.end(), clears);
  // A snapshot may need the gradients.
  clears_gradients_ = !solver_.snapshot_diff() && !solver_.disabled_update() &&
                      count == static_cast<int64_t>(cleared.size());
  for (Segment& segment : segments) segment.clear_gradient = clears_gradients_ && clears(segment);
  if (solver_.disabled_update()) segments.clear();
  return update_->set_segments(net_.context(), segments, with_offset_of(net_.early_parameters())) &&
         !centralizer_ && !mask_;
}

void Optimizer::queue_update(const LiveUpdate& live, Update::Part part) {
  if (centralizer_) centralizer_->run(net_.context(), arenas_.diff);
  std::function<void(double*)> sum;
  if (shard_) sum = [this](double* squares) { shard_->sum(squares); };
  if (live.limits.clip >= 0 || live.limits.scales_loss)
    update_->measure(net_.context(), arenas_.diff, live, sum);
  if (!shard_) arenas_.half = net_.half_arena();
  update_->run(net_.context(), common_settings(), arenas_, &live, part);
  prune();
  if (shard_) shard_->share_weights();
  if (clears_gradients_ && part != Update::Part::early) net_.diffs_cleared();
}

UpdateLimits Optimizer::limits() const {
  UpdateLimits limits;
  limits.clip = solver_.clip_gradients();
  const auto policy = solver_.on_divergence();
  limits.stops = policy == SolverParameter::STOP || policy == SolverParameter::ROLLBACK;
  limits.skips = policy == SolverParameter::SKIP;
  return limits;
}

Tensor Optimizer::part_of(const Tensor& arena, size_t parameter) const {
  const Tensor& data = net_.parameters()[parameter].data;
  const size_t offset = static_cast<size_t>(net_.parameter_offset(static_cast<int>(parameter))) *
                        size_of(arena.dtype());
  return Tensor(arena.memory(), offset, data.shape(), arena.dtype(), data.format());
}

std::vector<Tensor> Optimizer::parts_of(const Tensor& arena) const {
  std::vector<Tensor> parts;
  for (size_t i = 0; i < net_.parameters().size(); ++i) parts.push_back(part_of(arena, i));
  return parts;
}

void store_blobs(Context& context, const std::vector<Tensor>& tensors,
                 google::protobuf::RepeatedPtrField<BlobProto>* blobs) {
  for (const Tensor& tensor : tensors) {
    BlobProto* blob = blobs->Add();
    blob->mutable_shape();
    for (int64_t extent : tensor.shape().dims()) blob->mutable_shape()->add_dim(extent);
    if (tensor.dtype() == DType::f64) {
      const std::vector<double> values = to_doubles(context, tensor);
      blob->mutable_double_data()->Add(values.begin(), values.end());
    } else {
      const std::vector<float> values = to_floats(context, tensor);
      blob->mutable_data()->Add(values.begin(), values.end());
    }
  }
}

bool Optimizer::updates(size_t parameter) const {
  const Parameter& p = net_.parameters()[parameter];
  return p.learned && p.lr_mult != 0 && !solver_.disabled_update();
}

std::vector<float> Optimizer::correlations() const {
  const Tensor correlations = update_->correlations();
  return correlations ? to_floats(net_.context(), correlations) : std::vector<float>();
}

void Optimizer::visit_kept(const std::vector<Kept>& wanted, const CopyKept& copy) const {
  const auto visit = [&](Kept what, size_t index, const Tensor& kept) {
    if (!kept || std::find(wanted.begin(), wanted.end(), what) == wanted.end()) return;
    const auto use = [&](const Tensor& arena) { copy(what, index, arena); };
    shard_ ? shard_->gather(kept, use) : use(kept);
  };
  for (size_t i = 0; i < arenas_.history.size(); ++i) visit(Kept::history, i, arenas_.history[i]);
  visit(Kept::average, 0, arenas_.average);
  visit(Kept::slow, 0, arenas_.slow);
}

void Optimizer::store(SolverState* state) const {
  visit_kept({Kept::history, Kept::average, Kept::slow},
             [&](Kept what, size_t, const Tensor& arena) {
               store_blobs(net_.context(), parts_of(arena),
                           what == Kept::history   ? state->mutable_history()
                           : what == Kept::average ? state->mutable_average()
                                                   : state->mutable_slow());
             });
  for (const float value : correlations()) state->add_larc_correlation(value);
}

// One blob for each parameter, from blob `first` on.
void Optimizer::read_blobs(const google::protobuf::RepeatedPtrField<BlobProto>& blobs, size_t first,
                           const Tensor& kept) const {
  const auto read = [&](const Tensor& arena) {
    for (size_t i = 0; i < net_.parameters().size(); ++i)
      read_blob(net_.context(), blobs[static_cast<int>(first + i)], part_of(arena, i));
  };
  shard_ ? shard_->scatter(read, kept) : read(kept);
}

bool Optimizer::restore_blobs(const google::protobuf::RepeatedPtrField<BlobProto>& blobs,
                              const Tensor& kept) const {
  if (blobs.size() != static_cast<int>(net_.parameters().size())) return false;
  read_blobs(blobs, 0, kept);
  return true;
}

std::vector<std::string> Optimizer::restore(const SolverState& state, const std::string& path) {
  const size_t parameters = net_.parameters().size(), histories = arenas_.history.size();
  require(state.history_size() == static_cast<int>(parameters * histories), path, ": holds ",
          state.history_size(), " history blobs, but net \"", net_.name(), "\" has ", parameters,
          " parameters, and type \"", solver_.type(), "\" keeps ", histories,
          " for each: the snapshot is of another net or another solver type");
  const auto one_each = [&](const google::protobuf::RepeatedPtrField<BlobProto>& blobs,
                            const char* what) {
    const auto count = static_cast<size_t>(blobs.size());
    require(count == 0 || count == parameters, path, ": holds ", count, " ", what,
            " blobs, but net \"", net_.name(), "\" has ", parameters,
            " parameters: the snapshot is of another net");
    check_blobs(blobs, what, net_.parameters(), path);
  };
  check_blobs(state.history(), "history", net_.parameters(), path);
  one_each(state.average(), "average");
  one_each(state.slow(), "slow");
  for (size_t i = 0; i < histories; ++i)
    read_blobs(state.history(), i * parameters, arenas_.history[i]);
  const Tensor correlations = update_->correlations();
  if (correlations && state.larc_correlation_size() == correlations.count())
    from_floats(net_.context(), state.larc_correlation().data(), correlations);
  std::vector<std::string> lacking;
  if (averages() && !restore_blobs(state.average(), arenas_.average))
    lacking.emplace_back("ema_decay");
  if (keeps_slow() && !restore_blobs(state.slow(), arenas_.slow)) lacking.emplace_back("lookahead");
  return lacking;
}

}  // namespace crema
