// PyTorch's weights for a net, and a net's for PyTorch: by a map of names, with what PyTorch keeps
// elsewhere or in other units brought to where Caffe has it.
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
  std::vector<std::string>
      unused;  // num_batches_tracked, which no net here has, and WeightNames::left_out
  std::vector<std::string> notes;  // what was done to the layers that read the images
};

// Sets all parameters of the net. A batch normalization's weight and bias go to the Scale after its
// BatchNorm layer; the means, deviations and channel order of `names` go into the convolutions that
// read `input`. Error for tensors that are missing, are left over or have other shapes, and for a
// net that does not compute what the file's did (eps of BatchNorm).
TorchReport load_torch_weights(Net& net, const TensorFile& file, const WeightNames& names,
                               const std::optional<TorchInput>& input);

// Writes all parameters of the net as a state_dict, in a safetensors file: the inverse of
// load_torch_weights(). With num_batches_tracked of 0, which PyTorch's state_dicts have. Error for
// parameters that no pair names, and for a layer that PyTorch has in no such form.
TorchReport save_torch_weights(Net& net, const WeightNames& names,
                               const std::optional<TorchInput>& input, const std::string& path);

}  // namespace crema
