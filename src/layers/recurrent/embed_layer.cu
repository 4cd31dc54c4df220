// Embed: looks up a row of a learned table for each index.
//   y[m,:] = w[x[m],:] + b
// Shapes: indices x of any shape, integers from 0 to input_dim - 1; y has that shape followed by
// num_output.
// Parameters: w (input_dim, num_output); b (num_output) unless bias_term is false.
// Gradient: dw[k,:] sums dy[m,:] over the m with x[m] = k, db sums dy over all m; none for the
// indices.
#include "kernels/labels/equal_links.h"
#include "kernels/labels/labels.h"
#include "kernels/pointwise/bias.h"
#include "kernels/pointwise/pointwise.h"
#include "layers/layer.h"
#include "proto/params/dense.pb.h"

namespace crema {
namespace {

template <typename T>
struct LookUp {
  const T *x, *w, *b;  // b may be null
  int64_t outputs;
  LabelNote note;
  T* y;
  CREMA_HD void operator()(int64_t m, int64_t n) const {
    T* out = y + m * outputs + n;
    if (!is_class(x[m], note.classes)) {
      note.write(m, x[m]);
      *out = T(NAN);
      return;
    }
    *out = w[static_cast<int64_t>(x[m]) * outputs + n] + (b ? b[n] : T(0));
  }
};

// The first position of each index sums all of its positions, in order, which is deterministic.
// kWidth outputs per thread.
template <typename T, int kWidth>
struct AddRows {
  const T *x, *dy;
  const int32_t *next, *first;
  int64_t outputs;
  T* dw;
  CREMA_HD void operator()(int64_t m, int64_t piece) const {
    using P = Pack<T, kWidth>;
    if (!first[m]) return;
    const int64_t n = piece * kWidth;
    P* out = reinterpret_cast<P*>(dw + static_cast<int64_t>(x[m]) * outputs + n);
    P sum = *out;
    for (int64_t position = m; position >= 0; position = next[position]) {
      const P more = *reinterpret_cast<const P*>(dy + position * outputs + n);
      for (int k = 0; k < kWidth; ++k) sum.v[k] += more.v[k];
    }
    *out = sum;
  }
};

class EmbedLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::embedding, .learned = 1};

 private:
  const EmbedParameter& p() const { return params<EmbedParameter>(); }
  bool independent_along(int, int, const std::vector<Shape>&) const override { return true; }
  bool differentiable(int) const override { return false; }
  LayerTraits traits() const override { return {.reads = {true, false}}; }

  void setup(Context&, const std::vector<Shape>&) override {
    require(p().num_output() > 0,
            "embed_param has no num_output (or 0): how long should the row of each index be?");
    require(p().input_dim() > 0,
            "embed_param has no input_dim (or 0): give the largest index plus 1");
    add_parameter({p().input_dim(), p().num_output()}, p().weight_filler());
    if (p().bias_term()) add_parameter({p().num_output()}, p().bias_filler());
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    Shape y = bottoms[0];
    y.push_back(p().num_output());
    return {{y}, {{{LabelNote::kCount}, DType::i32, true}}};
  }

  // Workspace: linked lists of equal indices.
  Prepared prepare(Context&, const Preparation& preparation) const override {
    Prepared prepared;
    prepared.workspace = 2 * static_cast<size_t>(preparation.bottoms[0].count()) * sizeof(int32_t);
    return prepared;
  }

  void forward(Context& context, const Forward& pass) const override {
    const Tensor& x = pass.bottom[0];
    const int64_t outputs = p().num_output(), rows = p().input_dim();
    on(x, [&]<typename T>() {
      if (x.device() == Device::cpu) {
        for (int64_t m = 0; m < x.count(); ++m) {
          const T index = x.data<T>()[m];
          if (!is_class(index, rows)) fail_for_index(m, index, "");
        }
      }
      const LabelNote note{pass.saved[0].data<int32_t>(), rows, 1, pass.pass, pass.live_pass};
      const T* b = p().bias_term() ? pass.parameters[1].data<T>() : nullptr;
      parallel_rows(context, x.count(), outputs,
                    LookUp<T>{x.data<T>(), pass.parameters[0].data<T>(), b, outputs, note,
                              pass.top[0].data<T>()});
    });
  }

  void backward(Context& context, const Backward& pass) const override {
    const Tensor &x = pass.bottom[0], &dy = pass.top_diff[0], &dw = pass.parameter_diff[0];
    const int64_t outputs = p().num_output(), count = x.count();
    on(dy, [&]<typename T>() {
      if (dw) {
        int32_t *next = pass.workspace.data<int32_t>(), *first = next + count;
        if (!pass.accumulate[0]) zero(context, dw);
        link_equal<T>(context, 1, {x.data<T>(), count, p().input_dim(), next, first});
        const auto add = [&]<int kWidth>() {
          parallel_rows(
              context, count, outputs / kWidth,
              AddRows<T, kWidth>{x.data<T>(), dy.data<T>(), next, first, outputs, dw.data<T>()});
        };
        const bool packs =
            context.device() == Device::gpu && takes_packs<T>(outputs, dy.raw(), dw.raw());
        packs ? add.template operator()<kPackCount<T>>() : add.template operator()<1>();
      }
      if (p().bias_term() && pass.parameter_diff[1]) {
        bias_gradient(context, count, outputs, 1, dy.data<T>(),
                      pass.parameter_diff[1].template data<T>(), pass.accumulate[1]);
      }
    });
  }

  void check(Context& context, const Forward& pass) const override {
    if (const std::optional<NotedLabel> bad = take_label_note(context, pass.saved[0]))
      fail_for_index(bad->position, bad->label, cat(" of forward pass ", bad->pass));
  }

  [[noreturn]] void fail_for_index(int64_t position, double index, const std::string& when) const {
    fail("index ", index, " at position ", position, " of the bottom", when,
         " is in no row of the table: input_dim is ", p().input_dim(),
         ", so indices are the integers from 0 to ", p().input_dim() - 1,
         ". Correct the data or input_dim");
  }
};

}  // namespace
REGISTER_LAYER(Embed, EmbedLayer);
}  // namespace crema
