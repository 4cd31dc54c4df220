// LayerTraits: the properties of a layer that do not depend on shapes (Layer::traits). A layer names
// those that differ from the defaults.
#pragma once

#include <cstddef>

namespace crema {

// Memory orders (tensor/format.h) that the layer accepts for bottoms and tops of three and more
// axes.
enum class OrderRule {
  row_major,              // row-major only
  any,                    // any, but the same for all of them
  any_in_32_bits,         // the same, but in 16 bits channels-last only
  prefers_channels_last,  // both, but channels-last is faster
};

// Data type of bottoms and tops when the net computes in 16 bits. Bottoms without a gradient
// (labels) and the tops of losses are never 16 bits wide.
enum class HalfRule {
  never,    // in float32
  follows,  // the type of the first bottom, which must be differentiable
  prefers,  // in 16 bits
};

// The data that backward reads; the planner frees or overwrites the rest.
struct BackwardReads {
  bool bottom = true;
  bool top = true;
  bool only_first = false;  // reads only bottom 0

  bool bottom_at(size_t index) const { return bottom && (index == 0 || !only_first); }
};

struct LayerTraits {
  // --- shapes and memory ---
  // Every top is bottom[0] with another shape: nothing is computed, memory is shared.
  bool is_view = false;
  // The top consists of the bottoms' elements, and the bottoms' gradients are slices of its
  // gradient. True for views as well, which need not say so.
  bool concatenates = false;
  // top[0] may share the memory of bottom[0], and in backward bottom_diff[0] that of top_diff[0].
  // Also if backward reads the bottom: the planner lets them share only if nothing reads it later.
  bool in_place = false;
  // The tops' sizes depend on the bottoms' values: infer() gives the maximum, the shape of the tops
  // in forward, which writes the shapes that it filled into its state, DynamicTops. Later steps, and
  // the layer's own backward, get tensors of those shapes. No step of such a net is in a CUDA graph.
  // If these shapes need more memory than forward had, the tops are enlarged to them and forward is
  // called once more.
  bool dynamic = false;
  OrderRule order_rule = OrderRule::row_major;
  HalfRule half_rule = HalfRule::never;
  // Top 0 can be produced in any order, real type and channel padding that the plan wants.
  bool makes_any_format = false;
  // The tops must keep their content between passes (inputs set by the user, constant data).
  bool keeps_tops = false;

  // --- passes ---
  BackwardReads reads = {};
  // Forward uses statistics of the whole batch, so it cannot take a few samples at a time.
  bool batch_statistics = false;
  // Forward changes the layer's own parameters, in phase TEST too: nets that run at the same time
  // cannot share them.
  bool changes_parameters = false;
  // Forward's tops can be recomputed before backward from the bottoms and `saved`, in about the
  // time needed to read and write them (Layer::recompute).
  bool recomputes = false;
  // Forward does work on the host that a CUDA graph would not replay (reading a database).
  bool works_on_host = false;
  // The passes communicate with the other ranks, so all of them must run it.
  bool asks_ranks = false;

  bool copies_elements() const { return concatenates || is_view; }
};

}  // namespace crema
