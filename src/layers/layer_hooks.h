// LayerHooks: what only some layers tell the plan, each with a default for all others. A new layer
// needs none of these; layer.h has the required functions.
#pragma once

#include <cstdint>
#include <vector>

#include "device/communicator.h"
#include "device/context.h"
#include "layers/data_source.h"
#include "layers/layer_passes.h"

namespace crema {

class LayerHooks {
 public:
  virtual ~LayerHooks() = default;

  // --- shapes, formats, memory ---
  virtual bool as_many_tops_as_bottoms() const { return false; }
  // Every top is bottom[0] with another shape: nothing is computed, memory is shared.
  virtual bool is_view() const { return false; }
  // Top 0 can be produced in any order, real type and channel padding that the plan wants.
  virtual bool makes_any_format() const { return false; }
  // The tops must keep their content between passes (inputs set by the user, constant data).
  virtual bool keeps_tops() const { return false; }
  // False: neither pass reads this bottom's values; only its shape matters. It comes in any order
  // and real type.
  virtual bool reads_values(int bottom) const { return bottom >= 0; }
  // The channels that bottom 0 should have in memory if it is channels-last, stored in this type
  // and has no gradient; 0: no padding.
  virtual int64_t padded_channels(DType) const { return 0; }
  // Multiply-adds of one forward pass; each gradient costs as many. 0: so few that memory traffic
  // decides the time.
  virtual int64_t multiply_adds(const std::vector<Shape>& /*bottoms*/,
                                const std::vector<Shape>& /*tops*/) const {
    return 0;
  }

  // The values that a parameter begins with, row-major on the host; empty: what its filler gives.
  virtual Tensor given_parameter(size_t /*index*/) const { return {}; }

  // --- batches that ranks share ---
  // Positions along this axis of that bottom do not depend on each other, so they may be samples,
  // and each rank may have only some of them. The gradients of a loss also combine as loss_parts()
  // says if the samples are along this axis.
  virtual bool independent_along(int /*bottom*/, int axis,
                                 const std::vector<Shape>& /*bottoms*/) const {
    return axis == 0;
  }

  // --- edges and fusion ---
  // What can pass along the edges to its bottoms and from top 0.
  virtual Edge bottom_edge(int /*bottom*/) const { return {}; }
  virtual Edge top_edge() const { return {}; }
  // The top consists of the bottoms' elements (as that of a view does), and the bottoms' gradients
  // are slices of its gradient.
  virtual bool concatenates() const { return is_view(); }
  // For a fused layer after setup: false if its members are faster unfused.
  virtual bool is_profitable(const Context&, const std::vector<Shape>& /*bottoms*/,
                             Precision) const {
    return true;
  }

  // --- recomputation (activation checkpointing) ---
  // Forward's tops can be recomputed before backward from the bottoms and `saved`, in about the
  // time needed to read and write them.
  virtual bool recomputes() const { return false; }
  // Recomputes the tops: the same bits as forward wrote, and no other effect (no running
  // statistics).
  virtual void recompute(Context&, const Forward&) const {}

  // --- data, host and ranks ---
  // The layer as a source of data; null: it reads none.
  virtual DataSource* source() { return nullptr; }
  // Forward does work on the host that a CUDA graph would not replay (reading a database).
  virtual bool works_on_host() const { return false; }
  // Its passes communicate with the other ranks, so all of them must run it.
  virtual bool asks_ranks() const { return false; }

  // --- shapes that depend on data ---
  // The tops' sizes depend on the bottoms' values: infer() gives the maximum, the shape of the tops
  // in forward, which writes the shapes that it filled into its state, DynamicTops. Later steps, and
  // the layer's own backward, get tensors of those shapes. No step of such a net is in a CUDA graph.
  // If these shapes need more memory than forward had, the tops are enlarged to them and forward is
  // called once more.
  virtual bool dynamic() const { return false; }
};

}  // namespace crema
