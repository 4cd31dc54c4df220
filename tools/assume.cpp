#include "tools/assume.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "tensor/shape.h"
#include "tools/schema.h"

namespace crema {

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr int64_t kBoxesOfAList = 10, kNumbersOfABox = 16;

struct Assumption {
  bool given = false, defaults = false;
  std::map<std::string, Shape> shapes;  // by top
  std::set<std::string> box_lists;      // tops that DetectNetTransformation reads as such
};

Shape parse_shape(const std::string& text) {
  Shape shape;
  for (const std::string& part : split(text, 'x')) {
    int64_t extent = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), extent);
    require(error == std::errc() && end == part.data() + part.size() && extent > 0, "-assume: \"",
            text,
            "\" is no shape; expected positive numbers with x between them, such as 64x3x224x224");
    shape.push_back(extent);
  }
  return shape;
}

Assumption parse_assumption(const std::string& text) {
  Assumption assumption;
  assumption.given = !text.empty();
  for (const std::string& part : split(text, ',')) {
    const size_t equal = part.find('=');
    if (part == "default") {
      assumption.defaults = true;
    } else {
      require(equal != std::string::npos && equal > 0, "-assume: \"", part,
              "\" is neither TOP=SHAPE (such as data=64x3x224x224) nor default");
      assumption.shapes[part.substr(0, equal)] = parse_shape(part.substr(equal + 1));
    }
  }
  return assumption;
}

bool is_source(const LayerParameter& layer) {
  return layer.bottom_size() == 0 && layer.top_size() > 0 && layer.type() != "Parameter";
}

// Not a source, but -assume may name its tops: nobody else knows their shapes.
bool is_python(const LayerParameter& layer) {
  return layer.type() == "Python" && layer.bottom_size() > 0;
}

// These run without any data.
bool needs_no_data(const LayerParameter& layer) {
  return layer.type() == "Input" || layer.type() == "DummyData" ||
         layer.type() == "ContinuationIndicator";
}

// The first positive number among the set fields of this name, at any depth: forks keep such fields
// in messages of their own.
std::optional<int64_t> stated(const Message& message, const std::string& name) {
  std::vector<const FieldDescriptor*> fields;
  const auto* reflection = message.GetReflection();
  reflection->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->is_repeated()) continue;
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      if (const auto found = stated(reflection->GetMessage(message, field), name)) return found;
    } else if (field->name() == name) {
      int64_t value = 0;
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_UINT32)
        value = reflection->GetUInt32(message, field);
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_INT32)
        value = reflection->GetInt32(message, field);
      if (value > 0) return value;
    }
  }
  return std::nullopt;
}

std::optional<std::pair<int64_t, int64_t>> stated_pair(const Message& message, const std::string& a,
                                                       const std::string& b) {
  const auto first = stated(message, a), second = stated(message, b);
  if (!first || !second) return std::nullopt;
  return std::pair(*first, *second);
}

bool says_gray(const LayerParameter& layer) {
  const ImageDataParameter& images = layer.image_data_param();
  return (images.has_is_color() && !images.is_color()) || layer.transform_param().force_gray();
}

Shape image_shape(const LayerParameter& layer, int64_t batch) {
  std::pair<int64_t, int64_t> size(227, 227);
  if (const auto crop = stated(layer, "crop_size")) {
    size = {*crop, *crop};
  } else if (const auto crop = stated_pair(layer, "crop_height", "crop_width")) {
    size = *crop;
  } else if (const auto resized = stated_pair(layer, "new_height", "new_width")) {
    size = *resized;
  } else if (const auto resized = stated_pair(layer, "resize_height", "resize_width")) {
    size = *resized;
  } else if (const auto given = stated_pair(layer, "height", "width")) {
    size = *given;
  }
  const int64_t channels = stated(layer, "channels").value_or(says_gray(layer) ? 1 : 3);
  return {batch, channels, size.first, size.second};
}

