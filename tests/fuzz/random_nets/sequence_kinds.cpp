// Dense layers and those of sequences.
#include "base/error.h"
#include "fuzz/random_nets/layer_kinds.h"

namespace crema::tests {
namespace {

using Blobs = std::vector<int>;

Blobs inner_product(NetWriter& w, int b) {
  const Shape shape = w.shape(b);
  if (shape.axes() < 2) return {};
  const int axis = w.maybe(70) ? 1 : w.between(1, shape.axes() - 1);
  const bool bias = w.maybe(70);
  const int choices[] = {1, 3, 4, 7, 8, 10, 16, 16, 20, 32};
  std::string params =
      cat("inner_product_param { num_output: ", choices[w.between(0, 9)], " ", weight_filler(w));
  if (axis != 1) params += cat(" axis: ", axis);
  params += bias ? " " + bias_filler(w) : " bias_term: false";
  if (w.maybe(20)) params += " transpose: true";
  return {w.add_learned("InnerProduct", {b}, params + " }", bias ? 2 : 1)};
}
Blobs hidden(NetWriter& w, int b) {
  if (w.shape(b).axes() < 2) return {};
  int top = w.add_learned("InnerProduct", {b},
                          cat("inner_product_param { num_output: ", w.between(1, 4) * 8, " ",
                              weight_filler(w), " ", bias_filler(w), " }"),
                          2);
  top = w.add_pointwise("ReLU", top, w.maybe(80) ? "" : "relu_param { negative_slope: 0.2 }");
  if (w.maybe(50)) top = w.add_pointwise("Dropout", top);
  return {top};
}
// Words instead of what b has: a new branch.
Blobs embed(NetWriter& w, int) {
  const int words = w.between(3, 9), length = w.between(1, 4);
  const int chosen = w.labels({w.batch, length}, words);
  const int index =
      w.add("Reshape", {chosen}, cat("reshape_param { shape { dim: -1 dim: ", length, " } }"));
  const bool bias = w.maybe(50);
  return {w.add_learned(
      "Embed", {index},
      cat("embed_param { input_dim: ", words, " num_output: ", w.between(1, 8), " ",
          weight_filler(w), bias ? " bias_filler { value: 0.1 }" : " bias_term: false", " }"),
      bias ? 2 : 1)};
}
// Time goes first inside, the batch outside; but now and then the batch is taken for time.
Blobs recurrent(NetWriter& w, int b) {
  const Shape shape = w.shape(b);
  if (shape.axes() < 3 || shape[0] > 8 || shape[1] > 8) return {};
  std::string order = "permute_param { order: 1 order: 0";
  for (int axis = 2; axis < shape.axes(); ++axis) order += cat(" order: ", axis);
  const bool moves = w.maybe(85);
  const int steps = moves ? w.add("Permute", {b}, order + " }") : b;
  const int chosen = w.labels({shape[0], shape[1]}, 2);
  const int flags = w.add("Reshape", {chosen}, "reshape_param { shape { dim: 0 dim: 0 } }");
  const int indicators =
      moves ? w.add("Permute", {flags}, "permute_param { order: 1 order: 0 }") : flags;
  const bool lstm = w.maybe(60);
  int top =
      w.add_learned(lstm ? "LSTM" : "RNN", {steps, indicators},
                    cat("recurrent_param { num_output: ", w.between(2, 8),
                        " weight_filler { type: 'uniform' min: "
                        "-0.4 max: 0.4 } bias_filler { type: 'uniform' min: -0.2 max: 0.2 } }"),
                    lstm ? 3 : 5);
  if (w.maybe(30))
    top = w.add_learned("InnerProduct", {top},
                        cat("inner_product_param { num_output: 4 axis: 2 ", weight_filler(w), " }"),
                        2);
  if (!moves || w.maybe(15)) return {top};
  return {w.add("Permute", {top}, "permute_param { order: 1 order: 0 order: 2 }")};
}
Blobs attention(NetWriter& w, int b) {
  const Shape shape = w.shape(b);
  if (shape.axes() != 3 || shape[2] % 2 != 0 || shape[1] > 32 || shape[2] > 32) return {};
  return {w.add_learned("MultiHeadAttention", {b},
                        cat("multi_head_attention_param { num_heads: 2 ",
                            w.maybe(30) ? "causal: true " : "", weight_filler(w), " }"),
                        4)};
}

}  // namespace

const std::vector<LayerKind>& sequence_kinds() {
  static const std::vector<LayerKind> kinds = {
      {"InnerProduct", 24, inner_product},
      {"hidden", 12, hidden},
      {"Embed", 2, embed},
      {"LSTM and RNN", 6, recurrent},
      {"MultiHeadAttention", 3, attention},
  };
  return kinds;
}

}  // namespace crema::tests
