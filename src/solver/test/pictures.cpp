#include "solver/test/pictures.h"

#include <algorithm>
#include <cmath>

#include "base/strings.h"
#include "device/communicator.h"
#include "solver/test/packed.h"

namespace crema {
namespace {

constexpr int64_t kMostFilters = 64;

// The first top of a layer without bottoms that has channels, height and width; -1: none.
int find_images(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    if (!node.bottoms.empty()) continue;
    for (const int top : node.tops) {
      if (graph.values[top].shape.axes() == 4) return top;
    }
  }
  return -1;
}

struct Judged {
  int labels = -1, scores = -1;
};

// Labels from a layer without bottoms, one a sample, and the scores that a metric or else a loss
// compares with them.
Judged find_judged(const Graph& graph) {
  const auto last_of_blob = [&](int value) {
    for (size_t id = value + 1; id < graph.values.size(); ++id) {
      if (graph.values[id].blob == graph.values[value].blob) return false;
    }
    return true;
  };
  Judged judged;
  for (const Node& node : graph.nodes) {
    const bool measures = node.message.type() == "Accuracy";
    if (node.bottoms.size() < 2) continue;
    if (!measures && (!node.layer->is_loss() || node.layer->differentiable(1))) continue;
    const int labels = node.bottoms[1], scores = node.bottoms[0];
    const Shape& shape = graph.values[scores].shape;
    const bool one_each = shape.axes() >= 2 && shape[1] > 1 && shape.count(2) == 1 &&
                          graph.values[labels].shape.count() == shape[0];
    const bool given = graph.nodes[graph.values[labels].producer].bottoms.empty();
    if (given && one_each && last_of_blob(scores) && (judged.scores < 0 || measures))
      judged = {labels, scores};
  }
  return judged;
}

// The probability of the net's answer: the softmax of its scores, unless they are probabilities.
double confidence_of(const float* scores, int64_t classes, int64_t best, bool probabilities) {
  double sum = 0;
  for (int64_t c = 0; c < classes; ++c)
    sum += std::exp(static_cast<double>(scores[c]) - scores[best]);
  const double confidence = probabilities ? scores[best] : 1 / sum;
  return std::isfinite(confidence) ? confidence : 0;
}

// One image of a batch. It is contiguous in every order that blobs have.
Tensor image_at(const Tensor& batch, int64_t index) {
  Shape shape = batch.shape();
  const size_t bytes = batch.bytes() / static_cast<size_t>(shape[0]);
  const auto begin = static_cast<size_t>(static_cast<const char*>(batch.raw()) -
                                         static_cast<const char*>(batch.memory()->data()));
  shape[0] = 1;
  return Tensor(batch.memory(), begin + static_cast<size_t>(index) * bytes, shape, batch.dtype(),
                batch.format());
}

// As add() keeps them: the surest first, and of equally sure ones those that came first.
template <typename Sample>
void keep_surest(std::vector<Sample>* samples, size_t most) {
  std::stable_sort(samples->begin(), samples->end(), [](const Sample& one, const Sample& other) {
    return one.confidence > other.confidence;
  });
  if (samples->size() > most) samples->resize(most);
}

const Node& producer_of(const Graph& graph, int value) {
  return graph.nodes[graph.values[value].producer];
}

}  // namespace

Picture picture_of(const float* values, const Shape& image, bool rgb) {
  const int64_t planes = image[0], plane = image.count(1);
  Picture picture;
  picture.width = static_cast<int>(image[2]);
  picture.height = static_cast<int>(image[1]);
  picture.channels = planes == 3 ? 3 : 1;
  std::vector<float> pixels(static_cast<size_t>(picture.channels * plane));
  for (int64_t i = 0; i < plane; ++i) {
    if (planes == 3) {
      for (int c = 0; c < 3; ++c) pixels[3 * i + c] = values[(rgb ? c : 2 - c) * plane + i];
    } else {
      for (int64_t c = 0; c < planes; ++c) pixels[i] += values[c * plane + i];
    }
  }
  const auto [low, high] = std::minmax_element(pixels.begin(), pixels.end());
  const float base = *low, range = *high > *low ? *high - *low : 1;
  for (const float pixel : pixels) {
    const float shade = 255 * (pixel - base) / range;
    picture.bytes.push_back(std::isfinite(shade)
                                ? static_cast<uint8_t>(std::lround(std::clamp(shade, 0.f, 255.f)))
                                : 0);
  }
  return picture;
}

event::Pictures first_filters(Net& net, bool rgb) {
  const Graph& graph = net.graph();
  const int images = find_images(graph);
  event::Pictures filters{0, "filters", "", {}};
  for (const Node& node : graph.nodes) {
    if (node.parameters.empty()) continue;
    const Parameter& weights = graph.parameters[node.parameters[0]];
    Shape shape = weights.shape;
    const bool reads_images =
        node.message.type() == "InnerProduct" && images >= 0 && node.bottoms[0] == images;
    if (reads_images) {
      const Shape& image = graph.values[images].shape;
      if (shape.axes() != 2 || shape[1] != image.count(1)) return filters;
      shape = {shape[0], image[1], image[2], image[3]};
    } else if (node.message.type() != "Convolution" || shape.axes() != 4) {
      continue;
    }
    const int64_t shown = std::min(shape[0], kMostFilters);
    const std::vector<float> values = to_floats(net.context(), weights.data);
    for (int64_t i = 0; i < shown; ++i) {
      filters.pictures.push_back(
          picture_of(values.data() + i * shape.count(1), {shape[1], shape[2], shape[3]}, rgb));
    }
    filters.title = cat("First layer: ", node.message.name(),
                        shown < shape[0] ? cat(", the first ", shown, " of ") : ", ", shape[0],
                        " filters of ", shape[2], " × ", shape[3]);
    return filters;
  }
  return filters;
}

