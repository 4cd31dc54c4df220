#include "tools/lsp/snippets.h"

namespace crema {

const std::vector<Snippet>& snippets() {
  static const std::vector<Snippet> all = {
      {"conv", "Convolution", R"(layer {
  name: "${1:conv1}"
  type: "Convolution"
  bottom: "${2:BLOB}"
  top: "${1:conv1}"
  convolution_param {
    num_output: ${3:64}
    kernel_size: ${4:3}
    pad: ${5:1}
    weight_filler { type: "msra" }
  }
}
)"},
      {"conv-relu", "Convolution, ReLU", R"(layer {
  name: "${1:conv1}"
  type: "Convolution"
  bottom: "${2:BLOB}"
  top: "${1:conv1}"
  convolution_param {
    num_output: ${3:64}
    kernel_size: ${4:3}
    pad: ${5:1}
    weight_filler { type: "msra" }
  }
}
layer {
  name: "${1:conv1}_relu"
  type: "ReLU"
  bottom: "${1:conv1}"
  top: "${1:conv1}"
}
)"},
      {"conv-bn-scale-relu", "Convolution, BatchNorm, Scale, ReLU", R"(layer {
  name: "${1:conv1}"
  type: "Convolution"
  bottom: "${2:BLOB}"
  top: "${1:conv1}"
  convolution_param {
    num_output: ${3:64}
    kernel_size: ${4:3}
    pad: ${5:1}
    bias_term: false
    weight_filler { type: "msra" }
  }
}
layer {
  name: "${1:conv1}_bn"
  type: "BatchNorm"
  bottom: "${1:conv1}"
  top: "${1:conv1}"
}
layer {
  name: "${1:conv1}_scale"
  type: "Scale"
  bottom: "${1:conv1}"
  top: "${1:conv1}"
  scale_param { bias_term: true }
}
layer {
  name: "${1:conv1}_relu"
  type: "ReLU"
  bottom: "${1:conv1}"
  top: "${1:conv1}"
}
)"},
      {"pool", "Pooling", R"(layer {
  name: "${1:pool1}"
  type: "Pooling"
  bottom: "${2:BLOB}"
  top: "${1:pool1}"
  pooling_param {
    pool: ${3:MAX}
    kernel_size: ${4:2}
    stride: ${5:2}
  }
}
)"},
      {"fc-relu-dropout", "InnerProduct, ReLU, Dropout", R"(layer {
  name: "${1:fc1}"
  type: "InnerProduct"
  bottom: "${2:BLOB}"
  top: "${1:fc1}"
  inner_product_param {
    num_output: ${3:512}
    weight_filler { type: "xavier" }
  }
}
layer {
  name: "${1:fc1}_relu"
  type: "ReLU"
  bottom: "${1:fc1}"
  top: "${1:fc1}"
}
layer {
  name: "${1:fc1}_drop"
  type: "Dropout"
  bottom: "${1:fc1}"
  top: "${1:fc1}"
  dropout_param { dropout_ratio: ${4:0.5} }
}
)"},
      {"loss-accuracy", "InnerProduct, SoftmaxWithLoss, Accuracy in tests", R"(layer {
  name: "${1:scores}"
  type: "InnerProduct"
  bottom: "${2:BLOB}"
  top: "${1:scores}"
  inner_product_param {
    num_output: ${3:10}
    weight_filler { type: "xavier" }
  }
}
layer {
  name: "loss"
  type: "SoftmaxWithLoss"
  bottom: "${1:scores}"
  bottom: "label"
  top: "loss"
}
layer {
  name: "accuracy"
  type: "Accuracy"
  bottom: "${1:scores}"
  bottom: "label"
  top: "accuracy"
  include { phase: TEST }
}
)"},
      {"data-lmdb", "Data from LMDB, for training and tests", R"(layer {
  name: "data"
  type: "Data"
  top: "data"
  top: "label"
  include { phase: TRAIN }
  transform_param {
    mirror: true
    crop_size: ${3:224}
    mean_value: [${4:104, 117, 123}]
    scale: ${7:0.017}
  }
  data_param {
    source: "${1:train_lmdb}"
    backend: LMDB
    batch_size: ${5:64}
  }
}
layer {
  name: "data"
  type: "Data"
  top: "data"
  top: "label"
  include { phase: TEST }
  transform_param {
    crop_size: ${3:224}
    mean_value: [${4:104, 117, 123}]
    scale: ${7:0.017}
  }
  data_param {
    source: "${2:val_lmdb}"
    backend: LMDB
    batch_size: ${6:50}
  }
}
)"},
      {"data-images", "ImageData from a list", R"(layer {
  name: "data"
  type: "ImageData"
  top: "data"
  top: "label"
  transform_param {
    mirror: true
    crop_size: ${2:224}
    mean_value: [${6:104, 117, 123}]
    scale: ${7:0.017}
  }
  image_data_param {
    source: "${1:train.txt}"
    batch_size: ${3:64}
    new_height: ${4:256}
    new_width: ${5:256}
    shuffle: true
  }
}
)"},
      {"data-hdf5", "HDF5Data from a list of files", R"(layer {
  name: "data"
  type: "HDF5Data"
  top: "data"
  top: "label"
  hdf5_data_param {
    source: "${1:train.txt}"
    batch_size: ${2:64}
    shuffle: true
  }
}
)"},
      {"input", "Input, of a net for use", R"(layer {
  name: "data"
  type: "Input"
  top: "data"
  input_param { shape { dim: ${1:1} dim: ${2:3} dim: ${3:224} dim: ${4:224} } }
}
)"},
      {"solver-sgd", "a solver: SGD with momentum", R"(net: "${1:train_val.prototxt}"
test_iter: ${2:100}
test_interval: ${3:1000}
base_lr: ${4:0.01}
momentum: 0.9
weight_decay: ${5:0.0005}
lr_policy: "poly"
power: 1
max_iter: ${6:100000}
display: 100
snapshot: ${7:10000}
snapshot_prefix: "${8:net}"
)",
       true},
      {"solver-adam", "a solver: Adam", R"(net: "${1:train_val.prototxt}"
type: "Adam"
test_iter: ${2:100}
test_interval: ${3:1000}
base_lr: ${4:0.001}
momentum: 0.9
momentum2: 0.999
lr_policy: "fixed"
max_iter: ${5:100000}
display: 100
snapshot: ${6:10000}
snapshot_prefix: "${7:net}"
)",
       true},
  };
  return all;
}

}  // namespace crema
