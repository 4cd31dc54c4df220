// Nets that are made fully convolutional: they compute what they did, and on a larger image what the
// given net computes on each part of it.
#include "net/surgery/surgery.h"

#include <cmath>

#include "net/prototxt/prototxt.h"
#include "support.h"

namespace crema::tests {
namespace surgery_test {

std::string input(int channels, int height, int width) {
  return cat("layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: ",
             channels, " dim: ", height, " dim: ", width, " } } }\n");
}

std::string layer(const std::string& name, const std::string& type, const std::string& bottom,
                  const std::string& top, const std::string& more = "") {
  std::string text = cat("layer { name: '", name, "' type: '", type, "'");
  for (const std::string& blob : split(bottom, ' ')) text += cat(" bottom: '", blob, "'");
  for (const std::string& blob : split(top, ' ')) text += cat(" top: '", blob, "'");
  return cat(text, " ", more, " }\n");
}

std::string conv(const std::string& name, const std::string& bottom, const std::string& fields) {
  return layer(name, "Convolution", bottom, name, cat("convolution_param { ", fields, " }"));
}

std::string ip(const std::string& name, const std::string& bottom, int outputs,
               const std::string& fields = "") {
  return layer(name, "InnerProduct", bottom, name,
               cat("inner_product_param { num_output: ", outputs, " ", fields, " }"));
}

std::string relu(const std::string& blob) { return layer("relu_" + blob, "ReLU", blob, blob); }
std::string softmax(const std::string& bottom) { return layer("prob", "Softmax", bottom, "prob"); }

std::string pool(const std::string& name, const std::string& bottom, int kernel) {
  return layer(name, "Pooling", bottom, name,
               cat("pooling_param { pool: MAX kernel_size: ", kernel, " stride: 2 }"));
}

class SurgeryOfNets : public testing::Test {
 protected:
  SurgeryOfNets() : context_(Device::cpu) { context_.set_log(silent_log()); }

  std::unique_ptr<Net> net_of(const NetParameter& net) {
    NetOptions options;
    options.state.set_phase(TEST);
    return std::make_unique<Net>(context_, net, options);
  }

  Surgery operate(const NetFile& file) {
    given_ = net_of(file.net);
    uint32_t state = 1;
    for (Parameter& parameter : given_->parameters()) {
      std::vector<float> values(parameter.shape.count());
      const double spread = std::sqrt(3.0 / std::max<int64_t>(parameter.shape.count(1), 1));
      for (float& value : values) {
        state = state * 1664525 + 1013904223;
        value = static_cast<float>(spread * (state / 2147483648.0 - 1));
      }
      from_floats(context_, values.data(), parameter.data);
    }
    given_->parameters_changed();
    return make_fully_convolutional(file.net, given_->graph(),
                                    [&](int i) { return file.where(i); });
  }
  std::string refusal(const std::string& text) {
    const NetFile file = parse_net_text(text, "net.prototxt");
    return error_of([&] { operate(file); });
  }

