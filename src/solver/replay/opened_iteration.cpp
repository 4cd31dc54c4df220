#include "solver/replay/opened_iteration.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "net/plan/plan.h"
#include "net/records.h"
#include "solver/events/checksum.h"
#include "solver/replay/sample_losses.h"
#include "solver/test/pictures.h"

namespace crema {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double norm(const std::vector<float>& values, double scale = 1) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return std::sqrt(sum) * scale;
}

int64_t not_finite(const std::vector<float>& values) {
  return std::count_if(values.begin(), values.end(),
                       [](float value) { return !std::isfinite(value); });
}

uint64_t hash_of(const std::vector<float>& values) {
  return Checksum().add(values.data(), values.size() * sizeof(float)).value();
}

OpenedBlob summed_up(const std::vector<float>& values) {
  OpenedBlob blob;
  blob.hash = hash_of(values);
  blob.not_finite = not_finite(values);
  blob.low = std::numeric_limits<double>::infinity();
  blob.high = -blob.low;
  double sum = 0, squares = 0;
  int64_t zeros = 0;
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    sum += value;
    squares += static_cast<double>(value) * value;
    blob.low = std::min<double>(blob.low, value);
    blob.high = std::max<double>(blob.high, value);
    zeros += value == 0 ? 1 : 0;
  }
  const auto count = static_cast<double>(std::ssize(values) - blob.not_finite);
  if (count == 0) {
    blob.low = blob.high = blob.mean = blob.deviation = kNone;
    return blob;
  }
  blob.mean = sum / count;
  blob.deviation = std::sqrt(std::max(0.0, squares / count - blob.mean * blob.mean));
  blob.zeros = static_cast<double>(zeros) / static_cast<double>(values.size());
  return blob;
}

bool divides_into(const Shape& shape, int64_t samples) {
  return shape.axes() > 0 && shape[0] == samples;
}

constexpr std::string_view kGradient = ":grad";

std::string without_gradient(const std::string& name) {
  return ends_with(name, kGradient) ? name.substr(0, name.size() - kGradient.size()) : name;
}

const Parameter* parameter_named(const Net& net, const std::string& name) {
  for (const Parameter& parameter : net.graph().parameters) {
    if (cat(parameter.layer, "/", parameter.index) == name) return &parameter;
  }
  return nullptr;
}

}  // namespace

bool knows_losses(const OpenedIteration& opened) {
  return std::any_of(opened.samples.begin(), opened.samples.end(),
                     [](const OpenedSample& sample) { return !std::isnan(sample.loss); });
}

void check_names(const Net& net, const std::vector<std::string>& dumped) {
  std::vector<std::string> names;
  for (const LayerParameter& layer : net.graph().net.layer())
    names.insert(names.end(), layer.top().begin(), layer.top().end());
  for (const Parameter& parameter : net.graph().parameters)
    names.push_back(cat(parameter.layer, "/", parameter.index));
  for (const std::string& name : dumped) {
    const std::string bare = without_gradient(name);
    require(std::count(names.begin(), names.end(), bare) > 0, "-dump ", name, ": net \"",
            net.name(), "\" has no blob and no parameter \"", bare, "\"", did_you_mean(bare, names),
            "; expected names such as conv1, conv1:grad, conv1/0 or conv1/0:grad");
  }
}

IterationOpener::IterationOpener(Solver& solver, Options options)
    : solver_(solver), options_(std::move(options)) {
  losses_ = std::make_unique<SampleLosses>(solver_.net());
  solver_.add_callback({.on_start = {}, .on_gradients_ready = [this] { look(); }});
}

IterationOpener::~IterationOpener() = default;

OpenedIteration IterationOpener::open() {
  Net& net = solver_.net();
  opened_ = {};
  opened_.iteration = solver_.iteration();
  opened_.rate = solver_.rate();
  before_.clear();
  for (const Parameter& parameter : net.parameters())
    before_.push_back(to_floats(net.context(), parameter.data));
  solver_.step(1);
  for (size_t i = 0; i < before_.size(); ++i) {
    std::vector<float> after = to_floats(net.context(), net.parameters()[i].data);
    for (size_t k = 0; k < after.size(); ++k) after[k] -= before_[i][k];
    opened_.parameters[i].update = norm(after);
    opened_.parameters[i].update_hash = hash_of(after);
  }
  const auto higher = [](const OpenedSample& one, const OpenedSample& other) {
    const auto rank = [](double loss) {
      return std::isnan(loss) ? std::numeric_limits<double>::infinity() : loss;
    };
    return rank(one.loss) > rank(other.loss);
  };
  if (knows_losses(opened_))
    std::stable_sort(opened_.samples.begin(), opened_.samples.end(), higher);
  return std::move(opened_);
}

// Forward and backward are done, the update is not.
void IterationOpener::look() {
  Net& net = solver_.net();
  const int batches = solver_.parameter().iter_size();
  const uint64_t first = solver_.passes() - static_cast<uint64_t>(batches);
  add_parameters();
  add_blobs();
  for (const std::string& name : options_.dumped) dump(name);
  for (int batch = 0; batch < batches; ++batch) {
    const uint64_t pass = first + static_cast<uint64_t>(batch);
    // The blobs are those of the last batch.
    if (batches > 1) net.forward(pass);
    opened_.loss += net.loss() / batches;
    add_samples(pass);
  }
}

