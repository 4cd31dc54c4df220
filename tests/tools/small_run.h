// A run of 30 iterations on a few small pictures, and what is said of it.
#pragma once

#include <string>

#include "tools/program.h"

namespace crema::tests::small_run {

inline constexpr const char* kBits = "are those of the run, bit for bit";

inline const std::string kData =
    "layer { name: \"data\" type: \"Data\" top: \"data\" top: \"label\" data_param { source: "
    "\"records\" backend: LMDB "
    "batch_size: 5 shuffle: true } transform_param { mirror: true crop_size: 5 scale: 0.004 } }\n";
inline const std::string kHead =
    "layer { name: \"conv\" type: \"Convolution\" bottom: \"data\" top: \"conv\" convolution_param "
    "{ num_output: 6 kernel_size: 3 "
    "weight_filler { type: \"xavier\" } } }\n"
    "layer { name: \"relu\" type: \"ReLU\" bottom: \"conv\" top: \"conv\" }\n";
inline const std::string kTail =
    "layer { name: \"drop\" type: \"Dropout\" bottom: \"conv\" top: \"conv\" }\n"
    "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"conv\" top: \"ip\" inner_product_param "
    "{ num_output: 21 weight_filler { "
    "type: \"xavier\" } } }\n"
    "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"ip\" bottom: \"label\" top: "
    "\"loss\" }\n";
inline const std::string kSmallNet = kData + kHead + kTail;
inline const std::string kNorm =
    "layer { name: \"norm\" type: \"BatchNorm\" bottom: \"conv\" top: \"conv\" batch_norm_param { "
    "scale_bias: true } }\n";

inline const std::string kRates =
    "base_lr: 0.05 momentum: 0.9 lr_policy: \"step\" gamma: 0.5 stepsize: 7\n";

inline void prepare(const Folder& folder, const std::string& net, const std::string& solver) {
  folder.write("net.prototxt", "name: \"small\"\n" + net);
  folder.copy_golden("formats/lmdb_raw", "records");
  folder.write(
      "solver.prototxt",
      "net: \"net.prototxt\" display: 3 max_iter: 30 snapshot: 8 snapshot_prefix: \"s\"\n" +
          solver);
}

inline std::string everything(const Outcome& outcome) { return outcome.out + outcome.err; }

inline constexpr const char* kTrain =
    "crema train -solver solver.prototxt -run r -set random_seed=1 ";

}  // namespace crema::tests::small_run
