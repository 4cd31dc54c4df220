// Fields of forks that say what Caffe's own fields say, and V1 names of their layers.
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "net/prototxt/prototxt.h"
#include "support.h"

namespace crema::tests {
namespace upgrade_forks_test {

// Forks' own fields, and Caffe's words for them.
TEST(UpgradeForks, ReadsWhatTheyNameOtherwise) {
  struct Row {
    const char *fork, *caffe;  // or the problem
  };
  const Row rows[] = {
      {"layer { type: \"Convolution\" convolution_param { kernel_size: 3 hole: 4 } }",
       "layer { type: \"Convolution\" convolution_param { kernel_size: 3 dilation: 4 } }"},
      {"layer { type: \"Convolution\" convolution_param { hole_h: 2 hole_w: 3 } }",
       "layer { type: \"Convolution\" convolution_param { dilation: 2 dilation: 3 } }"},
      {"layer { type: \"Deconvolution\" convolution_param { hole: 2 hole_w: 3 } }",
       "layer { type: \"Deconvolution\" convolution_param { dilation: 2 dilation: 3 } }"},
      {"layer { type: \"SoftmaxWithLoss\" softmax_loss_param { ignore_label: 255 } }",
       "layer { type: \"SoftmaxWithLoss\" loss_param { ignore_label: 255 } }"},
      {"layers { type: SOFTMAX_LOSS softmaxloss_param { ignore_label: 255 } }",
       "layer { type: \"SoftmaxWithLoss\" loss_param { ignore_label: 255 } }"},
      {"layer { type: \"BN\" bn_param { var_eps: 0.25 decay: 0.25 } }",
       "layer { type: \"BN\" bn_param { eps: 0.25 momentum: 0.75 } }"},
      {"layers { type: IMAGE_SEG_DATA image_data_param { has_label: false } }",
       "layer { type: \"ImageSegData\" image_data_param { has_label: false label_type: NONE } }"},
      {"layer { name: \"n\" type: \"LRN\" bottom: \"x\" top: \"y\" include { phase: TEST } "
       "lrn_param { "
       "alpha: 2 fuse_type: FUSED_POOL_MAX pooling_param { kernel_size: 3 stride: 2 } } }",
       "layer { name: \"n\" type: \"LRN\" bottom: \"x\" top: \"n/lrn\" include { phase: TEST } "
       "lrn_param { "
       "alpha: 2 } } layer { name: \"n/pool\" type: \"Pooling\" bottom: \"n/lrn\" top: \"y\" "
       "include { "
       "phase: TEST } pooling_param { pool: MAX kernel_size: 3 stride: 2 } }"},
      {"layer { type: \"LRN\" lrn_param { fuse_type: UNFUSED } }",
       "layer { type: \"LRN\" lrn_param { } }"},
      {"layers { name: \"m\" type: MAT_WRITE bottom: \"x\" mat_write_param { prefix: \"p\" } }",
       "layer { name: \"m\" type: \"MatWrite\" bottom: \"x\" mat_write_param { prefix: \"p\" } }"},
      {"layers { type: INTERP interp_param { shrink_factor: 8 } }",
       "layer { type: \"Interp\" interp_param { shrink_factor: 8 } }"},
      {"layers { type: SEG_ACCURACY seg_accuracy_param { ignore_label: 255 } }",
       "layer { type: \"SegAccuracy\" seg_accuracy_param { ignore_label: 255 } }"},
      {"layer { type: \"DeformableConvolution\" deformable_convolution_param { num_output: 2 "
       "deformable_group: 4 } }",
       "layer { type: \"DeformableConvolution\" convolution_param { num_output: 2 "
       "deformable_group: 4 } }"},
      {"layer { type: \"ReorgYolo\" reorg_yolo_param { stride: 2 } }",
       "layer { type: \"Reorg\" reorg_param { stride: 2 } }"},
      {"layer { type: \"Eltwise\" bottom: \"x\" eltwise_param { coeff: 0.5 } }",
       "layer { type: \"Power\" bottom: \"x\" power_param { scale: 0.5 } }"},
      {"layer { type: \"Eltwise\" bottom: \"x\" eltwise_param { operation: MAX } }",
       "layer { type: \"Power\" bottom: \"x\" }"},
      {"layer { type: \"Eltwise\" bottom: \"x\" bottom: \"y\" eltwise_param { operation: MAX } }",
       "layer { type: \"Eltwise\" bottom: \"x\" bottom: \"y\" eltwise_param { operation: MAX } }"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.fork);
    EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(
        parse_net_text(row.fork, "f").net, parse_net_text(row.caffe, "f").net))
        << parse_net_text(row.fork, "f").net.DebugString();
  }
  const Row refused[] = {
      {"layer { type: \"Convolution\" convolution_param { hole: 2 dilation: 2 } }",
       "f:1:1: layer \"\": convolution_param: has `dilation` and `hole`"},
      {"layer { type: \"SoftmaxWithLoss\" softmax_loss_param { weight_source: \"w\" } }",
       "write the factors as loss_param { weight_by_label_freqs: true class_weighting: ... }"},
      {"layer { type: \"SoftmaxWithLoss\" softmax_loss_param { ignore_label: 0 ignore_label: 255 } "
       "}",
       "there are 2 ignored labels, but a loss ignores one"},
      {"layer { type: \"BN\" bn_param { axis: 2 } }", "axis is 2, but BN takes axis 1"},
      {"layer { type: \"Interp\" interp_param { interp_type: \"nearest_neighbor\" } }",
       "interp_type is \"nearest_neighbor\", but Interp is bilinear"},
      {"layer { type: \"DeformableConvolution\" deformable_convolution_param { } "
       "deformable_convolution_param { } }",
       "deformable_convolution_param is given 2 times; a layer has one"},
  };
  for (const Row& row : refused)
    expect_part(error_of([&] { parse_net_text(row.fork, "f"); }), row.caffe);
}

}  // namespace upgrade_forks_test
}  // namespace crema::tests