// Frames lie behind the channels, those of segments (TSN) among them.
Shape clip_shape(const LayerParameter& layer, const Shape& image) {
  const VideoDataParameter& video = layer.video_data_param();
  const int64_t length = stated(layer, "new_length").value_or(1);
  if (!video.has_modality() && !video.has_num_segments() && !video.has_name_pattern())
    return video.has_video_file() ? image : Shape{image[0], image[1], length, image[2], image[3]};
  const int64_t channels = video.modality() == VideoDataParameter::FLOW ? 2 : 3;
  return {image[0], video.num_segments() * length * channels, image[2], image[3]};
}

// The target maps of ImageGtData, and behind them one object an image.
Shape target_shape(const ImageGtDataParameter& targets, int top, const Shape& image) {
  if (top > targets.downsample_rate_size()) return {image[0], 7, 1, 1};
  const int64_t step = std::max<int64_t>(1, targets.downsample_rate(top - 1));
  return {image[0], 6, image[2] / step, image[3] / step};
}

bool is_label(const LayerParameter& layer, int top) {
  // The second top of an image source is its label, whatever its name; datasets in an HDF5 file are
  // known by name only.
  static const std::set<std::string> nameless = {"HDF5Data", "Python"};
  if (top == 1 && !nameless.count(layer.type())) return true;
  return lower_case(layer.top(top)).find("label") != std::string::npos;
}

Shape label_shape(const LayerParameter& layer, const Shape& image) {
  static const std::set<std::string> label_images = {"DenseImageData", "ImageSegData",
                                                     "ImageLabelmapData"};
  if (label_images.count(layer.type())) return {image[0], 1, image[2], image[3]};
  // One box a sample: image number, class, instance, four corners, difficult.
  if (layer.type() == "AnnotatedData") return {1, 1, image[0], 8};
  return {image[0]};
}

Shape default_shape(const LayerParameter& layer, int top, int batch, bool boxes) {
  std::optional<int64_t> samples =
      batch > 0 ? std::optional<int64_t>(batch) : stated(layer, "batch_size");
  if (!samples && layer.type() == "ImageData") samples = layer.image_data_param().batch_size();
  const std::string way_out = cat("; name it: -assume default,", layer.top(top), "=SHAPE");
  require(samples.has_value(), "-assume default: the shape of top \"", layer.top(top),
          "\" of layer \"", layer.name(), "\" (", layer.type(),
          ") cannot be known, as the layer states no batch_size", way_out);
  if (boxes) return {*samples, 1, 1 + kBoxesOfAList, kNumbersOfABox};
  const Shape image = image_shape(layer, *samples);
  if (layer.type() == "ImageGtData" && top > 0)
    return target_shape(layer.image_gt_data_param(), top, image);
  if (layer.type() == "VideoData" && top == 0) return clip_shape(layer, image);
  if (is_label(layer, top)) return label_shape(layer, image);
  require(top == 0 && layer.type() != "Python" && layer.type() != "SparseData",
          "-assume default: the shape of top \"", layer.top(top), "\" of layer \"", layer.name(),
          "\" (", layer.type(), ") cannot be known", way_out);
  return image;
}

void assume_input(Log& log, LayerParameter& layer, const Assumption& assumption, int batch) {
  std::vector<std::string> texts;
  InputParameter input;
  for (int top = 0; top < layer.top_size(); ++top) {
    const auto named = assumption.shapes.find(layer.top(top));
    require(named != assumption.shapes.end() || assumption.defaults,
            "-assume says nothing of top \"", layer.top(top), "\" of layer \"", layer.name(),
            "\" (", layer.type(), "); add ", layer.top(top), "=SHAPE, or default");
    const bool boxes = assumption.box_lists.count(layer.top(top)) > 0;
    Shape shape =
        named != assumption.shapes.end() ? named->second : default_shape(layer, top, batch, boxes);
    if (named != assumption.shapes.end() && batch > 0 && shape.axes() > 0) shape[0] = batch;
    texts.push_back(cat(layer.top(top), " ", shape.brief()));
    BlobShape* stored = input.add_shape();
    for (const int64_t extent : shape.dims()) stored->add_dim(extent);
  }
  log.info(cat("Assuming ", join(texts, ", "), " instead of layer ", layer.name(), " (",
               layer.type(), ")"));
  LayerParameter replaced;
  replaced.set_name(layer.name());
  replaced.set_type("Input");
  *replaced.mutable_top() = layer.top();
  *replaced.mutable_include() = layer.include();
  *replaced.mutable_exclude() = layer.exclude();
  if (layer.has_phase()) replaced.set_phase(layer.phase());
  *replaced.mutable_input_param() = input;
  layer = std::move(replaced);
}