  // Values as a smooth function of the place, so that parts of larger images differ.
  static float pixel(int64_t n, int64_t c, int64_t y, int64_t x) {
    return static_cast<float>(
        std::sin(0.7 * static_cast<double>(y) + 1.3 * static_cast<double>(n)) +
        std::cos(0.9 * static_cast<double>(x * (c + 1))));
  }
  std::vector<float> outputs(Net& net, int64_t from_y = 0, int64_t from_x = 0) {
    const Shape shape = net.input("x").shape();
    std::vector<float> values;
    for (int64_t n = 0; n < shape[0]; ++n)
      for (int64_t c = 0; c < shape[1]; ++c)
        for (int64_t y = 0; y < shape[2]; ++y)
          for (int64_t x = 0; x < shape[3]; ++x)
            values.push_back(pixel(n, c, from_y + y, from_x + x));
    net.set_input("x", values.data());
    net.forward(0);
    std::vector<float> all;
    for (const Net::Output& output : net.outputs()) {
      const std::vector<float> some = to_floats(context_, output.value);
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  }

  Context context_;
  std::unique_ptr<Net> given_;
};

void expect_near(const std::vector<float>& values, const std::vector<float>& wanted) {
  ASSERT_EQ(values.size(), wanted.size());
  ASSERT_FALSE(wanted.empty());
  EXPECT_NE(wanted.front(), wanted.back());  // else anything would do
  for (size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(values[i], wanted[i], 2e-6) << i;
}

std::string outline(const Surgery& surgery) {
  std::vector<std::string> words;
  for (const LayerParameter& made : surgery.net.layer()) {
    std::string word = made.type();
    const ConvolutionParameter& p = made.convolution_param();
    if (p.kernel_size_size() > 0) word += cat(p.kernel_size(0));
    if (p.has_kernel_h()) word += cat(p.kernel_h(), "x", p.kernel_w());
    words.push_back(word);
  }
  return join(words, " ");
}

const std::string kConv = "num_output: 4 kernel_size: 3";
const std::string kLenet = input(1, 28, 28) + conv("conv1", "x", "num_output: 20 kernel_size: 5") +
                           pool("pool1", "conv1", 2) +
                           conv("conv2", "pool1", "num_output: 50 kernel_size: 5") +
                           pool("pool2", "conv2", 2) + ip("ip1", "pool2", 500) + relu("ip1") +
                           ip("ip2", "ip1", 10) + softmax("ip2");

struct Row {
  const char* what;
  std::string net, made;  // made: outline()
};

const Row kRows[] = {
    {"LeNet", kLenet,
     "Input Convolution5 Pooling Convolution5 Pooling Convolution4 ReLU Convolution1 Softmax"},
    {"a small CaffeNet",
     input(3, 67, 67) + conv("conv1", "x", "num_output: 8 kernel_size: 11 stride: 4") +
         relu("conv1") + pool("pool1", "conv1", 3) +
         layer("norm1", "LRN", "pool1", "norm1", "lrn_param { local_size: 5 alpha: 0.0001 }") +
         conv("conv2", "norm1", "num_output: 8 pad: 2 kernel_size: 5 group: 2") + relu("conv2") +
         pool("pool5", "conv2", 3) + ip("fc6", "pool5", 32) + relu("fc6") +
         layer("drop6", "Dropout", "fc6", "fc6") + ip("fc7", "fc6", 32) + relu("fc7") +
         layer("drop7", "Dropout", "fc7", "fc7") + ip("fc8", "fc7", 20) + softmax("fc8"),
     "Input Convolution11 ReLU Pooling LRN Convolution5 ReLU Pooling Convolution3 ReLU Dropout "
     "Convolution1 ReLU Dropout Convolution1 Softmax"},
    {"a Flatten and a Dropout before",
     input(2, 7, 7) + conv("c", "x", kConv) + layer("flat", "Flatten", "c", "flat") +
         layer("drop", "Dropout", "flat", "flat") + ip("a", "flat", 6) + softmax("a"),
     "Input Convolution3 Dropout Convolution5 Softmax"},
    {"a Reshape, and images that are no squares",
     input(2, 6, 8) + conv("c", "x", kConv) +
         layer("row", "Reshape", "c", "row", "reshape_param { shape { dim: 0 dim: -1 } }") +
         ip("a", "row", 6) + softmax("a"),
     "Input Convolution3 Convolution4x6 Softmax"},
    {"transposed weights, no bias",
     input(2, 6, 6) + conv("c", "x", kConv) + ip("a", "c", 6, "transpose: true bias_term: false") +
         ip("b", "a", 6, "transpose: true") + softmax("b"),
     "Input Convolution3 Convolution4 Convolution1 Softmax"},
    {"two branches, a Concat and axes from the end",
     input(2, 6, 6) + conv("c", "x", kConv) + ip("a", "c", 3) + ip("b", "c", 5, "axis: -3") +
         layer("both", "Concat", "a b", "both", "concat_param { axis: -1 }") +
         layer("scale", "Scale", "both", "both", "scale_param { axis: -1 bias_term: true }") +
         layer("prelu", "PReLU", "both", "both") + ip("d", "both", 6, "axis: -1") +
         layer("prob", "Softmax", "d", "prob", "softmax_param { axis: -1 }"),
     "Input Convolution3 Convolution4 Convolution4 Concat Scale PReLU Convolution1 Softmax"},
    {"a Flatten of scores",
     input(2, 4, 4) + ip("a", "x", 6) + layer("flat", "Flatten", "a", "flat") + softmax("flat"),
     "Input Convolution4 Softmax"},
    {"a global pooling",
     input(2, 6, 6) + conv("c", "x", kConv) +
         layer("p", "Pooling", "c", "p", "pooling_param { pool: AVE global_pooling: true }") +
         ip("a", "p", 6) + softmax("a"),
     "Input Convolution3 Pooling Convolution1 Softmax"},
    {"a row beside images",
     input(2, 4, 4) +
         "layer { name: 'v' type: 'Input' top: 'v' input_param { shape { dim: 2 dim: 3 } } }\n" +
         ip("a", "x", 6) + ip("b", "v", 5) + softmax("a"),
     "Input Input Convolution4 InnerProduct Softmax"},
    {"a Flatten that something else reads",
     input(2, 4, 4) + layer("flat", "Flatten", "x", "flat") + softmax("flat") + ip("a", "x", 6),
     "Input Flatten Softmax Convolution4"},
    {"layers that work along the channels, or on each value",
     input(2, 6, 6) + conv("c", "x", kConv) + ip("a", "c", 6) +
         layer("shuffle", "ShuffleChannel", "a", "s", "shuffle_channel_param { group: 2 }") +
         layer("grn", "GRN", "s", "g") + layer("noise", "Noise", "g", "n") + ip("b", "n", 3),
     "Input Convolution3 Convolution4 ShuffleChannel GRN Noise Convolution1"},
};

TEST_F(SurgeryOfNets, ComputesTheSame) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.what);
    const Surgery surgery = operate(parse_net_text(row.net, "net.prototxt"));
    EXPECT_EQ(outline(surgery), row.made);
    const auto made = net_of(surgery.net);
    copy_weights(*given_, *made, surgery.transposed);
    expect_near(outputs(*made), outputs(*given_));
  }
}

// Without padding each position of the map is what the given net computes from a part of the image.
TEST_F(SurgeryOfNets, GivesAMapOfALargerImage) {
  const Surgery surgery = operate(parse_net_text(kLenet, "net.prototxt"));
  const auto made = net_of(surgery.net);
  copy_weights(*given_, *made, surgery.transposed);
  made->reshape("x", {2, 1, 32, 36});
  const std::vector<float> map = outputs(*made);
  ASSERT_EQ(made->outputs()[0].value.shape(), (Shape{2, 10, 2, 3}));
  for (int y = 0; y < 2; ++y) {
    for (int x = 0; x < 3; ++x) {
      std::vector<float> place;
      for (int i = 0; i < 2 * 10; ++i) place.push_back(map[(i * 2 + y) * 3 + x]);
      expect_near(place, outputs(*given_, 4 * y, 4 * x));
    }
  }
}

TEST_F(SurgeryOfNets, SaysWhatItDid) {
  const Surgery surgery = operate(parse_net_text(kRows[2].net, "net.prototxt"));
  EXPECT_EQ(surgery.changes,
            (std::vector<std::string>{"flat: Flatten is left out",
                                      "a: InnerProduct of 4x5x5 -> 6 becomes Convolution 5x5"}));
  EXPECT_EQ(surgery.origins, (std::vector<int>{0, 1, 3, 4, 5}));
  EXPECT_TRUE(surgery.warnings.empty());
  const Surgery pooled = operate(parse_net_text(kRows[7].net, "net.prototxt"));
  ASSERT_EQ(pooled.warnings.size(), 1u);
  expect_part(pooled.warnings[0], "-set 'layer[p].pooling_param.kernel_size=4'");
}

struct Refused {
  std::string net, says;
};

TEST_F(SurgeryOfNets, RefusesWhatItCannotDo) {
  const std::string images = input(2, 4, 4), scores = images + ip("a", "x", 6);
  const Refused rows[] = {
      {images + softmax("x"), "net.prototxt:1:1: nothing to convert"},
      {images + ip("a", "x", 6, "axis: 2"),
       "net.prototxt:2:1: layer \"a\": it reads from axis 2 on"},
      {images + ip("a", "x", 6, "normalize: true"), "layer \"a\": it normalizes its weights"},
      {scores + layer("max", "ArgMax", "a", "max"),
       "net.prototxt:3:1: layer \"max\": it reads scores that become a map"},
      {scores + layer("p", "Softmax", "a", "p", "softmax_param { axis: 0 }"),
       "layer \"p\": its axis 0 is that of the samples"},
      {images +
           "layer { name: 'v' type: 'Input' top: 'v' input_param { shape { dim: 2 dim: 6 } } }\n" +
           ip("a", "x", 6) + layer("sum", "Eltwise", "a v", "sum"),
       "layer \"sum\": some of its bottoms become maps of scores, others do not: \"a\" does, \"v\" "
       "does not"},
      {images + layer("flat", "Flatten", "x", "flat") + layer("relu", "ReLU", "x", "x") +
           ip("a", "flat", 6),
       "layer \"a\": it reads a flattened blob of which the image has been changed"},
      {images +
           "layer { name: 'w' type: 'Input' top: 'w' input_param { shape { dim: 3 dim: 32 } } "
           "}\n" +
           layer("a", "InnerProduct", "x w", "a", "inner_product_param { bias_term: false }"),
       "layer \"a\": its weights are a bottom"},
  };
  for (const Refused& row : rows) expect_part(refusal(row.net), row.says);
}

TEST_F(SurgeryOfNets, WeightsOfAnotherNetAreRefused) {
  const Surgery surgery = operate(parse_net_text(kLenet, "net.prototxt"));
  const auto made = net_of(surgery.net);
  operate(parse_net_text(input(1, 4, 4) + ip("ip1", "x", 10), "net.prototxt"));
  expect_part(error_of([&] { copy_weights(*given_, *made, {}); }), "parameter 0 is 20x1x5x5");
}

}  // namespace surgery_test
}  // namespace crema::tests
