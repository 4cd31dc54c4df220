// GRU and RNN: no layer computes them, so their steps are written out, as layers that share weights.
#include "exchange/onnx/operators/recurrent_import.h"
#include "proto/params/dense.pb.h"
#include "proto/params/pointwise.pb.h"
#include "proto/params/shape.pb.h"

namespace crema {
namespace {

constexpr int64_t kMaxSteps = 256;  // about ten layers each

class Unrolled {
 public:
  Unrolled(OperatorImport& op, RecurrentImport& of) : op_(op), of_(of) {
    require(of.steps() <= kMaxSteps, "no layer computes it, and ", of.steps(),
            " steps are too many to write out: at most ", kMaxSteps);
    op.graph().notes.insert(cat("No layer computes ", op.type(),
                                "; its steps are written out as layers that share weights."));
  }

  // A product whose weights are the same at all steps, or of all steps at once.
  std::string product(const std::string& x, int64_t outputs, const std::vector<float>& weights,
                      const std::vector<float>& bias, std::string* shared) {
    const int axis = op_.blob_shape(x).axes() - 1;
    std::vector<LayerBlob> blobs = {{Shape{outputs, op_.blob_shape(x)[axis]}, weights}};
    if (!bias.empty()) blobs.push_back({Shape{outputs}, bias});
    const bool first = shared == nullptr || shared->empty();
    const std::string y = op_.layer(
        "InnerProduct", {x},
        [&](LayerParameter* layer) {
          InnerProductParameter* const p = layer->mutable_inner_product_param();
          p->set_num_output(static_cast<uint32_t>(outputs));
          p->set_axis(axis);
          if (bias.empty()) p->set_bias_term(false);
          if (shared == nullptr) return;
          if (first) *shared = layer->name();
          layer->add_param()->set_name(*shared + ".weight");
          if (!bias.empty()) layer->add_param()->set_name(*shared + ".bias");
        },
        first ? std::move(blobs) : std::vector<LayerBlob>{});
    return y;
  }

  std::vector<std::string> parts(const std::string& x, int axis, std::vector<int64_t> points) {
    return op_.layer_with_tops("Slice", {x}, static_cast<int>(points.size()) + 1,
                               [&](LayerParameter* layer) {
                                 SliceParameter* const p = layer->mutable_slice_param();
                                 p->set_axis(axis);
                                 for (const int64_t point : points)
                                   p->add_slice_point(static_cast<uint32_t>(point));
                               });
  }
  // The blobs of each step.
  std::vector<std::string> each_step(const std::string& x) {
    std::vector<int64_t> points;
    for (int64_t t = 1; t < of_.steps(); ++t) points.push_back(t);
    return points.empty() ? std::vector<std::string>{x} : parts(x, 0, points);
  }

  std::string function(const std::string& name, const std::string& x) {
    return op_.layer(name == "tanh" ? "TanH" : name == "relu" ? "ReLU" : "Sigmoid", {x});
  }
  std::string sum(const std::string& a, const std::string& b, float factor_of_b = 1) {
    return op_.layer("Eltwise", {a, b}, [&](LayerParameter* layer) {
      if (factor_of_b == 1) return;
      layer->mutable_eltwise_param()->add_coeff(1);
      layer->mutable_eltwise_param()->add_coeff(factor_of_b);
    });
  }
  std::string times(const std::string& a, const std::string& b) {
    return op_.layer("Eltwise", {a, b}, [&](LayerParameter* layer) {
      layer->mutable_eltwise_param()->set_operation(EltwiseParameter::PROD);
    });
  }
  // The state before the first step; sums: of the inputs of a step.
  std::string first_state(int direction, const std::string& sums) {
    const std::string given = of_.first_state(5, direction);
    if (!given.empty()) return given;
    return op_.power(op_.cut(sums, 2, 0, of_.hidden()), 1, 0, 0);
  }
  RecurrentResult joined(const std::vector<std::string>& states) {
    RecurrentResult result;
    result.last = states.back();
    result.steps =
        states.size() == 1 ? states[0] : op_.layer("Concat", states, [](LayerParameter* layer) {
          layer->mutable_concat_param()->set_axis(0);
        });
    return result;
  }

