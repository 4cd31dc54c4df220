// ArgMax: the indices of the top_k largest values, the largest first; of equal values the later
// first.
//   with axis:    y holds indices along it, or the values with out_max_val
//   without axis: each image is one list; y[n,0,j] is an index, and with out_max_val y[n,1,j] its
//                 value
// Shapes: x (N, C, H, W) gives y (N, 1, top_k, 1), or (N, 2, top_k, 1) with out_max_val; with axis:
// 1 it gives (N, top_k, H, W).
// Parameters: none.
// Gradient: none.
#include <algorithm>

#include "kernels/pointwise/pointwise.h"
#include "kernels/reduce/largest_of_lines.h"
#include "layers/layer.h"
#include "proto/params/shape.pb.h"

namespace crema {
namespace {

template <typename T>
struct ArgMaxBody {
  const T* x;
  int64_t extent, inner;  // entries of the list, and their stride
  int64_t top_k;
  // Null: not needed. Entry j goes to list * list_step + j * entry_step.
  T *positions, *values;
  int64_t list_step, entry_step;

  struct Found {
    int64_t position = -1;
    T value = 0;
    CREMA_HD void take(bool better, int64_t k, T candidate) {
      position = better ? k : position;
      value = better ? candidate : value;
    }
  };

  CREMA_HD void operator()(int64_t outer, int64_t column) const {
    const T* list = x + outer * extent * inner + column;
    const int64_t out = outer * list_step + column;
    Found found;
    for (int64_t k = 0; k < extent; ++k) {
      const T value = list[k * inner];
      found.take(k == 0 || value >= found.value, k, value);
    }
    write(out, found);
    for (int64_t j = 1; j < top_k; ++j) {
      const Found next = behind(list, found);
      write(out + j * entry_step, next);
      found = next.position < 0 ? found : next;  // only NaNs are left
    }
  }
  // The largest of those after `last` in the order of values and positions.
  CREMA_HD Found behind(const T* list, const Found& last) const {
    Found found;
    for (int64_t k = 0; k < extent; ++k) {
      const T value = list[k * inner];
      const bool free =
          last.position < 0 || value < last.value || (value == last.value && k < last.position);
      found.take(free && (found.position < 0 || value >= found.value), k, value);
    }
    return found;
  }
  CREMA_HD void write(int64_t at, const Found& found) const {
    if (positions) positions[at] = static_cast<T>(found.position);
    if (values) values[at] = found.position < 0 ? T(NAN) : found.value;
  }
};

// CPU version for top_k 1: the first entry of lists whose entries have the stride `inner`.
template <typename T>
void largest_of_lists(const ArgMaxBody<T>& body, int64_t outer_count) {
  const int64_t inner = body.inner, groups = (inner + kListsTogether - 1) / kListsTogether;
#pragma omp parallel for schedule(static)
  for (int64_t task = 0; task < outer_count * groups; ++task) {
    const int64_t outer = task / groups, first = task % groups * kListsTogether;
    const int64_t count = std::min(kListsTogether, inner - first);
    T maximum[kListsTogether];
    int32_t best[kListsTogether];
    largest_of_lines<true>(body.x + outer * body.extent * inner + first, body.extent, inner, count,
                           maximum, best);
    const int64_t out = outer * body.list_step + first;
    if (body.positions) std::copy(best, best + count, body.positions + out);
    if (body.values) std::copy(maximum, maximum + count, body.values + out);
  }
}

class ArgMaxLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::reduction};

 private:
  const ArgMaxParameter& p() const { return params<ArgMaxParameter>(); }
  LayerTraits traits() const override { return {.reads = {false, false}}; }
  bool differentiable(int) const override { return false; }
  bool independent_along(int, int axis, const std::vector<Shape>& bottoms) const override {
    return p().has_axis() ? axis != bottoms[0].canonical_axis(p().axis()) : axis == 0;
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape& x = bottoms[0];
    require(x.axes() > 0, "ArgMax needs a bottom with an axis, this one is a scalar");
    const int64_t top_k = p().top_k();
    const int64_t extent = p().has_axis() ? x[x.canonical_axis(p().axis())] : x.count(1);
    require(top_k >= 1 && top_k <= extent, "top_k is ", top_k, ", but there are ", extent,
            " values to choose from");
    if (p().has_axis()) {
      Shape y = x;
      y[x.canonical_axis(p().axis())] = top_k;
      return {{y}, {}};
    }
    Shape y(std::vector<int64_t>(std::max(x.axes(), 3), 1));
    y[0] = x[0];
    y[1] = p().out_max_val() ? 2 : 1;
    y[2] = top_k;
    return {{y}, {}};
  }

  void forward(Context& context, const Forward& pass) const override {
    const Shape& x = pass.bottom[0].shape();
    const int64_t top_k = p().top_k();
    on(pass.bottom[0], [&]<typename T>() {
      T* y = pass.top[0].data<T>();
      ArgMaxBody<T> body{pass.bottom[0].data<T>(), x.count(1), 1, top_k, y, nullptr, top_k, 1};
      int64_t outer = x[0];
      if (p().has_axis()) {
        const int axis = x.canonical_axis(p().axis());
        body.extent = x[axis];
        body.inner = body.entry_step = x.count(axis + 1);
        body.list_step = top_k * body.inner;
        outer = x.count(0, axis);
        if (p().out_max_val()) std::swap(body.positions, body.values);
      } else if (p().out_max_val()) {
        body.values = y + top_k;
        body.list_step = 2 * top_k;
      }
      if (context.device() == Device::cpu && top_k == 1 && body.inner > 1)
        return largest_of_lists(body, outer);
      parallel_rows(context, outer, body.inner, body);
    });
  }
};

}  // namespace
REGISTER_LAYER(ArgMax, ArgMaxLayer);
}  // namespace crema
