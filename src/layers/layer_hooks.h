// LayerHooks: what only some layers tell the plan, each with a default for all others. A new layer
// needs none of these; layer.h has the required functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "device/communicator.h"
#include "device/context.h"
#include "layers/channel_map.h"
#include "layers/data_source.h"
#include "layers/layer_passes.h"

namespace crema {

class LayerParameter;

class LayerHooks {
 public:
  virtual ~LayerHooks() = default;

  // --- shapes, formats, memory ---
  virtual bool as_many_tops_as_bottoms() const { return false; }
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
  // For a fused layer after setup: false if its members are faster unfused.
  virtual bool is_profitable(const Context&, const std::vector<Shape>& /*bottoms*/,
                             Precision) const {
    return true;
  }

  // --- folding, where no gradient is computed; called after setup ---
  // This layer as a linear map of each channel by constants among its parameters; none: it is no
  // such map.
  virtual std::optional<ChannelMap> channel_map() const { return std::nullopt; }
  // True if each channel of top 0 is linear in one row of parameter 0, plus a bias, parameter 1: a
  // ChannelMap of the layer after it can be multiplied into these. The message gets that bias.
  virtual bool give_bias(LayerParameter* /*message*/) const { return false; }

  // --- recomputation (activation checkpointing) ---
  // With LayerTraits::recomputes: recomputes the tops, the same bits as forward wrote, and has no
  // other effect (no running statistics).
  virtual void recompute(Context&, const Forward&) const {}

  // --- data ---
  // The layer as a source of data; null: it reads none.
  virtual DataSource* source() { return nullptr; }
};

}  // namespace crema
