// PyTorch's weights for a net: by a map of names, with what PyTorch keeps elsewhere or in other units
// brought to where Caffe has it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "net/net.h"
#include "net/weights/tensor_file.h"
#include "net/weights/weight_names.h"

namespace crema {

// The blob of images and what the net's data layer does to pixels: (x - mean) * scale, in the order
// B, G, R.
struct TorchInput {
  std::string blob;
  std::vector<float> mean;
  float scale = 1;
  std::string where;
};

struct TorchReport {
  struct Row {
    std::string from, to, shape;  // "layer1.0.conv1.weight", "res2a_branch2a[0]", "64x64x1x1"
  };
  std::vector<Row> rows;
  std::vector<std::string> unused;  // of the file: num_batches_tracked
  std::vector<std::string> notes;   // what was done to the layers that read the images
};

// Sets all parameters of the net. A batch normalization's weight and bias go to the Scale after its
// BatchNorm layer; the means, deviations and channel order of `names` go into the convolutions that
// read `input`. Error for tensors that are missing, are left over or have other shapes, and for a
// net that does not compute what the file's did (eps of BatchNorm).
TorchReport load_torch_weights(Net& net, const TensorFile& file, const WeightNames& names,
                               const std::optional<TorchInput>& input);

// The pairs of a file whose modules have the names of the net's layers.
WeightNames own_names(const Net& net);

}  // namespace crema
