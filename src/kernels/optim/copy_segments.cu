#include "kernels/optim/copy_segments.h"

#include "kernels/optim/update_walk.h"
#include "tensor/on.h"

namespace crema {
namespace {

template <typename T>
struct Take {
  static constexpr bool kShrinks = false;
  RuleOperands<T> in;  // w: where to; h: where from
  CREMA_HD void operator()(int64_t i) const { in.w[i] = in.h[i]; }
};

}  // namespace

void copy_segments(Context& context, const ChunkTable& segments, const Tensor& from,
                   const Tensor& to) {
  on(from, [&]<typename T>() {
    RuleOperands<T> in{};
    in.w = to.data<T>();
    in.h = from.data<T>();
    walk<T>(context, {segments}, Take<T>{in});
  });
}

}  // namespace crema
