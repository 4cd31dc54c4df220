#include "net/check/checked_net.h"

#include <algorithm>
#include <set>

#include "base/files.h"
#include "net/graph/filter.h"

namespace crema {
namespace {

template <typename Names>
bool has(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Layers whose top has the channels of their bottom.
bool keeps_channels(const std::string& type) {
  static const std::set<std::string> types = {"ReLU",    "PReLU", "Dropout", "BatchNorm", "Scale",
                                              "Bias",    "Power", "Pooling", "Sigmoid",   "TanH",
                                              "Softmax", "Crop",  "Interp"};
  return types.count(type) > 0;
}

}  // namespace

CheckedNet::CheckedNet(const NetFile& file, const NetState& state)
    : file_(file), training_(state.phase() == TRAIN) {
  net_ = filter_net(file_.net, state, silent_log(), &kept_,
                    [this](int layer) { return file_.where(layer); });
}

std::string CheckedNet::folder() const { return folder_of(file_.path); }

std::string CheckedNet::where(int layer, const std::string& field) const {
  return file_.where(kept_[layer], field);
}

std::vector<int> CheckedNet::readers_of(int layer, const std::string& top) const {
  std::vector<int> readers;
  for (int i = layer + 1; i < layers(); ++i) {
    if (has(this->layer(i).bottom(), top)) readers.push_back(i);
    if (has(this->layer(i).top(), top)) break;
  }
  return readers;
}

int CheckedNet::producer_of(int layer, const std::string& bottom) const {
  while (--layer >= 0 && !has(this->layer(layer).top(), bottom)) {
  }
  return layer;
}

bool CheckedNet::is_loss(int layer) const {
  const LayerParameter& message = this->layer(layer);
  if (message.loss_weight_size() == 0) return message.type().find("Loss") != std::string::npos;
  return std::any_of(message.loss_weight().begin(), message.loss_weight().end(),
                     [](float weight) { return weight != 0; });
}

int CheckedNet::scores_of(int layer, const std::string& bottom) const {
  const int producer = producer_of(layer, bottom);
  if (producer < 0) return -1;
  const LayerParameter& message = this->layer(producer);
  if (num_output(producer) > 0) return producer;
  if (!keeps_channels(message.type()) || message.bottom_size() == 0) return -1;
  return scores_of(producer, message.bottom(0));
}

// Only if they are the second axis.
int64_t CheckedNet::num_output(int layer) const {
  const LayerParameter& message = this->layer(layer);
  if (message.type() == "InnerProduct" && message.inner_product_param().axis() == 1)
    return message.inner_product_param().num_output();
  const bool convolves = message.type() == "Convolution" || message.type() == "Deconvolution";
  return convolves && message.convolution_param().axis() == 1
             ? message.convolution_param().num_output()
             : 0;
}

}  // namespace crema
