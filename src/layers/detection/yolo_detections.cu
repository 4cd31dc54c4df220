#include "layers/detection/yolo_detections.h"

#include <cmath>
#include <limits>

#include "base/error.h"
#include "device/aligned.h"
#include "device/parallel.h"
#include "kernels/pointwise/pointwise_math.h"
#include "tensor/on.h"

namespace crema {
namespace {

constexpr float kNoScore = -std::numeric_limits<float>::infinity();

struct Likeliest {
  int32_t label;
  float probability;
};

// Decodes a scale's boxes of all images, cell by cell; they are `first` and following of the `all`
// boxes of an image.
template <typename T>
struct CellBoxes {
  YoloRule rule;
  int64_t boxes, height, width, first, all;
  float cell, no_score;
  const T *x, *sizes;
  Box* box_of;
  float* score_of;
  int32_t* label_of;

  CREMA_HD float number(const T* at) const { return static_cast<float>(*at); }
  CREMA_HD void operator()(int64_t i) const {
    const int64_t cells = height * width, position = i % cells, box = i / cells % boxes;
    const int64_t image = i / cells / boxes, out = image * all + first + i % (cells * boxes);
    const T* at = x + (image * boxes + box) * (5 + rule.classes) * cells + position;
    score_of[out] = no_score;
    const float object = sigmoid_of(number(at + 4 * cells));
    // Most boxes are empty: their classes are not read.
    if (rule.score != YoloRule::Score::probability && !(object >= rule.minimum)) return;
    const Likeliest found = likeliest(at + 5 * cells, cells);
    const float score = rule.score == YoloRule::Score::object        ? object
                        : rule.score == YoloRule::Score::probability ? found.probability
                                                                     : object * found.probability;
    if (!(score >= rule.minimum)) return;
    const auto across = static_cast<float>(width), down = static_cast<float>(height);
    const float cx = (static_cast<float>(position % width) + sigmoid_of(number(at))) / across;
    const float cy = (static_cast<float>(position / width) + sigmoid_of(number(at + cells))) / down;
    const float own_width = number(sizes + 2 * box), own_height = number(sizes + 2 * box + 1);
    const float w = exp_of(number(at + 2 * cells)) * own_width / (across * cell) / 2;
    const float h = exp_of(number(at + 3 * cells)) * own_height / (down * cell) / 2;
    score_of[out] = score;
    label_of[out] = found.label;
    box_of[out] = {cx - w, cy - h, cx + w, cy + h};
  }

