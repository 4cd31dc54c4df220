#include "kernels/best_boxes.h"

#include <algorithm>
#include <functional>

#include "kernels/best_boxes_gpu.h"
#include "kernels/rank.h"

namespace crema {
namespace {

// The places of the best `most` ranks, the best first.
std::vector<int> ordered(std::vector<uint64_t>& ranks, int64_t most) {
  if (most >= 0 && most < static_cast<int64_t>(ranks.size())) {
    std::nth_element(ranks.begin(), ranks.begin() + most, ranks.end(), std::greater<>());
    ranks.resize(most);
  }
  std::sort(ranks.begin(), ranks.end(), std::greater<>());
  std::vector<int> places(ranks.size());
  std::transform(ranks.begin(), ranks.end(), places.begin(), ranked_place);
  return places;
}

std::vector<Detection> best_of(const BoxLists& lists, int64_t list, std::vector<uint64_t>& ranks) {
  const int64_t group = list / lists.each, own = list % lists.each;
  const std::vector<int> order = ordered(ranks, lists.candidates);
  std::vector<Box> boxes(order.size());
  std::vector<int> numbers(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    const int64_t at = (group * lists.count + order[i]) * lists.places;
    boxes[i] = lists.boxes[at + (lists.places == 1 ? 0 : own)];
    numbers[i] = static_cast<int>(i);
  }
  std::vector<Detection> found;
  for (const int i : suppress(boxes.data(), numbers, lists.suppression)) {
    const int64_t at = group * lists.count + order[i];
    found.push_back({lists.labels ? lists.labels[at] : static_cast<int32_t>(own),
                     lists.scores[at * lists.each + own], boxes[i]});
  }
  return found;
}

}  // namespace

std::vector<std::vector<Detection>> best_boxes_on_host(const BoxLists& lists) {
  const int64_t all = lists.groups * lists.each;
  std::vector<std::vector<uint64_t>> ranks(all);
  const bool large = all * lists.count > 16384;
  // All lists of a group at once: their scores lie side by side.
#pragma omp parallel for schedule(dynamic) if (large)
  for (int64_t group = 0; group < lists.groups; ++group) {
    const float* score = lists.scores + group * lists.count * lists.each;
    for (int64_t i = 0; i < lists.count; ++i) {
      for (int64_t k = 0; k < lists.each; ++k, ++score) {
        if (*score > lists.least && k != lists.left_out)
          ranks[group * lists.each + k].push_back(rank_of(*score, i));
      }
    }
  }
  std::vector<std::vector<Detection>> found(all);
#pragma omp parallel for schedule(dynamic) if (large)
  for (int64_t list = 0; list < all; ++list) found[list] = best_of(lists, list, ranks[list]);
  return found;
}

size_t best_boxes_workspace(Context& context, const BoxLists& lists) {
#ifdef CREMA_CUDA
  if (context.device() == Device::gpu) return best_boxes_gpu_workspace(lists);
#endif
  (void)context, (void)lists;
  return 0;
}

std::vector<std::vector<Detection>> best_boxes(Context& context, const BoxLists& lists,
                                               void* workspace) {
#ifdef CREMA_CUDA
  if (context.device() == Device::gpu) return best_boxes_gpu(context, lists, workspace);
#endif
  (void)context, (void)workspace;
  return best_boxes_on_host(lists);
}

}  // namespace crema
