#include "base/other_names.h"

#include <gtest/gtest.h>

namespace crema {
namespace other_names_test {

struct OtherName {
  Vocabulary vocabulary;
  const char* word;
  const char* suggestion;
};

TEST(OtherNames, OfPyTorchKerasOnnxAndDarknet) {
  const std::vector<std::string> known = {
      "AbsVal",  "Adam",         "BatchNorm",       "Convolution",    "Deconvolution",
      "Eltwise", "InnerProduct", "Nesterov",        "Pooling",        "ReLU",
      "SGD",     "Sigmoid",      "SoftmaxWithLoss", "SpatialDropout", "constant",
      "cosine",  "fixed",        "gaussian",        "msra",           "plateau",
      "step",    "xavier"};
  constexpr auto layer = Vocabulary::layers, solver = Vocabulary::solvers,
                 policy = Vocabulary::rate_policies, filler = Vocabulary::fillers;
  const OtherName rows[] = {
      {layer, "Conv2d", " (did you mean \"Convolution\"?)"},
      {layer, "Conv2D", " (did you mean \"Convolution\"?)"},
      {layer, "torch.nn.Conv3d", " (did you mean \"Convolution\"?)"},
      {layer, "CONV_2D", " (did you mean \"Convolution\"?)"},
      {layer, "ConvTranspose2d", " (did you mean \"Deconvolution\"?)"},
      {layer, "Conv2DTranspose", " (did you mean \"Deconvolution\"?)"},
      {layer, "Linear", " (did you mean \"InnerProduct\"?)"},
      {layer, "Dense", " (did you mean \"InnerProduct\"?)"},
      {layer, "keras.layers.GlobalAveragePooling2D",
       " (did you mean \"Pooling\"? Write pooling_param { pool: AVE global_pooling: true })"},
      {layer, "MaxPool2d",
       " (did you mean \"Pooling\"? Write pooling_param { pool: MAX kernel_size: 2 stride: 2 })"},
      {layer, "BatchNorm2d",
       " (did you mean \"BatchNorm\"? A Scale layer with bias_term: true follows it)"},
      {layer, "CrossEntropyLoss", " (did you mean \"SoftmaxWithLoss\"?)"},
      {layer, "LeakyReLU", " (did you mean \"ReLU\"? Write relu_param { negative_slope: 0.01 })"},
      {layer, "Dropout2d", " (did you mean \"SpatialDropout\"?)"},
      {layer, "shortcut", " (did you mean \"Eltwise\"? Write eltwise_param { operation: SUM })"},
      {layer, "Sigmiod", " (did you mean \"Sigmoid\"?)"},
      {layer, "Flatten2", ""},
      {layer, "", ""},
      {layer, "nn.", ""},
      {solver, "NAdam", " (did you mean \"Adam\"?)"},
      {solver, "Momentum", " (did you mean \"SGD\"? Write momentum: 0.9)"},
      {policy, "CosineAnnealingLR", " (did you mean \"cosine\"?)"},
      {policy, "optim.lr_scheduler.StepLR",
       " (did you mean \"step\"? Write gamma: 0.1 stepsize: 10000)"},
      {policy, "ReduceLROnPlateau", " (did you mean \"plateau\"?)"},
      {filler, "nn.init.kaiming_normal_", " (did you mean \"msra\"?)"},
      {filler, "he_normal", " (did you mean \"msra\"?)"},
      {filler, "GlorotUniform", " (did you mean \"xavier\"?)"},
      {filler, "zeros", " (did you mean \"constant\"? Write value: 0)"},
      // The name that fits is not offered here.
      {filler, "orthogonal", ""},
      {layer, "Embedding", ""}};
  for (const OtherName& row : rows)
    EXPECT_EQ(suggestion(row.vocabulary, row.word, known), row.suggestion) << row.word;
}

}  // namespace other_names_test
}  // namespace crema
