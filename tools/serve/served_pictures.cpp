#include "tools/serve/served_pictures.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <numeric>

#include "base/error.h"
#include "data/images/sheet.h"
#include "layers/layer_facts.h"
#include "tools/serve/box_rows.h"
#include "tools/serve/tensor_json.h"

namespace crema {

namespace {

const BlobInfo* picture_input(const std::vector<BlobInfo>& inputs) {
  const BlobInfo* found = nullptr;
  for (const BlobInfo& input : inputs) {
    if (is_picture_facts(input)) continue;
    if (found || input.shape.size() != 4 || input.shape[0] != 1) return nullptr;
    found = &input;
  }
  return found;
}

// One sample with several rows and columns.
bool is_map(const BlobInfo& output) {
  const std::vector<int64_t>& shape = output.shape;
  return shape.size() == 4 && shape[0] == 1 && shape[2] * shape[3] > 1;
}

bool is_row(const BlobInfo& output) {
  const std::vector<int64_t>& shape = output.shape;
  return shape.size() >= 2 && shape[0] == 1 &&
         std::all_of(shape.begin() + 2, shape.end(), [](int64_t size) { return size == 1; });
}

bool gives_probabilities(const BlobInfo& output) {
  const LayerFacts facts = facts_of(output.layer_type);
  return facts.kind == LayerKind::activation && facts.least == 0 && facts.most == 1;
}

std::string color_json(int label) {
  const auto [red, green, blue] = color_of_class(label);
  char text[32];
  std::snprintf(text, sizeof text, R"("color":"#%02x%02x%02x")", red, green, blue);
  return text;
}

// The class of each pixel: the index of the largest score, or what ArgMax has found.
std::vector<int> classes_of_pixels(const ServedTensor& output) {
  const auto count = static_cast<size_t>(output.shape[2] * output.shape[3]);
  const auto classes = static_cast<size_t>(output.shape[1]);
  std::vector<int> found(count);
  std::vector<float> best(output.values.begin(),
                          output.values.begin() + static_cast<std::ptrdiff_t>(count));
  if (classes == 1) {
    for (size_t i = 0; i < count; ++i) found[i] = static_cast<int>(best[i]);
    return found;
  }
  for (size_t c = 1; c < classes; ++c) {
    const float* const scores = output.values.data() + c * count;
    for (size_t i = 0; i < count; ++i) {
      if (!(scores[i] > best[i])) continue;
      best[i] = scores[i];
      found[i] = static_cast<int>(c);
    }
  }
  return found;
}

}  // namespace

const PictureResultInfo& info_of(PictureResult result) {
  return *std::find_if(kPictureResults.begin(), kPictureResults.end(),
                       [&](const PictureResultInfo& one) { return one.result == result; });
}

bool is_picture_facts(const BlobInfo& input) {
  return input.name == "im_info" && input.shape.size() >= 2 && input.shape[1] == 3;
}

std::vector<float> picture_facts(const std::vector<BlobInfo>& inputs) {
  for (const BlobInfo& input : inputs) {
    if (input.shape.size() == 4)
      return {static_cast<float>(input.shape[2]), static_cast<float>(input.shape[3]), 1};
  }
  return {1, 1, 1};
}

ServedPictures::ServedPictures(const Model& model, const PictureOptions& options)
    : inputs_(model.inputs()) {
  const BlobInfo* const input = picture_input(inputs_);
  if (!input) return;
  try {
    reader_ = model.picture_reader(input->name);
  } catch (const Error&) {
    if (!options.resize.empty() || !options.mean.empty() || !options.labels.empty()) throw;
    return;
  }
  try {
    const std::vector<BlobInfo> outputs = model.outputs();
    find_boxes(model);
    // A map beside a row of scores is seldom what the net is for.
    if (result_ == PictureResult::none && std::any_of(outputs.begin(), outputs.end(), is_row))
      find_classes(model);
    if (result_ == PictureResult::none) find_mask(model);
    require(result_ != PictureResult::none || options.labels.empty(), options.labels,
            ": names classes, but no output of the net gives classes, boxes or a mask of pictures");
  } catch (const Error&) {
    if (!options.labels.empty()) throw;
    result_ = PictureResult::none;
  }
}

void ServedPictures::find_boxes(const Model& model) {
  for (const BlobInfo& output : model.outputs()) {
    if (!has_box_rows(output)) continue;
    output_ = output.name;
    names_ = model.class_names();
    result_ = PictureResult::boxes;
    if (std::any_of(inputs_.begin(), inputs_.end(), is_picture_facts)) {
      const std::vector<float> facts = picture_facts(inputs_);
      box_height_ = facts[0];
      box_width_ = facts[1];
    }
    return;
  }
}

// The only map of scores, or the only one with probabilities, or a map of classes.
void ServedPictures::find_mask(const Model& model) {
  std::vector<BlobInfo> maps, probabilities;
  for (const BlobInfo& output : model.outputs()) {
    if (!is_map(output) || (output.shape[1] == 1 && output.layer_type != "ArgMax")) continue;
    maps.push_back(output);
    if (gives_probabilities(output)) probabilities.push_back(output);
  }
  if (maps.size() != 1) maps = probabilities;
  if (maps.size() != 1) return;
  output_ = maps[0].name;
  names_ = model.class_names(maps[0].shape[1] == 1 ? 0 : maps[0].shape[1]);
  result_ = PictureResult::mask;
}

void ServedPictures::find_classes(const Model& model) {
  const std::vector<ClassScore> best = model.best(std::numeric_limits<int>::max());
  for (const BlobInfo& output : model.outputs()) {
    const std::vector<float> values = model.values(output.name);
    if (values.size() != best.size() || result_ != PictureResult::none) continue;
    const auto fits = [&](const ClassScore& one) { return one.score == values[one.index]; };
    if (!std::all_of(best.begin(), best.end(), fits)) continue;
    output_ = output.name;
    result_ = PictureResult::classes;
  }
  names_.resize(best.size());
  for (const ClassScore& one : best) names_[one.index] = one.name;
}

std::vector<std::vector<float>> ServedPictures::inputs(std::string_view file) const {
  std::vector<std::vector<float>> values;
  for (const BlobInfo& input : inputs_)
    values.push_back(is_picture_facts(input) ? picture_facts(inputs_) : reader_(file));
  return values;
}

std::string ServedPictures::json(const std::string& model, const std::vector<ServedTensor>& outputs,
                                 const PictureLimits& limits) const {
  const ServedTensor& output = *std::find_if(
      outputs.begin(), outputs.end(), [&](const ServedTensor& one) { return one.name == output_; });
  std::string json = cat(R"({"model_name":)", json_text(model), ",");
  switch (result_) {
    case PictureResult::classes:
      json += classes_json(output.values, limits.top);
      break;
    case PictureResult::boxes:
      json += boxes_json(output.values, limits.score);
      break;
    case PictureResult::mask:
      json += mask_json(output);
      break;
    case PictureResult::none:
      break;
  }
  return json + "}";
}

std::string ServedPictures::class_json(size_t index) const {
  return cat(R"("index":)", index, R"(,"name":)",
             json_text(index < names_.size() ? names_[index] : std::string()));
}

std::string ServedPictures::classes_json(const std::vector<float>& scores, size_t top) const {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const size_t count = std::min(top, scores.size());
  std::partial_sort(
      order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
      [&](size_t a, size_t b) { return scores[a] != scores[b] ? scores[a] > scores[b] : a < b; });
  std::string json = R"("classes":[)";
  for (size_t i = 0; i < count; ++i) {
    json += cat(i > 0 ? "," : "", "{", class_json(order[i]), R"(,"score":)");
    add_json_number(scores[order[i]], &json);
    json += "}";
  }
  return json + "]";
}

std::string ServedPictures::boxes_json(const std::vector<float>& rows, float least) const {
  struct Box {
    int label;
    float score, left, top, right, bottom;
  };
  std::vector<Box> boxes;
  for (size_t i = 0; i + kBoxNumbers <= rows.size(); i += kBoxNumbers) {
    const float* const row = rows.data() + i;
    // Nets may find boxes that reach beyond the picture.
    const auto part = [&](int k, float size) { return std::clamp(row[k] / size, 0.F, 1.F); };
    const Box box{static_cast<int>(row[1]), row[2],
                  part(3, box_width_),      part(4, box_height_),
                  part(5, box_width_),      part(6, box_height_)};
    // A class of -1 says that there is no object.
    const bool shows = row[1] >= 0 && box.score >= least && box.right > box.left;
    if (shows && box.bottom > box.top) boxes.push_back(box);
  }
  std::stable_sort(boxes.begin(), boxes.end(),
                   [](const Box& a, const Box& b) { return a.score > b.score; });
  std::string json = R"("boxes":[)";
  for (const Box& box : boxes) {
    json += cat(json.back() == '[' ? "" : ",", "{", class_json(static_cast<size_t>(box.label)));
    for (const auto& [name, value] :
         {std::pair("score", box.score), std::pair("left", box.left), std::pair("top", box.top),
          std::pair("right", box.right), std::pair("bottom", box.bottom)}) {
      json += cat(",\"", name, "\":");
      add_json_number(value, &json);
    }
    json += cat(",", color_json(box.label), "}");
  }
  return json + "]";
}

std::string ServedPictures::mask_json(const ServedTensor& output) const {
  const std::vector<int> labels = classes_of_pixels(output);
  std::map<int, int64_t> pixels;
  std::string runs;
  for (size_t i = 0; i < labels.size();) {
    size_t end = i + 1;
    while (end < labels.size() && labels[end] == labels[i]) ++end;
    runs += cat(runs.empty() ? "" : ",", labels[i], ",", end - i);
    pixels[labels[i]] += static_cast<int64_t>(end - i);
    i = end;
  }
  std::string classes;
  for (const auto& [label, count] : pixels)
    classes += cat(classes.empty() ? "{" : ",{", class_json(static_cast<size_t>(label)),
                   R"(,"pixels":)", count, ",", color_json(label), "}");
  return cat(R"("width":)", output.shape[3], R"(,"height":)", output.shape[2], R"(,"classes":[)",
             classes, R"(],"runs":[)", runs, "]");
}

}  // namespace crema