void IterationOpener::add_samples(uint64_t pass) {
  Net& net = solver_.net();
  const Graph& graph = net.graph();
  const int64_t samples = batch_of(net);
  std::vector<double> of_samples;
  if (losses_->samples() > 0) of_samples = losses_->losses();
  if (of_samples.empty() && samples == 1) of_samples = {net.loss()};
  const std::vector<int> judged = Mistakes::values(graph);
  std::vector<float> labels, scores;
  if (!judged.empty()) {
    labels = to_floats(net.context(), net.input(graph.values[judged[1]].blob));
    scores = to_floats(net.context(), net.plan().value(judged[2]));
  }
  const bool is_judged =
      samples > 0 && std::ssize(labels) == samples && std::ssize(scores) % samples == 0;
  for (const auto& [node, source] : sources_of(graph)) {
    if (node.tops.empty()) continue;
    // Of this pass: the shapes of some sources vary.
    const Tensor tensor = net.input(graph.values[node.tops[0]].blob);
    const Shape& shape = tensor.shape();
    if (!divides_into(shape, samples) || shape.count() == 0) continue;
    const std::vector<float> values = to_floats(net.context(), tensor);
    const int64_t each = shape.count(1);
    for (int64_t i = 0; i < samples; ++i) {
      OpenedSample sample;
      sample.number = std::ssize(opened_.samples);
      sample.record = source.describe_sample(pass, i);
      sample.loss = of_samples.empty() ? kNone : of_samples[static_cast<size_t>(i)];
      const float* const own = values.data() + i * each;
      const auto [low, high] = std::minmax_element(own, own + each);
      sample.low = *low;
      sample.high = *high;
      if (shape.axes() == 4 && shape[2] > 1 && shape[3] > 1)
        sample.picture = picture_of(own, {shape[1], shape[2], shape[3]}, options_.rgb);
      if (is_judged) {
        const int64_t classes = std::ssize(scores) / samples;
        const float* const row = scores.data() + i * classes;
        sample.label = static_cast<int64_t>(labels[static_cast<size_t>(i)]);
        sample.answer = std::max_element(row, row + classes) - row;
      }
      opened_.samples.push_back(std::move(sample));
    }
    break;  // the others go along with the first
  }
}

void IterationOpener::add_blobs() {
  Net& net = solver_.net();
  const Graph& graph = net.graph();
  for (const Node& node : graph.nodes) {
    for (const int top : node.tops) {
      const Value& value = graph.values[top];
      const Tensor tensor = net.plan().value(top);
      if (!tensor) continue;
      OpenedBlob blob = summed_up(to_floats(net.context(), tensor));
      blob.layer = node.message.name();
      blob.type = node.message.type();
      blob.blob = value.blob;
      blob.shape = tensor.shape().brief();
      const Tensor diff = net.plan().diff(top);
      const std::vector<float> gradient =
          diff ? to_floats(net.context(), diff) : std::vector<float>();
      blob.gradient = diff ? norm(gradient, solver_.gradient_scale()) : kNone;
      blob.gradient_hash = hash_of(gradient);
      opened_.blobs.push_back(std::move(blob));
    }
  }
}

void IterationOpener::add_parameters() {
  Net& net = solver_.net();
  for (size_t i = 0; i < before_.size(); ++i) {
    const Parameter& parameter = net.parameters()[i];
    OpenedParameter one{.layer = parameter.layer,
                        .shape = parameter.shape.brief(),
                        .index = parameter.index,
                        .learned = parameter.learned};
    one.norm = norm(before_[i]);
    one.not_finite = not_finite(before_[i]);
    const bool has_gradient = parameter.diff && parameter.learned;
    const std::vector<float> gradient =
        has_gradient ? to_floats(net.context(), parameter.diff) : std::vector<float>();
    one.gradient = has_gradient ? norm(gradient, solver_.gradient_scale()) : kNone;
    one.gradient_hash = hash_of(gradient);
    opened_.parameters.push_back(std::move(one));
  }
}

void IterationOpener::dump(const std::string& name) {
  Net& net = solver_.net();
  const bool of_gradient = ends_with(name, kGradient);
  const std::string bare = without_gradient(name);
  Tensor tensor;
  if (const Parameter* const parameter = parameter_named(net, bare)) {
    tensor = of_gradient ? parameter->diff : parameter->data;
  } else {
    tensor = of_gradient ? net.diff(bare) : net.blob(bare);
  }
  require(static_cast<bool>(tensor), "-dump ", name, ": \"", bare, "\" has no gradient");
  OpenedTensor dumped{name, tensor.shape(), to_floats(net.context(), tensor)};
  if (of_gradient) {
    for (float& value : dumped.values) value *= solver_.gradient_scale();
  }
  opened_.tensors.push_back(std::move(dumped));
}

}  // namespace crema
