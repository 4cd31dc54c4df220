#include "kernels/detection/nms.h"

#include <algorithm>
#include <functional>

#include "kernels/core/threads.h"
#include "kernels/detection/nms_kernels.h"
#include "kernels/reduce/sort_key.h"

namespace crema {
namespace {

// The positions of the highest `maximum` keys, the highest first.
std::vector<int> sorted_positions(std::vector<uint64_t>& keys, int64_t maximum) {
  if (maximum >= 0 && maximum < static_cast<int64_t>(keys.size())) {
    std::nth_element(keys.begin(), keys.begin() + maximum, keys.end(), std::greater<>());
    keys.resize(maximum);
  }
  std::sort(keys.begin(), keys.end(), std::greater<>());
  std::vector<int> positions(keys.size());
  std::transform(keys.begin(), keys.end(), positions.begin(), position_of_key);
  return positions;
}

// The kept boxes of one list. keys: of the boxes that take part.
std::vector<Detection> kept_of_list(const NmsInput& input, int64_t index,
                                    std::vector<uint64_t>& keys) {
  const int64_t group = index / input.lists_per_group, list = index % input.lists_per_group;
  const std::vector<int> positions = sorted_positions(keys, input.max_candidates);
  std::vector<Box> boxes(positions.size());
  std::vector<int> order(positions.size());
  for (size_t i = 0; i < positions.size(); ++i) {
    boxes[i] = input.boxes_of(group, list)[positions[i] * input.box_lists()];
    order[i] = static_cast<int>(i);
  }
  std::vector<Detection> kept;
  for (const int i : suppress(boxes.data(), order, input.suppression)) {
    const int64_t at = group * input.boxes_per_list + positions[i];
    kept.push_back({static_cast<int32_t>(group),
                    input.labels ? input.labels[at] : static_cast<int32_t>(list),
                    input.scores[at * input.lists_per_group + list], boxes[i]});
  }
  return kept;
}

// Keeps the best of all lists of a group; of equal scores those of the earlier list.
void limit_group(std::vector<Detection>* lists, int64_t list_count, int64_t maximum) {
  std::vector<uint64_t> keys;
  for (int64_t k = 0; k < list_count; ++k) {
    for (const Detection& d : lists[k])
      keys.push_back(sort_key(d.score, static_cast<int64_t>(keys.size())));
  }
  if (maximum < 0 || static_cast<int64_t>(keys.size()) <= maximum) return;
  std::vector<uint64_t> selected = keys;
  std::nth_element(selected.begin(), selected.begin() + maximum, selected.end(), std::greater<>());
  const uint64_t first_out = selected[maximum];
  size_t at = 0;
  for (int64_t k = 0; k < list_count; ++k) {
    const size_t count = lists[k].size();
    size_t kept = 0;  // each list starts with its best
    while (kept < count && keys[at + kept] > first_out) ++kept;
    lists[k].resize(kept);
    at += count;
  }
}

Refusal nms_cpu(Context&, const NmsInput& input, void* /*workspace*/, NmsResult& result) {
  result = nms_on_host(input);
  return nullptr;
}

Refusal nms_needs_no_workspace(Context&, const NmsInput&, size_t& bytes) {
  bytes = 0;
  return nullptr;
}

REGISTER_KERNEL(nms_kernels, "plain", RunsOn::cpu, 0, nms_cpu);
REGISTER_KERNEL(nms_workspace_kernels, "plain", RunsOn::cpu, 0, nms_needs_no_workspace);

}  // namespace

constinit decltype(nms_kernels) nms_kernels("non-maximum suppression");
constinit decltype(nms_workspace_kernels) nms_workspace_kernels(
    "the workspace for non-maximum suppression");

NmsResult nms_on_host(const NmsInput& input) {
  const int64_t lists = input.lists(), each = input.lists_per_group;
  std::vector<std::vector<uint64_t>> keys(lists);
  [[maybe_unused]] const bool large = lists * input.boxes_per_list > 16384;
  // All lists of a group at once: their scores are interleaved in memory.
  RegionError error;
#pragma omp parallel for schedule(dynamic) if (large)
  for (int64_t group = 0; group < input.groups; ++group) {
    error.run([&] {
      const float* score = input.scores + group * input.boxes_per_list * each;
      for (int64_t i = 0; i < input.boxes_per_list; ++i) {
        for (int64_t k = 0; k < each; ++k, ++score) {
          if (*score > input.min_score && k != input.skipped_list)
            keys[group * each + k].push_back(sort_key(*score, i));
        }
      }
    });
  }
  error.rethrow();
  std::vector<std::vector<Detection>> kept(lists);
#pragma omp parallel for schedule(dynamic) if (large)
  for (int64_t list = 0; list < lists; ++list) {
    error.run([&] { kept[list] = kept_of_list(input, list, keys[list]); });
  }
  error.rethrow();
  for (int64_t group = 0; group < input.groups; ++group)
    limit_group(kept.data() + group * each, each, input.max_per_group);
  NmsResult result;
  for (const std::vector<Detection>& of_list : kept) {
    result.counts.push_back(static_cast<int32_t>(of_list.size()));
    result.host.insert(result.host.end(), of_list.begin(), of_list.end());
  }
  return result;
}

size_t nms_workspace(Context& context, const NmsInput& input) {
  size_t bytes = 0;
  nms_workspace_kernels.run(context, input, bytes);
  return bytes;
}

NmsResult nms(Context& context, const NmsInput& input, void* workspace) {
  NmsResult result;
  nms_kernels.run(context, input, workspace, result);
  return result;
}

std::vector<std::vector<Detection>> copy_detections(Context& context, const NmsResult& result,
                                                    int64_t lists_each) {
  std::vector<Detection> copied;
  if (result.device) {
    copied.resize(result.total());
    copy_bytes(context, copied.data(), Device::cpu, result.device, Device::gpu,
               copied.size() * sizeof(Detection));
  }
  const Detection* next = result.device ? copied.data() : result.host.data();
  std::vector<std::vector<Detection>> vectors(result.counts.size() / lists_each);
  for (size_t i = 0; i < result.counts.size(); ++i) {
    std::vector<Detection>& to = vectors[i / lists_each];
    to.insert(to.end(), next, next + result.counts[i]);
    next += result.counts[i];
  }
  return vectors;
}

}  // namespace crema
