#include "net/check/checked_net.h"

#include <algorithm>

#include "base/files.h"
#include "layers/layer_facts.h"
#include "net/graph/filter.h"

namespace crema {
namespace {

template <typename Names>
bool has(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

CheckedNet::CheckedNet(std::shared_ptr<const NetFile> file, const NetState& state)
    : file_(std::move(file)), training_(state.phase() == TRAIN) {
  net_ = filter_net(file_->net, state, silent_log(), &kept_,
                    [this](int layer) { return file_->where(layer); });
}

std::string CheckedNet::folder() const { return folder_of(file_->path); }

std::string CheckedNet::where(int layer, const std::string& field) const {
  return file_->where(kept_[layer], field);
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
  if (message.loss_weight_size() == 0) return facts_of(message.type()).kind == LayerKind::loss;
  return std::any_of(message.loss_weight().begin(), message.loss_weight().end(),
                     [](float weight) { return weight != 0; });
}

int CheckedNet::scores_of(int layer, const std::string& bottom) const {
  const int producer = producer_of(layer, bottom);
  if (producer < 0) return -1;
  const LayerParameter& message = this->layer(producer);
  if (num_output(producer) > 0) return producer;
  const LayerFacts facts = facts_of(message.type());
  // A sum has the channels of each of its bottoms.
  if (!facts.keeps_channels || facts.kind == LayerKind::join || message.bottom_size() == 0)
    return -1;
  return scores_of(producer, message.bottom(0));
}

// Only if they are the second axis.
int64_t CheckedNet::num_output(int layer) const {
  const LayerParameter& message = this->layer(layer);
  const InnerProductParameter& dense = message.inner_product_param();
  const ConvolutionParameter& convolution = message.convolution_param();
  const std::string params = weight_params(layer);
  if (params == "inner_product_param") return dense.axis() == 1 ? dense.num_output() : 0;
  if (params == "convolution_param") return convolution.axis() == 1 ? convolution.num_output() : 0;
  return 0;
}

std::string CheckedNet::weight_params(int layer) const {
  const LayerParameter& message = this->layer(layer);
  const LayerKind kind = facts_of(message.type()).kind;
  if (kind == LayerKind::dense && message.has_inner_product_param()) return "inner_product_param";
  return kind == LayerKind::convolution && message.has_convolution_param() ? "convolution_param"
                                                                           : "";
}

}  // namespace crema
