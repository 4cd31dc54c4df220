// The steps of upgrade_net that rewrite layers.
#pragma once

#include <string>
#include <vector>

#include "net/prototxt/upgrade.h"

namespace crema {

// V0 -> V1; merges padding layers into the layers that read them. Returns one line for each field
// that its layer's type never had (it is dropped, as in Caffe). Removes the padding layers from
// `origins`.
std::vector<std::string> upgrade_v0_layers(NetParameter* net, std::vector<std::string>* origins,
                                           const Locate& where);

// V1 data layers: scale, mean_file, crop_size, mirror -> transform_param. The first layer that had any; -1: none.
int move_transform_fields(NetParameter* net);

// V1 -> today's layers.
void upgrade_v1_layers(NetParameter* net);

// Splits layers that contain others (fuse_type, relu: true) into the layer and those after it. In
// `origins` each of these has the layer's block.
void unfold_layers(NetParameter* net, std::vector<std::string>* origins, const Locate& where);

// Fields by which forks say what Caffe's own fields say: hole is dilation.
void rename_fork_fields(NetParameter* net, const std::vector<std::string>& origins,
                        const Locate& where);

// Today's name of a V1 type: SOFTMAX_LOSS -> "SoftmaxWithLoss".
std::string layer_type(V1LayerParameter::LayerType type);
// Today's name of a V0 type: "innerproduct" -> "InnerProduct"; "" when there is none.
std::string layer_type(const std::string& v0_type);

}  // namespace crema
