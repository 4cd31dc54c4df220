// MultiHeadAttention: scaled dot-product attention in several heads: each query becomes a mean of
// the values, weighted by how well their keys match it. For each head, d of the C channels:
//   Q = q Wq' + bq, K = k Wk', V = v Wv' + bv
//   P = softmax(Q K' / sqrt(d)) over the keys; causal: true masks keys after the query's position
//   O = D V   with D = P * mask / (1 - dropout_ratio) in training, else P
//   y = O Wo' + bo with the O of all heads concatenated
// Shapes: queries q (N, T, C), keys k (N, S, any), values v (N, S, any), y (N, T, C). A single
// bottom is all three. num_heads divides C.
// Parameters: Wq, Wk, Wv, Wo (C, input channels); then bq, bv, bo (C) unless bias_term is false.
// There is no bk: a term common to all keys does not change the softmax.
// Gradient: dO = dy Wo, dV = D' dO, dS = P * (dP - sum of dP * P) with dP that of dO V' through the
// mask, dQ = dS K / sqrt(d), dK = dS' Q / sqrt(d), and those of the four projections.
#include <cmath>

#include "device/aligned.h"
#include "kernels/gemm/gemm_groups.h"
#include "kernels/pointwise/batch_values.h"
#include "kernels/pointwise/bias.h"
#include "kernels/softmax/attention.h"
#include "layers/layer.h"
#include "proto/params/attention.pb.h"
#include "tensor/on.h"

namespace crema {
namespace {

class MultiHeadAttentionLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::attention, .learned = 4};

 private:
  enum Role { kQuery, kKey, kValue, kOut };
  // Indices into Prepared::saved. kWeights is P; kDropped is D, P after dropout.
  enum Saved { kWeights = 3, kHeads, kDropped };
  static constexpr int kRoles = 4;

  const MultiHeadAttentionParameter& p() const { return params<MultiHeadAttentionParameter>(); }
  bool drops() const { return training() && p().dropout_ratio() > 0; }
  Arity bottoms() const override { return {1, 3}; }
  LayerTraits traits() const override {
    return {.half_rule = HalfRule::prefers, .reads = {true, false}};
  }

  void setup(Context&, const std::vector<Shape>& bottoms) override {
    require(bottoms.size() != 2,
            "attention has one bottom, or three (queries, keys and values), not two; name "
            "the keys twice when they are the values too");
    for (const Shape& bottom : bottoms) {
      require(bottom.axes() == 3, "the bottoms must have shape (images, positions, channels), not ",
              bottom.brief());
    }
    channels_ = bottoms[0][2];
    heads_ = p().num_heads();
    require(heads_ > 0 && channels_ % heads_ == 0, "num_heads ", heads_,
            " does not divide the queries' ", channels_, " channels");
    require(p().dropout_ratio() >= 0 && p().dropout_ratio() < 1, "dropout_ratio is ",
            p().dropout_ratio(), ", but a probability from 0 to below 1 is needed");
    for (int role = 0; role < kRoles; ++role) {
      inputs_[role] = role == kOut ? channels_ : bottoms[bottom_of(role, bottoms.size())][2];
      add_parameter({channels_, inputs_[role]}, p().weight_filler());
    }
    for (int role = 0; role < kRoles; ++role) {
      if (bias_of(role) >= 0) add_parameter({channels_}, p().bias_filler());
    }
  }

  // Index of a projection's bias parameter; -1: none.
  int bias_of(int role) const {
    if (!p().bias_term() || role == kKey) return -1;
    return role == kQuery ? kRoles : kRoles - 1 + role;
  }

  static size_t bottom_of(int role, size_t bottoms) {
    return bottoms == 1 ? 0 : static_cast<size_t>(role);
  }

