// Names of fields in other frameworks.
#include "net/prototxt/other_field_names.h"

#include <gtest/gtest.h>

#include "proto/net.pb.h"
#include "proto/solver.pb.h"

namespace crema::tests {
namespace other_field_names_test {

struct OtherName {
  const char* block;  // a field of LayerParameter, "layer", "net" or "solver"
  const char* word;
  const char* suggestion;
};

const google::protobuf::Descriptor& type_of(const std::string& block) {
  if (block == "layer") return *LayerParameter::descriptor();
  if (block == "net") return *NetParameter::descriptor();
  if (block == "solver") return *SolverParameter::descriptor();
  return *LayerParameter::descriptor()->FindFieldByName(block)->message_type();
}

TEST(OtherFieldNames, OfPyTorchAndKeras) {
  const OtherName rows[] = {
      {"convolution_param", "kernel", "(did you mean \"kernel_size\"?)"},
      {"convolution_param", "kernelSize", "(did you mean \"kernel_size\"?)"},
      {"convolution_param", "filters", "(did you mean \"num_output\"?)"},
      {"convolution_param", "out_channels", "(did you mean \"num_output\"?)"},
      {"convolution_param", "padding", "(did you mean \"pad\"? A number: 1 keeps the size"},
      {"convolution_param", "use_bias", "(did you mean \"bias_term\"?)"},
      {"convolution_param", "activation", "; an activation is a layer of its own: layer {"},
      {"convolution_param", "in_channels", "; the size of the bottom is known: remove it"},
      {"inner_product_param", "units", "(did you mean \"num_output\"?)"},
      {"inner_product_param", "kernel_initializer", "(did you mean \"weight_filler\"?)"},
      {"pooling_param", "pool_size", "(did you mean \"kernel_size\"?)"},
      {"pooling_param", "type", "(did you mean \"pool\"? MAX or AVE)"},
      {"dropout_param", "rate", "(did you mean \"dropout_ratio\"?)"},
      {"batch_norm_param", "momentum", "(did you mean \"moving_average_fraction\"? The share"},
      {"batch_norm_param", "affine", "; a Scale layer with bias_term: true follows"},
      {"data_param", "path", "(did you mean \"source\"?)"},
      {"data_param", "batch", "(did you mean \"batch_size\"?)"},
      {"transform_param", "horizontal_flip", "(did you mean \"mirror\"?)"},
      {"concat_param", "dim", "(did you mean \"axis\"?)"},
      {"layer", "inputs", "(did you mean \"bottom\"?)"},
      {"layer", "Type", "(did you mean \"type\"?)"},
      {"layer", "trainable", "; param { lr_mult: 0 } keeps"},
      {"net", "Layer", "(did you mean \"layer\"?)"},
      {"net", "batch_size", "; the data layers have it"},
      {"solver", "lr", "(did you mean \"base_lr\"?)"},
      {"solver", "learning_rate", "(did you mean \"base_lr\"?)"},
      {"solver", "epochs", "(did you mean \"max_epoch\"?)"},
      {"solver", "optimizer", "(did you mean \"type\"?)"},
      {"solver", "gpu", "(did you mean \"device_id\"? Write solver_mode: GPU device_id: 0)"},
      {"solver", "log_interval", "(did you mean \"display\"?)"},
      {"solver", "seed", "(did you mean \"random_seed\"?)"},
      {"solver", "loss", "; a loss is a layer of the net"},
      {"solver", "train", "; data come from a layer of the net"},
      {"solver", "base_lr", ""},
      {"solver", "xyzzy", ""},
  };
  for (const OtherName& row : rows) {
    const std::string found = other_field_name(type_of(row.block), row.word);
    EXPECT_EQ(found.empty(), !*row.suggestion) << row.block << " " << row.word << found;
    EXPECT_NE(found.find(row.suggestion), std::string::npos) << row.word << ":" << found;
  }
}

}  // namespace other_field_names_test
}  // namespace crema::tests