  CREMA_HD Likeliest likeliest(const T* scores, int64_t stride) const {
    int64_t best = 0;
    for (int64_t c = 1; c < rule.classes; ++c)
      best = scores[c * stride] > scores[best * stride] ? c : best;
    const float largest = number(scores + best * stride);
    if (rule.function == YoloRule::Classes::logistic)
      return {static_cast<int32_t>(best), sigmoid_of(largest)};
    float sum = 0;
    for (int64_t c = 0; c < rule.classes; ++c) sum += exp_of(number(scores + c * stride) - largest);
    return {static_cast<int32_t>(best), 1 / sum};
  }
};

}  // namespace

void check_overlap(const char* field, float threshold) {
  require(threshold >= 0 && threshold <= 1, field, " is ", threshold, ", but an overlap is 0 to 1");
}

int64_t YoloDetector::boxes(const std::vector<Shape>& maps) const {
  int64_t all = 0;
  for (size_t i = 0; i < maps.size(); ++i) {
    const Shape& map = maps[i];
    const int64_t channels = scales[i].boxes() * (5 + rule.classes);
    require(map.axes() == 4 && map[1] == channels, "a map of ", scales[i].boxes(),
            " boxes a cell and ", rule.classes,
            " classes must have boxes * (5 + classes) = ", channels,
            " channels, but the bottom is ", map.brief());
    require(map[0] == maps[0][0], "bottom ", i, " has ", map[0], " images, but the first has ",
            maps[0][0]);
    all += scales[i].boxes() * map.count(2);
  }
  return all;
}

NmsInput YoloDetector::nms_input(int64_t images, int64_t boxes) const {
  NmsInput input;
  input.groups = images;
  input.boxes_per_list = boxes;
  input.min_score = kNoScore;
  // nms suppresses above its threshold; here equality suffices.
  input.suppression.threshold = rule.suppress ? std::nextafter(rule.same, -1.f) : 2;
  return input;
}

Tensor YoloDetector::sizes(Context& context, DType dtype) const {
  std::vector<float> sizes;
  for (const YoloScale& scale : scales)
    sizes.insert(sizes.end(), scale.sizes.begin(), scale.sizes.end());
  const Tensor on_device(context, Shape{static_cast<int64_t>(sizes.size())}, dtype);
  from_floats(context, sizes.data(), on_device);
  return on_device;
}

size_t YoloDetector::workspace(Context& context, const std::vector<Shape>& maps) const {
  const int64_t each = boxes(maps), images = maps[0][0];
  const auto all = static_cast<size_t>(images * each);
  return aligned(all * sizeof(Box)) + aligned(all * sizeof(float)) +
         aligned(all * sizeof(int32_t)) + nms_workspace(context, nms_input(images, each));
}

NmsResult YoloDetector::detect(Context& context, const std::vector<Tensor>& maps,
                               const Tensor& sizes, const Tensor& workspace) const {
  std::vector<Tensor> bottoms = maps;
  bottoms.push_back(sizes);
  return find_boxes(context, bottoms, workspace,
                    [&](Context& where, const std::vector<Tensor>& there, char* room) {
                      return found(where, there, room);
                    });
}

NmsResult YoloDetector::found(Context& context, const std::vector<Tensor>& bottoms,
                              char* workspace) const {
  std::vector<Shape> shapes;
  for (size_t i = 0; i < scales.size(); ++i) shapes.push_back(bottoms[i].shape());
  const Tensor& sizes = bottoms.back();
  const int64_t images = shapes[0][0], each = boxes(shapes);
  const auto all = static_cast<size_t>(images * each);
  char* at = workspace;
  const auto next = [&](size_t bytes) {
    char* const part = at;
    at += aligned(bytes);
    return part;
  };
  auto* const box_of = reinterpret_cast<Box*>(next(all * sizeof(Box)));
  auto* const score_of = reinterpret_cast<float*>(next(all * sizeof(float)));
  auto* const label_of = reinterpret_cast<int32_t*>(next(all * sizeof(int32_t)));
  int64_t first = 0, size = 0;
  for (size_t i = 0; i < scales.size(); ++i) {
    const int64_t boxes = scales[i].boxes(), of_map = boxes * shapes[i].count(2);
    on(bottoms[i], [&]<typename T>() {
      parallel_for(context, images * of_map,
                   CellBoxes<T>{rule, boxes, shapes[i][2], shapes[i][3], first, each,
                                scales[i].cell, kNoScore, bottoms[i].data<T>(),
                                sizes.data<T>() + size, box_of, score_of, label_of},
                   256);
    });
    first += of_map;
    size += 2 * boxes;
  }
  NmsInput input = nms_input(images, each);
  input.scores = score_of;
  input.boxes = box_of;
  input.labels = label_of;
  return nms(context, input, at);
}

Inference YoloOutputLayer::infer(const std::vector<Shape>& bottoms) const {
  const int64_t each = detector_.boxes(bottoms);
  return {{{1, 1, bottoms[0][0] * each, kDetectionValues}}, {}};
}

Prepared YoloOutputLayer::prepare(Context& context, const Preparation& preparation) const {
  Prepared prepared;
  prepared.make_state<State>().sizes = detector_.sizes(context, preparation.dtype);
  prepared.workspace = detector_.workspace(context, preparation.bottoms);
  return prepared;
}

void YoloOutputLayer::forward(Context& context, const Forward& pass) const {
  State& state = state_of<State>(pass);
  const NmsResult found = detector_.detect(context, pass.bottom, state.sizes, pass.workspace);
  state.tops = {write_detections(context, found, pass.bottom[0].shape()[0], 1, pass.top[0])};
}

}  // namespace crema
