// CheckedNet: a net in one phase, as its layers say it, and who writes and reads its blobs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "net/prototxt/prototxt.h"

namespace crema {

class CheckedNet {
 public:
  // Error for rules that contradict each other.
  CheckedNet(const NetFile& file, const NetState& state)
      : CheckedNet(std::make_shared<const NetFile>(file), state) {}
  CheckedNet(std::shared_ptr<const NetFile> file, const NetState& state);

  const NetParameter& net() const { return net_; }  // without the layers of other phases
  const LayerParameter& layer(int i) const { return net_.layer(i); }
  int layers() const { return net_.layer_size(); }
  bool training() const { return training_; }
  std::string folder() const;
  std::string where(int layer, const std::string& field) const;

  // The layers that read this top before another layer overwrites the blob.
  std::vector<int> readers_of(int layer, const std::string& top) const;
  // The layer that wrote what `layer` reads as `bottom`; -1: none.
  int producer_of(int layer, const std::string& bottom) const;
  // Whether the layer is part of the loss.
  bool is_loss(int layer) const;
  // The layer with a num_output that determines the channels of `bottom`; -1: unknown.
  int scores_of(int layer, const std::string& bottom) const;
  int64_t num_output(int layer) const;
  // The field with num_output and weight_filler, "convolution_param" or "inner_product_param"; "":
  // the layer has neither.
  std::string weight_params(int layer) const;

 private:
  std::shared_ptr<const NetFile> file_;
  bool training_;
  NetParameter net_;
  std::vector<int> kept_;
};

}  // namespace crema
