#include "net/sources/source_shapes.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "layers/data/cos_shapes.h"
#include "layers/layer.h"
#include "layers/python/usual_tops.h"

namespace crema {

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr int64_t kBoxesOfAList = 10, kNumbersOfABox = 16;

// The first positive number in a set field with this name, at any depth: forks have such fields in
// separate messages.
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

// Some files write the shapes of an Input layer into a Data layer.
std::optional<Shape> stated_shape(const SourceTop& top) {
  const InputParameter& input = top.layer.input_param();
  if (top.top >= input.shape_size() || input.shape(top.top).dim_size() == 0) return std::nullopt;
  Shape shape;
  for (const int64_t extent : input.shape(top.top).dim()) {
    if (extent <= 0) return std::nullopt;
    shape.push_back(extent);
  }
  if (top.batch > 0) shape[0] = top.batch;
  return shape;
}

bool says_gray(const LayerParameter& layer) {
  const ImageDataParameter& images = layer.image_data_param();
  return (images.has_is_color() && !images.is_color()) || layer.transform_param().force_gray() ||
         layer.transform_param().has_gray();
}

std::optional<int64_t> stated_channels(const LayerParameter& layer) {
  if (const auto channels = stated(layer, "channels")) return channels;
  return says_gray(layer) ? std::optional<int64_t>(1) : std::nullopt;
}

// The size that SegData crops from an image of this size.
std::pair<int64_t, int64_t> cut_by_stride(const TransformationParameter& p,
                                          std::pair<int64_t, int64_t> size) {
  const bool square = p.has_upper_size();
  const auto cut = [&](int64_t side, int64_t maximum) {
    const int64_t stride = std::max(1, p.stride());
    side = std::max(stride, side / stride * stride);
    return maximum > 0 ? std::min(side, maximum) : side;
  };
  return {cut(size.first, square ? p.upper_size() : p.upper_height()),
          cut(size.second, square ? p.upper_size() : p.upper_width())};
}

std::optional<std::pair<int64_t, int64_t>> stated_size(const LayerParameter& layer) {
  if (const auto crop = stated(layer, "crop_size")) return std::pair(*crop, *crop);
  for (const char* of : {"crop_", "new_", "resize_", ""}) {
    if (const auto size = stated_pair(layer, cat(of, "height"), cat(of, "width"))) return size;
  }
  return std::nullopt;
}

Shape image_shape(const LayerParameter& layer, int64_t batch) {
  std::pair<int64_t, int64_t> size(227, 227);
  if (const auto given = stated_size(layer)) {
    size = *given;
  } else if (layer.type() == "SegData") {
    size = cut_by_stride(layer.transform_param(), size);
  }
  const int64_t channels = stated_channels(layer).value_or(3);
  return {batch, channels, size.first, size.second};
}

// Frames are an axis after the channels; those of segments (TSN) are included.
Shape clip_shape(const LayerParameter& layer, const Shape& image) {
  const VideoDataParameter& video = layer.video_data_param();
  const int64_t length = stated(layer, "new_length").value_or(1);
  if (!video.has_modality() && !video.has_num_segments() && !video.has_name_pattern())
    return video.has_video_file() ? image : Shape{image[0], image[1], length, image[2], image[3]};
  const int64_t channels = video.modality() == VideoDataParameter::FLOW ? 2 : 3;
  return {image[0], video.num_segments() * length * channels, image[2], image[3]};
}

// The target maps of ImageGtData, and after them one object per image.
Shape target_shape(const ImageGtDataParameter& targets, int top, const Shape& image) {
  if (top > targets.downsample_rate_size()) return {image[0], 7, 1, 1};
  const int64_t step = std::max<int64_t>(1, targets.downsample_rate(top - 1));
  return {image[0], 6, image[2] / step, image[3] / step};
}

// One mask per image, and after the masks the classes.
Shape mask_shape(const McWindowDataParameter& windows, int top, const Shape& image) {
  const int64_t side = windows.mask_crop_size() > 0 ? windows.mask_crop_size() : image[2];
  return top == 1 ? Shape{image[0], 1, side, side} : Shape{image[0]};
}

Shape label_shape(const LayerParameter& layer, const Shape& image) {
  if (facts_of(layer.type()).content == SourceContent::image_pairs) {
    const int64_t shrink =
        std::max<int64_t>(1, layer.dense_image_data_param().label_divide_factor());
    return {image[0], 1, image[2] / shrink, image[3] / shrink};
  }
  // One box per sample: image number, class, instance, four corners, difficult.
  if (layer.type() == "AnnotatedData") return {1, 1, image[0], 8};
  return {image[0]};
}

// Whether bottom `j` of this layer has a class for each sample.
bool reads_labels(const LayerParameter& layer, int j) {
  const LayerFacts facts = facts_of(layer.type());
  // A type that is not known here most likely compares with classes.
  const bool compares = !LayerRegistry::has(layer.type()) &&
                        (facts.kind == LayerKind::loss || facts.kind == LayerKind::metric);
  return j == 1 &&
         (compares || facts.labels == LabelKind::classes || facts.labels == LabelKind::scored);
}

struct LabelUse {
  bool labels = false, values = false;
};

void add_uses(const NetParameter& net, const std::string& blob, std::set<std::string>* seen,
              LabelUse* uses) {
  if (!seen->insert(blob).second) return;
  for (const LayerParameter& layer : net.layer()) {
    for (int j = 0; j < layer.bottom_size(); ++j) {
      const LayerFacts facts = facts_of(layer.type());
      if (layer.bottom(j) != blob || facts.kind == LayerKind::sink) continue;
      if (facts.copies && (j == 0 || facts.kind == LayerKind::join)) {
        for (const std::string& top : layer.top()) add_uses(net, top, seen, uses);
      } else {
        (reads_labels(layer, j) ? uses->labels : uses->values) = true;
      }
    }
  }
}

LabelUse uses_of(const NetParameter& net, const std::string& blob) {
  LabelUse uses;
  std::set<std::string> seen;
  add_uses(net, blob, &seen, &uses);
  return uses;
}

bool reads_maps(LayerKind kind) {
  return kind == LayerKind::convolution || kind == LayerKind::pooling || kind == LayerKind::norm ||
         kind == LayerKind::resize;
}

bool is_box_list(const SourceTop& top) {
  return std::any_of(top.net.layer().begin(), top.net.layer().end(), [&](const auto& layer) {
    return layer.type() == "DetectNetTransformation" && layer.bottom_size() > 1 &&
           layer.bottom(1) == top.name();
  });
}

}  // namespace

