// Which parameters of a net are which tensors of PyTorch's modules, for both directions of
// `crema convert_weights`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "net/net.h"
#include "net/weights/weight_names.h"

namespace crema {

// A tensor of a state_dict and the parameter that has its values.
struct TorchSlot {
  std::string tensor;                       // "layer1.0.bn1.running_mean"
  int layer = 0;                            // index in net.graph().net
  int index = 0;                            // which parameter of the layer
  int leading_ones = 0, trailing_ones = 0;  // extents that only the tensor has
  int part = 0, parts = 1;                  // which part of the tensor's rows
};

// The tensors of a module, or of a layer that PyTorch keeps in another way: NAME.0, NAME.1, ...
struct TorchModule {
  int layer = 0;
  // A BatchNorm: its third parameter, the number by which Caffe divides the statistics, is in no tensor.
  bool norm = false;
  std::vector<TorchSlot> slots;
};

// The module of a pair. `has`: whether the file has a tensor, which decides for the net's own names
// between PyTorch's tensors and numbers; null: PyTorch's wherever it has such a module. Error, with the
// position of the pair, if the net has no such layer, or PyTorch no such module.
TorchModule torch_module(const Net& net, const WeightNames& names, const WeightNames::Pair& pair,
                         const std::function<bool(const std::string& tensor)>& has);

// The pairs of a file whose modules have the names of the net's layers.
WeightNames own_names(const Net& net);

// "conv1[0]".
std::string shown_parameter(const Net& net, const TorchSlot& slot);

}  // namespace crema
