// Of each of many lists of scored boxes the best ones that no better one overlaps: what detectors
// end with. Choosing, sorting and non-maximum suppression run on the context's device, and what
// stays stays there.
#pragma once

#include <numeric>
#include <vector>

#include "kernels/detection/boxes.h"
#include "tensor/tensor.h"

namespace crema {

// An object that a net found.
struct Detection {
  int32_t group = 0, label = 0;
  float score = 0;
  Box box;
};

// Lists in groups: the classes of an image. Pointers are to the context's device.
struct BoxLists {
  int64_t groups = 1, count = 0, each = 1;  // count: boxes of a list; each: lists of a group
  int64_t places = 1;     // 1: the lists of a group have the same boxes; or `each`, their own
  int64_t left_out = -1;  // the list of each group that is not asked for
  const float* scores = nullptr;    // (groups, count, each)
  const Box* boxes = nullptr;       // (groups, count, places)
  const int32_t* labels = nullptr;  // (groups, count); null: the list's number in its group
  float least = 0;                  // scores must be above
  int64_t candidates = -1;          // only so many, the best, take part; -1: all
  Suppression suppression{};
  int64_t most_of_group = -1;  // of what stays in the lists of a group only so many; -1: all
};

// Where several things share a workspace, each starts at a multiple of 256 bytes.
inline size_t padded(size_t bytes) { return (bytes + 255) / 256 * 256; }

// Bytes that best_boxes scribbles on.
size_t best_boxes_workspace(Context& context, const BoxLists& lists);

// What stays of all lists, list after list, each the best first, of equal scores the earlier.
struct BestBoxes {
  std::vector<int32_t> counts;  // of the lists
  std::vector<Detection> here;
  const Detection* there = nullptr;  // on a GPU, in the workspace; null: they are `here`

  int64_t count() const { return std::accumulate(counts.begin(), counts.end(), int64_t{0}); }
};

// Waits for the device, which has to say how many stay. workspace: 256 bytes aligned.
BestBoxes best_boxes(Context& context, const BoxLists& lists, void* workspace);

// The same on the CPU, with pointers to its memory.
BestBoxes best_boxes_on_host(const BoxLists& lists);

// On the host: so many lists together in each.
std::vector<std::vector<Detection>> in_lists(Context& context, const BestBoxes& found,
                                             int64_t together = 1);

}  // namespace crema