 private:
  OperatorImport& op_;
  RecurrentImport& of_;
};

void require_known(const RecurrentImport& of) {
  for (const std::string& name : of.activations())
    require(name == "tanh" || name == "relu" || name == "sigmoid", "activation ", name,
            " has no layer");
}

std::vector<float> sums_of(std::vector<float> a, const std::vector<float>& b, size_t count) {
  for (size_t i = 0; i < count; ++i) a[i] += b[i];
  return a;
}

// h = f(W x + R h + b)
void read_rnn(OperatorImport& op) {
  RecurrentImport of(op, 1, {"tanh"});
  require_known(of);
  Unrolled unrolled(op, of);
  of.run([&](const std::string& x, int direction) {
    const RecurrentWeights weights = of.weights(direction);
    const std::string sums = unrolled.product(
        x, of.hidden(), weights.w, sums_of(weights.wb, weights.rb, weights.wb.size()), nullptr);
    const std::vector<std::string> inputs = unrolled.each_step(sums);
    std::string shared, h = unrolled.first_state(direction, inputs[0]);
    std::vector<std::string> states;
    for (const std::string& input : inputs) {
      const std::string before = unrolled.product(h, of.hidden(), weights.r, {}, &shared);
      h = unrolled.function(of.activations()[0], unrolled.sum(input, before));
      states.push_back(h);
    }
    return unrolled.joined(states);
  });
}
IMPORT_OPERATOR(RNN, read_rnn);

// z, r = f(W x + R h + b); n = g(W x + r (R h + b)), or with linear_before_reset 0
// g(W x + R (r h) + b); h = (1 - z) n + z h
void read_gru(OperatorImport& op) {
  RecurrentImport of(op, 3, {"sigmoid", "tanh"});
  require_known(of);
  const bool before_reset = op.int_of("linear_before_reset", 0) != 0;
  const int64_t hidden = of.hidden();
  Unrolled unrolled(op, of);
  of.run([&](const std::string& x, int direction) {
    const RecurrentWeights weights = of.weights(direction);
    const auto gates = static_cast<size_t>(2 * hidden);
    std::vector<float> bias_of_state(3 * hidden);
    std::copy(weights.rb.begin() + 2 * hidden, weights.rb.end(),
              bias_of_state.begin() + 2 * hidden);
    const std::string sums = unrolled.product(
        x, 3 * hidden, weights.w,
        sums_of(weights.wb, weights.rb, before_reset ? gates : weights.wb.size()), nullptr);
    const std::vector<float> of_gates(weights.r.begin(), weights.r.begin() + 2 * hidden * hidden);
    const std::vector<float> of_state(weights.r.begin() + 2 * hidden * hidden, weights.r.end());
    const std::vector<std::string> inputs = unrolled.each_step(sums);
    std::string shared, shared_state, h = unrolled.first_state(direction, inputs[0]);
    std::vector<std::string> states;
    for (const std::string& input : inputs) {
      const std::vector<std::string> in = unrolled.parts(input, 2, {2 * hidden});
      std::string before, candidate;
      if (before_reset) {
        const std::vector<std::string> both = unrolled.parts(
            unrolled.product(h, 3 * hidden, weights.r, bias_of_state, &shared), 2, {2 * hidden});
        before = both[0];
        candidate = both[1];
      } else {
        before = unrolled.product(h, 2 * hidden, of_gates, {}, &shared);
      }
      const std::string both = unrolled.function(of.activations()[0], unrolled.sum(in[0], before));
      const std::vector<std::string> z_and_r = unrolled.parts(both, 2, {hidden});
      candidate = before_reset ? unrolled.times(z_and_r[1], candidate)
                               : unrolled.product(unrolled.times(z_and_r[1], h), hidden, of_state,
                                                  {}, &shared_state);
      const std::string n = unrolled.function(of.activations()[1], unrolled.sum(in[1], candidate));
      h = unrolled.sum(n, unrolled.times(z_and_r[0], unrolled.sum(h, n, -1)));
      states.push_back(h);
    }
    return unrolled.joined(states);
  });
}
IMPORT_OPERATOR(GRU, read_gru);

}  // namespace
}  // namespace crema
