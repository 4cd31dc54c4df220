#include "solver/replay/record_check.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace crema {

void RecordCheck::note(Difference difference) {
  const auto order = [](const Difference& one) { return std::pair(one.iteration, !one.weights); };
  if (!first_ || order(difference) < order(*first_)) first_ = std::move(difference);
}

void RecordCheck::compare(const event::Losses& losses) {
  for (size_t i = 0; i < losses.losses.size(); ++i) {
    const int64_t iteration = losses.first + static_cast<int64_t>(i);
    if (iteration < from_ || !recorded_.has_loss(iteration)) continue;
    const float recorded = recorded_.loss(iteration), found = static_cast<float>(losses.losses[i]);
    ++losses_;
    const bool equal = std::bit_cast<uint32_t>(recorded) == std::bit_cast<uint32_t>(found) ||
                       (std::isnan(recorded) && std::isnan(found));
    if (!equal) note({iteration, false, recorded, found});
    if (!first_) last_equal_ = iteration;
  }
}

void RecordCheck::compare(const event::WeightHashes& hashes) {
  const auto known = recorded_.weights.find(hashes.iteration);
  if (hashes.iteration < from_ || known == recorded_.weights.end()) return;
  ++weights_;
  const RecordedWeights found = recorded_weights(hashes.parameters);
  if (found.all == known->second.all) return;
  Difference difference{hashes.iteration, true};
  const std::vector<std::string>& before = known->second.parameters;
  for (size_t i = 0; i < before.size() && i < found.parameters.size(); ++i) {
    if (before[i] != found.parameters[i]) difference.parameters.push_back(static_cast<int>(i));
  }
  note(std::move(difference));
}

void RecordCheck::read(const Event& event) {
  if (const auto* losses = std::get_if<event::Losses>(&event)) compare(*losses);
  if (const auto* hashes = std::get_if<event::WeightHashes>(&event)) compare(*hashes);
  // The record has only what came after it.
  const auto* const back = std::get_if<event::RolledBack>(&event);
  if (!back) return;
  if (first_ && first_->iteration >= back->to) first_.reset();
  if (!first_) last_equal_ = std::min(last_equal_, back->to - 1);
}

}  // namespace crema
