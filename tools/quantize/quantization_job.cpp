#include "tools/quantize/quantization_job.h"

#include <algorithm>

#include "base/error.h"
#include "base/strings.h"
#include "layers/layer_facts.h"
#include "net/graph/filter.h"
#include "net/graph/silent_during.h"
#include "net/records.h"
#include "net/sources/source_files.h"
#include "net/surgery/fake_quantize_net.h"
#include "net/weights/weights.h"
#include "proto/layer.pb.h"
#include "proto/params/input.pb.h"

namespace crema {
namespace {

constexpr int64_t kNoiseBatches = 4;

// The net in float32, also if it has been quantized before.
NetParameter without_integers(NetParameter net) {
  for (LayerParameter& layer : *net.mutable_layer()) layer.clear_quantization_param();
  return net;
}

bool is_python(const LayerParameter& layer) { return layer.type() == "Python"; }

// A Python layer names its data in its param_str, in a form of its own.
bool reads_data(const LayerParameter& layer) {
  return layer.bottom_size() == 0 && (!named_source(layer).empty() || is_python(layer));
}

}  // namespace

QuantizationJob::QuantizationJob(Context& context, const NetFile& file, const NetInput& input,
                                 const QuantizationSettings& settings,
                                 const std::function<void(Net&)>& load)
    : context_(context), file_(file), input_(input), settings_(settings), options_(input.options) {
  // Layers are removed and have other positions than in the file.
  options_.where = {};
  NetOptions folding = input.options;
  folding.fuse = true;  // which folds
  folding.pack = false;
  folding.weights_follow = true;
  Net net(context, without_integers(input.net), folding);
  load(net);
  if (std::none_of(input.net.layer().begin(), input.net.layer().end(), reads_data)) {
    require(settings.calibrate != "train" && settings.calibrate != "test",
            "the net reads no data in phase TEST: give its training file, or pictures with "
            "-calibrate FOLDER, or try -calibrate random");
    feed_.emplace(settings.calibrate, input.preparation, input.options.folder);
    feed_->fill(net, 0);
  }
  net.forward(0);
  folded_ = fold_net(without_integers(file.net), net);
  if (!settings.rule) read_trained_ranges(load);
}

// What `quantize` in a solver has left in the weights.
void QuantizationJob::read_trained_ranges(const std::function<void(Net&)>& load) {
  const SilentDuring silent(context_);
  const FakeQuantizedNet made =
      add_fake_quantize(filter_net(without_integers(input_.net), options_.state, silent_log()), {});
  NetOptions options = options_;
  options.weights_follow = true;
  Net net(context_, made.net, options);
  load(net);
  const NetWeights weights = weights_of(net);
  for (const auto& [layer, range_layer] : made.ranges) {
    const std::vector<WeightBlob>& blobs = weights.at(range_layer);
    const float lowest = blobs[0].values[0], highest = blobs[0].values[1],
                range = blobs[1].values[0] * std::max(-lowest, highest);
    if (range > 0) trained_[layer] = {lowest < 0, range};
  }
}

std::unique_ptr<Net> QuantizationJob::make(const NetParameter& text, const NetWeights& weights,
                                           NetOptions options) const {
  const SilentDuring silent(context_);
  const NetParameter net = filter_net(text, options.state, silent_log());
  options.weights_follow = true;
  std::vector<std::string> positions;
  for (const LayerParameter& layer : net.layer()) positions.push_back(where(layer.name()));
  options.where = [positions](int layer) { return positions[layer]; };
  auto made = std::make_unique<Net>(context_, net, options);
  set_weights(weights, *made);
  return made;
}

std::string QuantizationJob::where(const std::string& layer) const {
  for (int i = 0; i < file_.net.layer_size(); ++i)
    if (file_.net.layer(i).name() == layer) return file_.where(i);
  return "";
}

Score QuantizationJob::exact_score() { return score_with({}); }

BatchFeed QuantizationJob::batch_feed() {
  if (!feed_) return {};
  return [this](Net& net, int64_t batch) { feed_->fill(net, batch); };
}

// The layers of phase TEST, with the source of -calibrate.
NetParameter QuantizationJob::calibration_net() const {
  NetParameter net = filter_net(folded_.net, options_.state, silent_log());
  if (settings_.calibrate == "test" || feed_) return net;
  NetState training = options_.state;
  training.set_phase(TRAIN);
  const NetParameter trained = filter_net(file_.net, training, silent_log());
  for (LayerParameter& layer : *net.mutable_layer()) {
    if (!reads_data(layer)) continue;
    const bool of_training = settings_.calibrate == "train";
    require(
        of_training || !is_python(layer), "-calibrate ", settings_.calibrate, ": layer \"",
        layer.name(),
        "\" is a Python layer, which is told its data in param_str; train and test are possible");
    std::string source = settings_.calibrate;
    if (of_training) {
      const auto same = std::find_if(
          trained.layer().begin(), trained.layer().end(), [&](const LayerParameter& other) {
            return other.type() == layer.type() && other.top_size() > 0 &&
                   other.top(0) == layer.top(0) && reads_data(other);
          });
      require(same != trained.layer().end(), "-calibrate train: phase TRAIN has no ", layer.type(),
              " that gives \"", layer.top(0),
              "\" from a file; -calibrate test, or a database or list, is possible");
      if (is_python(layer)) {
        *layer.mutable_python_param() = same->python_param();
        continue;
      }
      source = named_source(*same);
    }
    set_source(source, &layer);
  }
  return net;
}

int64_t QuantizationJob::choose() {
  NetOptions options = options_;
  options.keep_blobs = true;
  const std::unique_ptr<Net> net = make(calibration_net(), folded_.weights, options);
  const std::vector<std::string> names = quantizable_layers(*net);
  for (const std::string& name : settings_.keep)
    require(std::find(names.begin(), names.end(), name) != names.end(), "-keep ", name,
            ": the net has no such layer that could be quantized", did_you_mean(name, names));
  require(!names.empty(),
          "the net has no layer that can be quantized: Convolution or InnerProduct");
  const int64_t batch = batch_of(*net);
  const int64_t wanted =
      feed_ && feed_->images() > 0 ? std::min(settings_.images, feed_->images()) : settings_.images;
  calibration_batches_ = (wanted + batch - 1) / batch;
  const std::vector<LayerCalibration> seen = calibrate(*net, calibration_batches_, batch_feed());
  for (LayerSteps& steps :
       choose_steps(*net, seen, settings_.rule.value_or(RangeRule::entropy), trained_,
                    settings_.weight_bits, calibration_batches_, batch_feed())) {
    QuantizedLayer layer;
    layer.is_kept =
        settings_.keep.count(steps.layer) > 0 || (is_trained() && trained_.count(steps.layer) == 0);
    layer.steps = std::move(steps);
    layers_.push_back(std::move(layer));
  }
  return calibration_batches_ * batch;
}

QuantizationJob::QuantizedNet QuantizationJob::with(const std::set<std::string>& layers) const {
  std::vector<LayerSteps> steps;
  for (const QuantizedLayer& layer : layers_)
    if (layers.count(layer.steps.layer) > 0) steps.push_back(layer.steps);
  QuantizedNet made{folded_.net, folded_.weights};
  apply_steps(steps, &made.net, &made.weights);
  return made;
}

std::set<std::string> QuantizationJob::quantized() const {
  std::set<std::string> names;
  for (const QuantizedLayer& layer : layers_)
    if (!layer.is_kept) names.insert(layer.steps.layer);
  return names;
}

Score QuantizationJob::score_with(const std::set<std::string>& layers) const {
  const QuantizedNet made = with(layers);
  return score_of(*make(made.net, made.weights, options_), settings_.test_batches);
}

Score QuantizationJob::score() { return score_with(quantized()); }

void QuantizationJob::score_each(const std::function<void(size_t)>& progress) {
  for (size_t i = 0; i < layers_.size(); ++i) {
    progress(i);
    layers_[i].alone = score_with({layers_[i].steps.layer}).value;
  }
}

void QuantizationJob::measure_noise() {
  NetOptions options = options_;
  options.keep_blobs = true;
  const QuantizedNet made = with(quantized());
  const std::unique_ptr<Net> exact = make(folded_.net, folded_.weights, options),
                             rounded = make(made.net, made.weights, options);
  const std::vector<std::string> names = quantizable_layers(*exact);
  const std::vector<double> noise = signal_to_noise(*exact, *rounded, kNoiseBatches, batch_feed());
  for (QuantizedLayer& layer : layers_) {
    const auto at = std::find(names.begin(), names.end(), layer.steps.layer);
    layer.noise = noise[at - names.begin()];
  }
}

NetParameter QuantizationJob::net() const { return with(quantized()).net; }

void QuantizationJob::save(const std::string& path) {
  const QuantizedNet made = with(quantized());
  save_caffemodel(*make(made.net, made.weights, options_), path);
}

}  // namespace crema