  // The extents of a pass.
  struct Sizes {
    int64_t images, queries, keys;
  };
  Sizes sizes_of(const Shape& queries, const Shape& keys) const {
    return {queries[0], queries[1], keys[1]};
  }
  int64_t rows(const Sizes& s, int role) const {
    return s.images * (role == kQuery || role == kOut ? s.queries : s.keys);
  }
  int64_t pairs(const Sizes& s) const { return s.images * heads_ * s.queries * s.keys; }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape &q = bottoms[0], &k = bottoms[bottom_of(kKey, bottoms.size())];
    for (size_t role = 0; role < bottoms.size(); ++role) {
      const Shape& x = bottoms[role];
      require(x.axes() == 3 && x[0] == q[0] && x[2] == inputs_[role] && (role == 0 || x[1] == k[1]),
              "bottom ", role, " has shape ", x.brief(), ", expected ", q[0], " images, ",
              role == 0 ? x[1] : k[1], " positions and ", inputs_[role], " channels");
    }
    return {{q}, {}};
  }

  struct State : LayerState {
    Precision precision = Precision::fp32;
  };

  Prepared prepare(Context&, const Preparation& preparation) const override {
    const auto& bottoms = preparation.bottoms;
    const Sizes s = sizes_of(bottoms[0], bottoms[bottom_of(kKey, bottoms.size())]);
    Prepared prepared;
    prepared.make_state<State>().precision = preparation.precision;
    prepared.half_parameters.assign(parameters().size(), preparation.storage != preparation.dtype);
    const auto save = [&](const Shape& shape) {
      prepared.saved.push_back({shape, preparation.storage});
    };
    for (int role : {kQuery, kKey, kValue}) save({rows(s, role), channels_});
    save({pairs(s)});
    save({rows(s, kOut), channels_});
    if (drops()) save({pairs(s)});
    // Pointers to the heads' operands, then the gradients of O, Q, K, V and P.
    prepared.workspace = pointers(s);
    if (preparation.backward) {
      int64_t count = pairs(s);
      for (int role = 0; role < kRoles; ++role) count += rows(s, role) * channels_;
      prepared.workspace += static_cast<size_t>(count) * size_of(preparation.storage);
    }
    return prepared;
  }

  size_t pointers(const Sizes& s) const { return aligned(gemm_groups_scratch(s.images, heads_)); }

  // One product per head and image: c = alpha op(a) op(b). Operands are either blobs of `positions`
  // rows with all heads concatenated, or weights.
  struct Operand {
    int64_t row, image, head;  // strides between rows, images and heads
  };
  Operand side_by_side(int64_t positions) const {
    return {channels_, positions * channels_, channels_ / heads_};
  }
  Operand weights(const Sizes& s) const {
    return {s.keys, heads_ * s.queries * s.keys, s.queries * s.keys};
  }
  template <typename T>
  void each_head(Context& context, Gemm g, int64_t images, const Operand& a, const T* a_at,
                 const Operand& b, const T* b_at, const Operand& c, T* c_at,
                 const Tensor& workspace) const {
    g.batch = images;
    g.lda = a.row, g.ldb = b.row, g.ldc = c.row;
    g.batch_stride_a = a.image, g.batch_stride_b = b.image, g.batch_stride_c = c.image;
    gemm_groups(context, g, {heads_, a.head, b.head, c.head}, a_at, b_at, c_at, workspace);
  }

  template <typename Pass>
  static Gemm product(const Pass& pass) {
    Gemm g;
    g.precision = state_of<State>(pass).precision;
    return g;
  }

  template <typename T>
  void project(Context& context, const Forward& pass, int64_t rows, int role, const T* x,
               T* y) const {
    const std::vector<Tensor>& w = pass.parameters;
    Gemm g = product(pass);
    g.transpose_b = true;
    g.m = rows, g.n = channels_, g.k = inputs_[role];
    gemm_groups(context, g, {}, x, w[role].data<T>(), y, {});
    if (bias_of(role) >= 0)
      add_bias<T>(context, rows, channels_, 1, w[bias_of(role)].data<T>(), {}, y);
  }

  void forward(Context& context, const Forward& pass) const override {
    const Tensor& keys = pass.bottom[bottom_of(kKey, pass.bottom.size())];
    const Sizes s = sizes_of(pass.bottom[0].shape(), keys.shape());
    on_real(pass.top[0], [&]<typename T>() {
      const auto saved = [&](int which) { return pass.saved[which].data<T>(); };
      for (int role : {kQuery, kKey, kValue}) {
        project(context, pass, rows(s, role), role,
                pass.bottom[bottom_of(role, pass.bottom.size())].data<T>(), saved(role));
      }
      Gemm scores = product(pass);
      scores.transpose_b = true;
      scores.m = s.queries, scores.n = s.keys, scores.k = channels_ / heads_;
      scores.alpha = scale();
      each_head(context, scores, s.images, side_by_side(s.queries), saved(kQuery),
                side_by_side(s.keys), saved(kKey), weights(s), saved(kWeights), pass.workspace);
      attention_weights(context, attention_rows(context, pass, s), saved(kWeights),
                        drops() ? saved(kDropped) : nullptr);
      Gemm means = product(pass);
      means.m = s.queries, means.n = channels_ / heads_, means.k = s.keys;
      each_head(context, means, s.images, weights(s), saved(drops() ? kDropped : kWeights),
                side_by_side(s.keys), saved(kValue), side_by_side(s.queries), saved(kHeads),
                pass.workspace);
      project(context, pass, rows(s, kOut), kOut, saved(kHeads), pass.top[0].data<T>());
    });
  }

  int64_t multiply_adds(const std::vector<Shape>& bottoms,
                        const std::vector<Shape>&) const override {
    const Sizes s = sizes_of(bottoms[0], bottoms[bottom_of(kKey, bottoms.size())]);
    // Q, K, V and the result, then scores and means.
    const int64_t rows = s.images * (2 * s.queries + 2 * s.keys);
    return rows * channels_ * channels_ + 2 * s.images * s.queries * s.keys * channels_;
  }

  float scale() const { return 1 / std::sqrt(static_cast<float>(channels_ / heads_)); }
  template <typename Pass>
  AttentionRows attention_rows(Context& context, const Pass& pass, const Sizes& s) const {
    return {s.images * heads_ * s.queries,
            s.queries,
            s.keys,
            p().causal(),
            drops() ? p().dropout_ratio() : 0,
            context.random(id(), pass.pass, pass.live_pass),
            values_before(pass.share, s.images * heads_ * s.queries)};
  }

  // Gradients of a projection's weights and bias, and of its input (dx may be null).
  template <typename T>
  void backward_project(Context& context, const Backward& pass, int64_t rows, int role, const T* x,
                        const T* dy, T* dx, bool add) const {
    if (const Tensor& dw = pass.parameter_diff[role]) {
      Gemm g = product(pass);
      g.transpose_a = true;
      g.m = channels_, g.n = inputs_[role], g.k = rows;
      g.beta = pass.accumulate[role] ? 1.f : 0.f;
      gemm_groups(context, g, {}, dy, x, dw.template data<Compute<T>>(), {});
    }
    const int bias = bias_of(role);
    if (bias >= 0 && pass.parameter_diff[bias]) {
      bias_gradient(context, rows, channels_, 1, dy,
                    pass.parameter_diff[bias].template data<Compute<T>>(),
                    pass.accumulate[bias] != 0);
    }
    if (!dx) return;
    Gemm g = product(pass);
    g.m = rows, g.n = inputs_[role], g.k = channels_;
    g.beta = add ? 1.f : 0.f;
    gemm_groups(context, g, {}, dy, pass.parameters[role].template data<T>(), dx, {});
  }

  void backward(Context& context, const Backward& pass) const override {
    const size_t bottoms = pass.bottom.size();
    const Sizes s = sizes_of(pass.bottom[0].shape(), pass.bottom[bottom_of(kKey, bottoms)].shape());
    on_real(pass.top_diff[0], [&]<typename T>() {
      const auto saved = [&](int which) { return pass.saved[which].data<T>(); };
      T* d[kRoles];  // of Q, K, V and O
      T* next = reinterpret_cast<T*>(pass.workspace.data<uint8_t>() + pointers(s));
      for (int role = 0; role < kRoles; ++role) {
        d[role] = next;
        next += rows(s, role) * channels_;
      }
      T* const d_weights = next;
      const Operand q = side_by_side(s.queries), k = side_by_side(s.keys), w = weights(s);
      const int64_t each = channels_ / heads_;
      backward_project(context, pass, rows(s, kOut), kOut, saved(kHeads),
                       pass.top_diff[0].data<T>(), d[kOut], false);
      Gemm g = product(pass);
      g.transpose_a = true;
      g.m = s.keys, g.n = each, g.k = s.queries;
      each_head(context, g, s.images, w, saved(drops() ? kDropped : kWeights), q, d[kOut], k,
                d[kValue], pass.workspace);
      g = product(pass);
      g.transpose_b = true;
      g.m = s.queries, g.n = s.keys, g.k = each;
      each_head(context, g, s.images, q, d[kOut], k, saved(kValue), w, d_weights, pass.workspace);
      attention_gradient(context, attention_rows(context, pass, s), saved(kWeights), d_weights);
      g = product(pass);
      g.m = s.queries, g.n = each, g.k = s.keys, g.alpha = scale();
      each_head(context, g, s.images, w, d_weights, k, saved(kKey), q, d[kQuery], pass.workspace);
      g.transpose_a = true;
      g.m = s.keys, g.k = s.queries;
      each_head(context, g, s.images, w, d_weights, q, saved(kQuery), k, d[kKey], pass.workspace);
      for (int role : {kQuery, kKey, kValue}) {
        const size_t bottom = bottom_of(role, bottoms);
        const Tensor& dx = pass.bottom_diff[bottom];
        backward_project(context, pass, rows(s, role), role, pass.bottom[bottom].data<T>(), d[role],
                         dx ? dx.data<T>() : nullptr, bottoms == 1 && role != kQuery);
      }
    });
  }

  int64_t channels_ = 0, heads_ = 1;
  int64_t inputs_[kRoles] = {};  // input channels of each projection
};

}  // namespace
REGISTER_LAYER(MultiHeadAttention, MultiHeadAttentionLayer);
}  // namespace crema
