#include "kernels/detection/nms.h"

#include <algorithm>
#include <functional>

#include "kernels/core/rank.h"
#include "kernels/detection/nms_gpu.h"

namespace crema {
namespace {

// The positions of the best `maximum` ranks, best first.
std::vector<int> ordered(std::vector<uint64_t>& ranks, int64_t maximum) {
  if (maximum >= 0 && maximum < static_cast<int64_t>(ranks.size())) {
    std::nth_element(ranks.begin(), ranks.begin() + maximum, ranks.end(), std::greater<>());
    ranks.resize(maximum);
  }
  std::sort(ranks.begin(), ranks.end(), std::greater<>());
  std::vector<int> positions(ranks.size());
  std::transform(ranks.begin(), ranks.end(), positions.begin(), ranked_position);
  return positions;
}

std::vector<Detection> best_of(const BoxLists& lists, int64_t list, std::vector<uint64_t>& ranks) {
  const int64_t group = list / lists.each, own = list % lists.each;
  const std::vector<int> order = ordered(ranks, lists.candidates);
  std::vector<Box> boxes(order.size());
  std::vector<int> numbers(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    const int64_t at = (group * lists.count + order[i]) * lists.positions;
    boxes[i] = lists.boxes[at + (lists.positions == 1 ? 0 : own)];
    numbers[i] = static_cast<int>(i);
  }
  std::vector<Detection> found;
  for (const int i : suppress(boxes.data(), numbers, lists.suppression)) {
    const int64_t at = group * lists.count + order[i];
    found.push_back({static_cast<int32_t>(group),
                     lists.labels ? lists.labels[at] : static_cast<int32_t>(own),
                     lists.scores[at * lists.each + own], boxes[i]});
  }
  return found;
}

// Keeps the best of all lists of a group; of equal scores those of the earlier list.
void limit_group(std::vector<Detection>* lists, int64_t each, int64_t maximum) {
  std::vector<uint64_t> ranks;
  for (int64_t k = 0; k < each; ++k) {
    for (const Detection& d : lists[k])
      ranks.push_back(rank_of(d.score, static_cast<int64_t>(ranks.size())));
  }
  if (maximum < 0 || static_cast<int64_t>(ranks.size()) <= maximum) return;
  std::vector<uint64_t> sorted = ranks;
  std::nth_element(sorted.begin(), sorted.begin() + maximum, sorted.end(), std::greater<>());
  const uint64_t first_out = sorted[maximum];
  size_t at = 0;
  for (int64_t k = 0; k < each; ++k) {
    const size_t count = lists[k].size();
    size_t stay = 0;  // each list starts with its best
    while (stay < count && ranks[at + stay] > first_out) ++stay;
    lists[k].resize(stay);
    at += count;
  }
}

}  // namespace

Nms nms_on_host(const BoxLists& lists) {
  const int64_t all = lists.groups * lists.each;
  std::vector<std::vector<uint64_t>> ranks(all);
  [[maybe_unused]] const bool large = all * lists.count > 16384;
  // All lists of a group at once: their scores are interleaved in memory.
#pragma omp parallel for schedule(dynamic) if (large)
  for (int64_t group = 0; group < lists.groups; ++group) {
    const float* score = lists.scores + group * lists.count * lists.each;
    for (int64_t i = 0; i < lists.count; ++i) {
      for (int64_t k = 0; k < lists.each; ++k, ++score) {
        if (*score > lists.minimum && k != lists.left_out)
          ranks[group * lists.each + k].push_back(rank_of(*score, i));
      }
    }
  }
  std::vector<std::vector<Detection>> found(all);
#pragma omp parallel for schedule(dynamic) if (large)
  for (int64_t list = 0; list < all; ++list) found[list] = best_of(lists, list, ranks[list]);
  for (int64_t group = 0; group < lists.groups; ++group)
    limit_group(found.data() + group * lists.each, lists.each, lists.max_of_group);
  Nms best;
  for (const std::vector<Detection>& of_list : found) {
    best.counts.push_back(static_cast<int32_t>(of_list.size()));
    best.here.insert(best.here.end(), of_list.begin(), of_list.end());
  }
  return best;
}

size_t nms_workspace(Context& context, const BoxLists& lists) {
#ifdef CREMA_CUDA
  if (context.device() == Device::gpu) return nms_gpu_workspace(lists);
#endif
  (void)context, (void)lists;
  return 0;
}

Nms nms(Context& context, const BoxLists& lists, void* workspace) {
#ifdef CREMA_CUDA
  if (context.device() == Device::gpu) return nms_gpu(context, lists, workspace);
#endif
  (void)context, (void)workspace;
  return nms_on_host(lists);
}

std::vector<std::vector<Detection>> in_lists(Context& context, const Nms& found, int64_t together) {
  std::vector<Detection> copied;
  if (found.there) {
    copied.resize(found.count());
    copy_bytes(context, copied.data(), Device::cpu, found.there, Device::gpu,
               copied.size() * sizeof(Detection));
  }
  const Detection* next = found.there ? copied.data() : found.here.data();
  std::vector<std::vector<Detection>> lists(found.counts.size() / together);
  for (size_t i = 0; i < found.counts.size(); ++i) {
    std::vector<Detection>& list = lists[i / together];
    list.insert(list.end(), next, next + found.counts[i]);
    next += found.counts[i];
  }
  return lists;
}

}  // namespace crema
