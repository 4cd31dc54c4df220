// rpn.proposal_layer.ProposalLayer (py-faster-rcnn, R-FCN): the layer "Proposal" with the settings of
// their configuration, which depend on the phase.
#include <cmath>
#include <limits>

#include "base/error.h"
#include "layers/python/native.h"
#include "layers/python/param_str.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

uint32_t whole(const ParamStr& settings, const char* key, int64_t absent) {
  const int64_t value = settings.integer(key, absent);
  require(value > 0 && value < std::numeric_limits<int32_t>::max(), "param_str: ", key, " is ",
          value, ", but must be above 0");
  return static_cast<uint32_t>(value);
}

// 0 and less mean all boxes.
uint32_t most(const ParamStr& settings, const char* key, int64_t absent) {
  return settings.integer(key, absent) > 0 ? whole(settings, key, absent)
                                           : std::numeric_limits<int32_t>::max();
}

void translate(LayerParameter& message, bool training) {
  const ParamStr settings(message);
  ProposalParameter proposal;
  static_cast<void>(settings.needed_integer("feat_stride"));
  proposal.set_feat_stride(whole(settings, "feat_stride", 0));
  proposal.set_base_size(whole(settings, "base_size", 16));
  for (const double ratio : settings.numbers("ratios", {0.5, 1, 2}))
    proposal.add_ratio(static_cast<float>(ratio));
  for (const double scale : settings.numbers("scales", {8, 16, 32}))
    proposal.add_scale(static_cast<float>(scale));
  const int64_t smallest = settings.integer("rpn_min_size", 16);
  require(smallest >= 0 && smallest < std::numeric_limits<int32_t>::max(),
          "param_str: rpn_min_size is ", smallest, ", but must not be below 0");
  proposal.set_min_size(static_cast<uint32_t>(smallest));
  proposal.set_pre_nms_topn(most(settings, "rpn_pre_nms_top_n", training ? 12000 : 6000));
  proposal.set_post_nms_topn(whole(settings, "rpn_post_nms_top_n", training ? 2000 : 300));
  proposal.set_nms_thresh(static_cast<float>(settings.number("rpn_nms_thresh", 0.7)));
  settings.refuse_others();
  message.set_type("Proposal");
  *message.mutable_proposal_param() = proposal;
}

[[maybe_unused]] const bool registered =
    NativeRegistry::add("rpn.proposal_layer.ProposalLayer", {nullptr, translate, __FILE__});

}  // namespace
}  // namespace crema