std::optional<int64_t> SourceTop::samples() const {
  if (batch > 0) return batch;
  if (const auto size = stated(layer, "batch_size")) return size;
  if (layer.type() == "ImageData") return layer.image_data_param().batch_size();
  if (layer.type() == "SegData") return layer.seg_data_param().batch_size();
  return std::nullopt;
}

std::optional<Shape> usual_shape(const SourceTop& top) {
  if (const auto shape = stated_shape(top)) return shape;
  if (const auto tops = usual_tops_of(top.layer); !tops.empty())
    return tops[static_cast<size_t>(top.top)];
  const auto samples = top.samples();
  if (!samples) return std::nullopt;
  const CoSDataParameter& columns = top.layer.cos_data_param();
  if (top.top < columns.top_size()) return shape_of_column(columns.top(top.top), *samples);
  if (is_box_list(top)) return Shape{*samples, 1, 1 + kBoxesOfAList, kNumbersOfABox};
  const LayerParameter& layer = top.layer;
  const std::string& type = layer.type();
  Shape image = image_shape(layer, *samples);
  if (type == "ImageGtData" && top.top > 0)
    return target_shape(layer.image_gt_data_param(), top.top, image);
  if (type == "McWindowData" && top.top > 0)
    return mask_shape(layer.mcwindow_data_param(), top.top, image);
  if (type == "VideoData" && top.top == 0) return clip_shape(layer, image);
  const LabelUse uses = uses_of(top.net, top.name());
  // The contents of their tops depend on their files or their program.
  const bool any_data = facts_of(type).content == SourceContent::numbers || type == "Python";
  if (top.top == 1 && !any_data && LayerRegistry::find(type)) return label_shape(layer, image);
  const bool only_labels = uses.labels && !uses.values;
  if (top.top == 0 && !(any_data && only_labels)) {
    if (type == "Python" || type == "SparseData") return std::nullopt;
    if (only_labels) image[1] = 1;  // the records of a database with label images
    return image;
  }
  if (uses.labels || !uses.values) return label_shape(layer, image);
  return std::nullopt;
}

std::optional<Shape> stated_image(const SourceTop& top) {
  if (const auto shape = stated_shape(top)) return shape;
  return stated_size(top.layer) ? usual_shape(top) : std::nullopt;
}

std::string likely_shape(const SourceTop& top) {
  const int64_t samples = top.samples().value_or(1);
  for (const LayerParameter& layer : top.net.layer()) {
    for (int j = 0; j < layer.bottom_size(); ++j) {
      if (layer.bottom(j) != top.name()) continue;
      if (reads_labels(layer, j)) return cat(samples);
      const LayerFacts facts = facts_of(layer.type());
      if (j == 1 && facts.regions > 0) return cat("300x", facts.regions);
      if (layer.type() == "ProposalTarget") return j == 0 ? "300x5" : "8x7";
      if (layer.type() == "MultiBoxLoss" && j == 3) return "1x1x8x8";
      if (layer.type() == "Proposal" && j == 2) return "1x3";
      if (j == 0 && reads_maps(facts.kind)) return image_shape(top.layer, samples).brief();
    }
  }
  // The shapes that Faster R-CNN's Python layers read.
  if (top.name() == "im_info") return "1x3";
  if (top.name() == "gt_boxes") return "8x5";
  return "SHAPE";
}

}  // namespace crema