std::vector<int> Mistakes::values(const Graph& graph) {
  const int images = find_images(graph);
  const Judged judged = find_judged(graph);
  if (images < 0 || judged.scores < 0) return {};
  for (const int given : {images, judged.labels}) {
    if (producer_of(graph, given).message.type() == "Input") return {};
  }
  if (graph.values[images].shape[0] != graph.values[judged.scores].shape[0]) return {};
  return {images, judged.labels, judged.scores};
}

Mistakes::Mistakes(Net& net, size_t most, bool rgb) : net_(net), most_(most), rgb_(rgb) {
  const std::vector<int> found = values(net.graph());
  if (found.empty()) return;
  images_ = found[0];
  labels_ = found[1];
  scores_ = found[2];
  probabilities_ = producer_of(net.graph(), scores_).message.type() == "Softmax";
}

int64_t Mistakes::batch() const { return net_.graph().values[images_].shape[0]; }
int64_t Mistakes::records() const {
  const DataSource* const source = producer_of(net_.graph(), images_).layer->source();
  return source ? source->records() : 0;
}

void Mistakes::clear(int64_t earlier) {
  samples_.clear();
  earlier_ = earlier;
  wrong_ = tested_ = 0;
}

bool Mistakes::stays(double confidence) const {
  return samples_.size() < most_ || samples_.back().confidence < confidence;
}

void Mistakes::add() {
  const int64_t left = records() - earlier_ - tested_;
  const int64_t samples = records() > 0 ? std::min(batch(), left) : batch();
  if (samples <= 0) return;
  const std::vector<Value>& values = net_.graph().values;
  const auto floats = [&](const Tensor& tensor) { return to_floats(net_.context(), tensor); };
  const std::vector<float> labels = floats(net_.input(values[labels_].blob));
  const std::vector<float> scores = floats(net_.blob(values[scores_].blob));
  const int64_t classes = values[scores_].shape[1];
  const Shape& image = values[images_].shape;
  for (int64_t i = 0; i < samples; ++i) {
    const float* row = scores.data() + i * classes;
    const int64_t best = std::max_element(row, row + classes) - row;
    const auto label = static_cast<int64_t>(labels[i]);
    ++tested_;
    if (best == label) continue;
    ++wrong_;
    const double confidence = confidence_of(row, classes, best, probabilities_);
    if (!stays(confidence)) continue;
    const std::vector<float> pixels = floats(image_at(net_.input(values[images_].blob), i));
    Sample sample{picture_of(pixels.data(), {image[1], image[2], image[3]}, rgb_), label, best,
                  confidence};
    const auto at =
        std::upper_bound(samples_.begin(), samples_.end(), confidence,
                         [](double mine, const Sample& other) { return mine > other.confidence; });
    samples_.insert(at, std::move(sample));
    if (samples_.size() > most_) samples_.pop_back();
  }
}

// Pictures are large, so ranks first tell each other how sure their mistakes are: only those that
// stay are sent.
void Mistakes::drop_less_sure(Communicator& world) {
  struct OfRank {
    int rank;
    double confidence;
  };
  std::vector<double> confidences;
  for (const Sample& sample : samples_) confidences.push_back(sample.confidence);
  Packer packer;
  packer.add(confidences);
  std::vector<OfRank> all;
  int rank = 0;
  for (const std::string& bytes : world.gather(packer.bytes())) {
    Unpacker(bytes).get(confidences);
    for (const double confidence : confidences) all.push_back({rank, confidence});
    ++rank;
  }
  keep_surest(&all, most_);
  const auto kept = std::count_if(all.begin(), all.end(),
                                  [&](const OfRank& one) { return one.rank == world.rank; });
  samples_.resize(static_cast<size_t>(kept));
}

void Mistakes::merge(Communicator& world) {
  drop_less_sure(world);
  Packer packer;
  packer.add(wrong_, tested_, samples_.size());
  for (const Sample& sample : samples_) {
    const Picture& picture = sample.picture;
    packer.add(picture.width, picture.height, picture.channels, picture.bytes, sample.label,
               sample.predicted, sample.confidence);
  }
  clear();
  for (const std::string& bytes : world.gather(packer.bytes())) {
    Unpacker unpacker(bytes);
    int64_t wrong = 0, tested = 0;
    size_t count = 0;
    unpacker.get(wrong, tested, count);
    wrong_ += wrong;
    tested_ += tested;
    for (size_t i = 0; i < count; ++i) {
      Sample sample;
      Picture& picture = sample.picture;
      unpacker.get(picture.width, picture.height, picture.channels, picture.bytes, sample.label,
                   sample.predicted, sample.confidence);
      samples_.push_back(std::move(sample));
    }
    unpacker.end();
  }
  keep_surest(&samples_, most_);
}

event::Pictures Mistakes::pictures() const {
  event::Pictures shown{0, "mistakes", "", {}};
  shown.title = cat("Mistakes: ", wrong_, " of ", tested_,
                    " samples; the surest first, each with its label > the net's answer");
  for (const Sample& sample : samples_) {
    shown.pictures.push_back(sample.picture);
    shown.pictures.back().caption =
        cat(sample.label, " > ", sample.predicted, " ", std::lround(100 * sample.confidence), "%");
  }
  return shown;
}

}  // namespace crema