// The family's message that holds batch_size: one that is set, else the one named after the type.
bool set_batch_size(LayerParameter& layer, int batch) {
  const auto* reflection = layer.GetReflection();
  Message* holder = nullptr;
  for (int i = 0; i < LayerParameter::descriptor()->field_count(); ++i) {
    const FieldDescriptor* field = LayerParameter::descriptor()->field(i);
    if (field->is_repeated() || field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    const FieldDescriptor* size = field->message_type()->FindFieldByName("batch_size");
    if (!size || size->is_repeated()) continue;
    if (reflection->HasField(layer, field) ||
        (!holder && letters_of(field->name()) == letters_of(layer.type()))) {
      holder = reflection->MutableMessage(&layer, field);
    }
  }
  if (!holder) return false;
  const FieldDescriptor* size = holder->GetDescriptor()->FindFieldByName("batch_size");
  if (size->cpp_type() == FieldDescriptor::CPPTYPE_UINT32) {
    holder->GetReflection()->SetUInt32(holder, size, static_cast<uint32_t>(batch));
  } else {
    holder->GetReflection()->SetInt32(holder, size, batch);
  }
  return true;
}

void override_batch(LayerParameter& layer, int batch) {
  if (layer.type() == "Input") {
    for (BlobShape& shape : *layer.mutable_input_param()->mutable_shape()) {
      if (shape.dim_size() > 0) shape.set_dim(0, batch);
    }
  } else if (layer.type() == "DummyData") {
    DummyDataParameter* dummy = layer.mutable_dummy_data_param();
    for (BlobShape& shape : *dummy->mutable_shape()) {
      if (shape.dim_size() > 0) shape.set_dim(0, batch);
    }
    std::fill(dummy->mutable_num()->begin(), dummy->mutable_num()->end(), batch);
  } else {
    require(set_batch_size(layer, batch), "-batch: layer \"", layer.name(), "\" (", layer.type(),
            ") has no batch_size that could be replaced");
  }
}

}  // namespace

void replace_sources(Log& log, NetParameter& net, const std::string& assume, int batch) {
  require(batch >= 0, "-batch ", batch, ": expected a positive number");
  Assumption assumption = parse_assumption(assume);
  for (const LayerParameter& layer : net.layer()) {
    if (layer.type() == "DetectNetTransformation" && layer.bottom_size() > 1)
      assumption.box_lists.insert(layer.bottom(1));
  }
  std::set<std::string> unused;
  for (const auto& entry : assumption.shapes) unused.insert(entry.first);
  std::vector<std::string> tops;
  for (LayerParameter& layer : *net.mutable_layer()) {
    if (!is_source(layer) && !is_python(layer)) continue;
    bool named = false;
    for (const std::string& top : layer.top()) {
      tops.push_back(top);
      unused.erase(top);
      named |= assumption.shapes.count(top) > 0;
    }
    if (named || (assumption.given && is_source(layer) && !needs_no_data(layer))) {
      assume_input(log, layer, assumption, batch);
    } else if (batch > 0 && is_source(layer)) {
      override_batch(layer, batch);
    }
  }
  if (unused.empty()) return;
  fail("-assume: no data layer has a top \"", *unused.begin(), "\"",
       did_you_mean(*unused.begin(), tops), "; the tops are ", join(tops, ", "));
}

}  // namespace crema
