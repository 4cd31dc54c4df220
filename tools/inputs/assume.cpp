#include "tools/inputs/assume.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "layers/layer_facts.h"
#include "net/sources/batch_size.h"
#include "net/sources/source_shapes.h"

namespace crema {

namespace {

// Not a source, but -assume may name its tops, because nothing else knows their shapes.
bool is_python(const LayerParameter& layer) {
  return layer.type() == "Python" && layer.bottom_size() > 0;
}

// These run without any data.
bool needs_no_data(const LayerParameter& layer) {
  return layer.type() == "Input" || facts_of(layer.type()).content == SourceContent::generated;
}

// Clears fields that name files about the images, which are not there: sizes and names of classes,
// and the folder where detections would be written.
void forget_image_files(LayerParameter& layer) {
  if (layer.has_detection_output_param())
    layer.mutable_detection_output_param()->clear_save_output_param();
  if (layer.has_detection_evaluate_param())
    layer.mutable_detection_evaluate_param()->clear_name_size_file();
}

}  // namespace

SourceReplacer::SourceReplacer(Log& log, const std::string& assume, int batch)
    : log_(log), assume_(assume), batch_(batch), shapes_(parse_assumed_shapes(assume, "-assume")) {
  require(batch >= 0, "-batch ", batch, ": expected a positive number");
}

void SourceReplacer::replace(NetParameter& net,
                             const std::function<std::string(int layer)>& where) {
  std::map<int, LayerParameter> inputs;  // of sources
  for (int i = 0; i < net.layer_size(); ++i) {
    const LayerParameter& layer = net.layer(i);
    if (!is_source(layer) && !is_python(layer)) continue;
    bool named = false;
    for (const std::string& top : layer.top()) {
      tops_.push_back(top);
      named |= shapes_.of_top.count(top) > 0;
    }
    if (!named && (assume_.empty() || !is_source(layer) || needs_no_data(layer))) continue;
    if (auto input = input_for(net, layer, where(i))) inputs[i] = std::move(*input);
  }
  std::set<int64_t> batches;  // that sources stated
  for (const LayerParameter& layer : net.layer()) {
    if (batch_ > 0 && is_source(layer)) batches.merge(stated_batches(layer));
  }
  for (int i = 0; i < net.layer_size(); ++i) {
    LayerParameter& layer = *net.mutable_layer(i);
    if (!assume_.empty()) forget_image_files(layer);
    if (!batches.empty() && !is_source(layer)) follow_batch_size(layer, batches, batch_);
    if (const auto input = inputs.find(i); input != inputs.end()) {
      layer = std::move(input->second);
    } else if (batch_ > 0 && is_source(layer)) {
      try {
        set_batch_size(layer, batch_);
      } catch (const Error& error) {
        fail(where(i), ": -batch: ", error.what());
      }
    }
  }
}

std::optional<LayerParameter> SourceReplacer::input_for(const NetParameter& net,
                                                        const LayerParameter& layer,
                                                        const std::string& where) {
  std::vector<std::string> texts;
  InputParameter input;
  for (int top = 0; top < layer.top_size(); ++top) {
    const SourceTop source{net, layer, top, batch_};
    const auto named = shapes_.of_top.find(layer.top(top));
    std::optional<Shape> shape;
    if (named != shapes_.of_top.end()) {
      shape = named->second;
      if (batch_ > 0 && shape->axes() > 0) (*shape)[0] = batch_;
    } else {
      shape = usual_shape(source);
      if (!shapes_.defaults || !shape) {
        note_missing({where, layer.name(), layer.type(), layer.top(top),
                      shape ? shape->brief() : likely_shape(source), source.samples().has_value()});
        continue;
      }
    }
    texts.push_back(cat(layer.top(top), " ", shape->brief()));
    BlobShape* stored = input.add_shape();
    for (const int64_t extent : shape->dims()) stored->add_dim(extent);
  }
  if (input.shape_size() < layer.top_size()) return std::nullopt;  // finish() reports it
  log_.info(cat("Assuming ", join(texts, ", "), " instead of layer ", layer.name(), " (",
                layer.type(), ")"));
  LayerParameter replaced;
  replaced.set_name(layer.name());
  replaced.set_type("Input");
  *replaced.mutable_top() = layer.top();
  *replaced.mutable_include() = layer.include();
  *replaced.mutable_exclude() = layer.exclude();
  if (layer.has_phase()) replaced.set_phase(layer.phase());
  *replaced.mutable_input_param() = input;
  return replaced;
}

// A data layer that the training and the test net share counts once.
void SourceReplacer::note_missing(const Missing& missing) {
  const bool known = std::any_of(missing_.begin(), missing_.end(), [&](const Missing& other) {
    return other.top == missing.top && other.where == missing.where;
  });
  if (!known) missing_.push_back(missing);
}

// Reports everything missing at once, with a text for -assume that completes the given one.
void SourceReplacer::fail_for_missing() const {
  std::vector<std::string> layers, given, named;
  for (const std::string& part : split(assume_, ',')) given.push_back(part);
  bool open = false;
  for (size_t i = 0; i < missing_.size(); ++i) {
    const Missing& first = missing_[i];
    std::vector<std::string> tops;
    for (; i < missing_.size() && missing_[i].where == first.where; ++i) {
      tops.push_back(cat("\"", missing_[i].top, "\""));
      open |= missing_[i].likely == "SHAPE";
      const std::string part = cat(missing_[i].top, "=", missing_[i].likely);
      if (std::find(given.begin(), given.end(), part) == given.end()) given.push_back(part);
    }
    --i;
    layers.push_back(cat(join(tops, ", "), " of layer \"", first.layer, "\" (", first.type,
                         shapes_.defaults && !first.has_batch ? ", which states no batch_size" : "",
                         layers.empty() ? ")" : cat(", ", first.where, ")")));
  }
  const char* what = missing_.size() == 1 ? "top " : "the tops ";
  fail(missing_[0].where, ": -assume ",
       shapes_.defaults
           ? cat("default cannot know the ", missing_.size() == 1 ? "shape" : "shapes", " of ")
           : "says nothing of ",
       what, join(layers, ", "), "; name ", missing_.size() == 1 ? "it" : "them",
       shapes_.defaults ? ", " : ", or add default, ", "for example -assume ", join(given, ","),
       open ? " (with numbers such as 64x3x224x224 for SHAPE)" : "");
}

void SourceReplacer::finish() const {
  if (!missing_.empty()) fail_for_missing();
  for (const auto& [top, shape] : shapes_.of_top) {
    require(std::find(tops_.begin(), tops_.end(), top) != tops_.end(),
            "-assume: no data layer has a top \"", top, "\"", did_you_mean(top, tops_),
            "; the tops are ", join(tops_, ", "));
  }
}

}  // namespace crema
