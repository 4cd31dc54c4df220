// Which blobs of a stored RBM (layers/loss/rbm_layer.cu) a layer takes.
#pragma once

#include <vector>

#include "net/weights/wire_reader.h"
#include "proto/layer.pb.h"
#include "tensor/shape.h"

namespace crema {

// Weights, hidden bias, visible bias and perhaps the state of Gibbs chains.
inline bool are_of_machine(const std::vector<StoredBlob>& blobs) {
  if (blobs.size() != 3 && blobs.size() != 4) return false;
  const std::vector<int64_t>&w = blobs[0].shape, &b = blobs[1].shape, &a = blobs[2].shape;
  return w.size() == 2 && b == std::vector<int64_t>{w[0]} && a == std::vector<int64_t>{w[1]};
}

// An InnerProduct takes weights and bias of the hidden units. An RBM without chains omits their
// state, and so does one with a different number of them, whose chains start over.
inline void leave_out_blobs(const LayerParameter& layer, std::vector<StoredBlob>* blobs) {
  if (!are_of_machine(*blobs)) return;
  const RBMParameter& rbm = layer.rbm_param();
  if (layer.type() == "InnerProduct") {
    blobs->resize(layer.inner_product_param().bias_term() ? 2 : 1);
  } else if (layer.type() == "RBM" && blobs->size() == 4 &&
             blobs->back().shape !=
                 std::vector<int64_t>{rbm.persistent_chains(), rbm.num_output()}) {
    blobs->pop_back();
  }
}

// Whether the stored RBM lacks nothing but the state of chains, which then start over.
inline bool lacks_only_chains(const LayerParameter& layer, const std::vector<StoredBlob>& blobs) {
  return layer.type() == "RBM" && layer.rbm_param().persistent_chains() > 0 && blobs.size() == 3 &&
         are_of_machine(blobs);
}

}  // namespace crema
