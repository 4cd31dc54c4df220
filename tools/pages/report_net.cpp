#include "tools/pages/report_net.h"

#include <algorithm>
#include <cmath>

#include "solver/readers/bitmap.h"
#include "tools/random_inputs.h"

namespace crema {

namespace {

constexpr int64_t max_filters = 64;
constexpr size_t max_mistakes = 40;
constexpr int64_t usual_batches = 50;

// The images of a net: the first top of a layer without bottoms that has channels, height and
// width; -1: none.
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
  int labels = -1, scores = -1;  // values of the graph
};

// Finds labels from a layer without bottoms, and the scores that a metric or a loss compares with
// them.
Judged find_scores(const Graph& graph) {
  Judged judged;
  for (const Node& node : graph.nodes) {
    const bool measures = node.message.type() == "Accuracy";
    if (node.bottoms.size() < 2 || (!measures && !node.layer->is_loss())) continue;
    const int labels = node.bottoms[1], scores = node.bottoms[0];
    const bool given =
        graph.nodes[graph.values[labels].producer].bottoms.empty() && classes_of(graph, labels) > 0;
    const bool one_each =
        graph.values[scores].shape.axes() >= 2 && graph.values[scores].shape.count(2) == 1;
    if (given && one_each && (judged.scores < 0 || measures)) judged = {labels, scores};
  }
  return judged;
}

// The probability of the net's answer: the softmax of its scores, unless they are probabilities.
double confidence_of(const float* scores, int64_t classes, int64_t best, bool probabilities) {
  if (probabilities) return scores[best];
  double sum = 0;
  for (int64_t c = 0; c < classes; ++c)
    sum += std::exp(static_cast<double>(scores[c]) - scores[best]);
  return 1 / sum;
}

void keep_surest(std::vector<Mistake>& mistakes) {
  std::stable_sort(mistakes.begin(), mistakes.end(),
                   [](const Mistake& a, const Mistake& b) { return a.confidence > b.confidence; });
  if (mistakes.size() > max_mistakes) mistakes.resize(max_mistakes);
}

}  // namespace

void add_filters(Net& net, Report* report) {
  const Graph& graph = net.graph();
  const int images = find_images(graph);
  for (const Node& node : graph.nodes) {
    if (node.parameters.empty()) continue;
    const Parameter& weights = graph.parameters[node.parameters[0]];
    Shape shape = weights.shape;
    const bool reads_images =
        node.message.type() == "InnerProduct" && images >= 0 && node.bottoms[0] == images;
    if (reads_images) {
      const Shape& image = graph.values[images].shape;
      if (shape.axes() != 2 || shape[1] != image.count(1)) return;
      shape = {shape[0], image[1], image[2], image[3]};
    } else if (node.message.type() != "Convolution" || shape.axes() != 4) {
      continue;
    }
    const int64_t shown = std::min(shape[0], max_filters);
    const std::vector<float> values = to_floats(net.context(), weights.data);
    for (int64_t i = 0; i < shown; ++i) {
      report->filters.push_back(picture(values.data() + i * shape.count(1),
                                        static_cast<int>(shape[1]), static_cast<int>(shape[2]),
                                        static_cast<int>(shape[3])));
    }
    report->filters_title = cat("First layer: ", node.message.name(),
                                shown < shape[0] ? cat(", the first ", shown, " of ") : ", ",
                                shape[0], " filters of ", shape[2], " × ", shape[3]);
    return;
  }
}

void add_mistakes(Net& net, int batches, Report* report) {
  const Graph& graph = net.graph();
  const int images = find_images(graph);
  const Judged judged = find_scores(graph);
  if (images < 0 || judged.scores < 0) return;
  const auto source = [&](int value) -> const Node& {
    return graph.nodes[graph.values[value].producer];
  };
  if (source(images).message.type() == "Input" || source(judged.labels).message.type() == "Input")
    return;
  const auto floats = [&](const Tensor& tensor) { return to_floats(net.context(), tensor); };
  const Shape& image = graph.values[images].shape;
  const int64_t samples = image[0], classes = graph.values[judged.scores].shape[1];
  const bool probabilities =
      graph.nodes[graph.values[judged.scores].producer].message.type() == "Softmax";
  const int64_t records = source(images).layer->records();
  int64_t left = records > 0 ? records : usual_batches * samples;
  if (batches > 0) left = std::min(left, batches * samples);
  // After its last record a source starts over: of the last batch only the first samples count.
  for (int64_t batch = 0; left > 0; ++batch, left -= samples) {
    net.forward(static_cast<uint64_t>(batch));
    const std::vector<float> pixels = floats(net.input(graph.values[images].blob));
    const std::vector<float> labels = floats(net.input(graph.values[judged.labels].blob));
    const std::vector<float> scores = floats(net.blob(graph.values[judged.scores].blob));
    for (int64_t i = 0; i < std::min(samples, left); ++i) {
      const float* row = scores.data() + i * classes;
      const int64_t best = std::max_element(row, row + classes) - row;
      ++report->tested;
      if (best == static_cast<int64_t>(labels[i])) continue;
      ++report->wrong;
      report->mistakes.push_back(
          {picture(pixels.data() + i * image.count(1), static_cast<int>(image[1]),
                   static_cast<int>(image[2]), static_cast<int>(image[3])),
           static_cast<int64_t>(labels[i]), best,
           confidence_of(row, classes, best, probabilities)});
    }
    keep_surest(report->mistakes);
  }
}

}  // namespace crema
