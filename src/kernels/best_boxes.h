// Of each of many lists of scored boxes the best ones that no better one overlaps: what detectors
// end with. Choosing, sorting and non-maximum suppression run on the context's device; what stays
// comes to the host.
#pragma once

#include <vector>

#include "kernels/boxes.h"
#include "tensor/tensor.h"

namespace crema {

// An object that a net found.
struct Detection {
  int32_t label = 0;
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

// What stays of each list, the best first, of equal scores the earlier. Waits for the device.
// workspace: 256 bytes aligned.
std::vector<std::vector<Detection>> best_boxes(Context& context, const BoxLists& lists,
                                               void* workspace);

// The same on the CPU, with pointers to its memory.
std::vector<std::vector<Detection>> best_boxes_on_host(const BoxLists& lists);

}  // namespace crema
