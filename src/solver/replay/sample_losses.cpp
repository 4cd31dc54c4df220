#include "solver/replay/sample_losses.h"

#include <algorithm>

#include "base/error.h"
#include "net/plan/plan.h"
#include "net/records.h"
#include "tensor/tensor.h"

namespace crema {
namespace {

constexpr int64_t kBoxValues = 8;  // image, class, instance, four corners, difficult

bool are_boxes(const Shape& shape) {
  return shape.axes() == 4 && shape[0] == 1 && shape[1] == 1 && shape[3] == kBoxValues;
}

// Those of one image, which becomes the first. One row of -1, as data layers write it, where there are none.
std::vector<float> boxes_of(const std::vector<float>& all, int64_t image) {
  std::vector<float> own;
  for (size_t row = 0; row + kBoxValues <= all.size(); row += kBoxValues) {
    if (all[row] != static_cast<float>(image)) continue;
    own.push_back(0);
    own.insert(own.end(), all.begin() + static_cast<std::ptrdiff_t>(row) + 1,
               all.begin() + static_cast<std::ptrdiff_t>(row) + kBoxValues);
  }
  if (own.empty()) own.assign(kBoxValues, -1);
  return own;
}

}  // namespace

// A net of one loss layer and its inputs, for one sample.
struct SampleLosses::Loss {
  std::vector<Bottom> bottoms;
  std::vector<std::string> names;
  std::unique_ptr<Net> net;
};

SampleLosses::SampleLosses(Net& net) : net_(net), samples_(batch_of(net)) {
  if (samples_ < 1 || net.dynamic()) {  // shapes that depend on data
    samples_ = 0;
    return;
  }
  for (const Node& node : net.graph().nodes) {
    const bool has_loss = std::any_of(node.tops.begin(), node.tops.end(), [&](int top) {
      return net.graph().values[top].loss_weight != 0;
    });
    if (!has_loss) continue;
    const std::vector<Bottom> bottoms = bottoms_of(node);
    if (bottoms.empty() || !node.parameters.empty()) {
      losses_.clear();
      break;
    }
    add(node, bottoms);
    if (losses_.empty()) break;
  }
  if (losses_.empty()) samples_ = 0;
}

SampleLosses::~SampleLosses() = default;

// Empty: one of them cannot be divided.
std::vector<SampleLosses::Bottom> SampleLosses::bottoms_of(const Node& node) const {
  std::vector<Bottom> bottoms;
  bool any = false;
  for (const int value : node.bottoms) {
    const Shape& shape = net_.graph().values[value].shape;
    if (shape.axes() == 0) return {};
    const Part part = shape[0] == samples_ && samples_ > 1 ? Part::sample
                      : are_boxes(shape)                   ? Part::boxes
                      : shape[0] == samples_               ? Part::sample
                                                           : Part::whole;
    if (part == Part::whole && shape[0] != 1) return {};
    any |= part != Part::whole;
    bottoms.push_back({value, part});
  }
  return any ? bottoms : std::vector<Bottom>{};
}

void SampleLosses::add(const Node& node, const std::vector<Bottom>& bottoms) {
  auto loss = std::make_unique<Loss>();
  loss->bottoms = bottoms;
  NetParameter text;
  LayerParameter layer = node.message;
  layer.clear_bottom();
  layer.clear_top();
  layer.clear_include();
  layer.clear_exclude();
  for (size_t i = 0; i < bottoms.size(); ++i) {
    loss->names.push_back(cat("bottom", i));
    LayerParameter& input = *text.add_layer();
    input.set_name(loss->names.back());
    input.set_type("Input");
    input.add_top(loss->names.back());
    Shape shape = net_.graph().values[bottoms[i].value].shape;
    if (bottoms[i].part == Part::sample) shape[0] = 1;
    if (bottoms[i].part == Part::boxes) shape[2] = 1;
    BlobShape& stored = *input.mutable_input_param()->add_shape();
    for (const int64_t extent : shape.dims()) stored.add_dim(extent);
    layer.add_bottom(loss->names.back());
  }
  for (size_t i = 0; i < node.tops.size(); ++i) layer.add_top(cat("top", i));
  *text.add_layer() = layer;
  NetOptions options;
  options.state.set_phase(TRAIN);
  options.forward_only = options.row_major = true;
  options.folder = net_.options().folder;
  try {
    loss->net = std::make_unique<Net>(net_.context(), text, options);
    losses_.push_back(std::move(loss));
  } catch (const DeviceLost&) {
    throw;
  } catch (const Error&) {  // one that needs a batch
    losses_.clear();
  }
}

std::vector<double> SampleLosses::losses() {
  std::vector<double> sums(static_cast<size_t>(samples_));
  for (const std::unique_ptr<Loss>& loss : losses_) {
    std::vector<std::vector<float>> values;
    for (const Bottom& bottom : loss->bottoms)
      values.push_back(to_floats(net_.context(), net_.plan().value(bottom.value)));
    for (int64_t sample = 0; sample < samples_; ++sample) {
      for (size_t i = 0; i < values.size(); ++i) {
        const Part part = loss->bottoms[i].part;
        const std::string& name = loss->names[i];
        if (part == Part::boxes) {
          const std::vector<float> boxes = boxes_of(values[i], sample);
          loss->net->reshape(name, {1, 1, std::ssize(boxes) / kBoxValues, kBoxValues});
          loss->net->set_input(name, boxes.data());
        } else {
          const int64_t each = std::ssize(values[i]) / (part == Part::sample ? samples_ : 1);
          const int64_t first = part == Part::sample ? sample * each : 0;
          loss->net->set_input(name, values[i].data() + first);
        }
      }
      loss->net->forward(0);
      sums[static_cast<size_t>(sample)] += loss->net->loss();
    }
  }
  return sums;
}

}  // namespace crema
