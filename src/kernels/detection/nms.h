// Non-maximum suppression on many lists of scored boxes, the last step of detectors. Selection,
// sorting and suppression run on the context's device, and the results stay there.
#pragma once

#include <numeric>
#include <vector>

#include "kernels/detection/boxes.h"
#include "tensor/tensor.h"

namespace crema {

// A detected object.
struct Detection {
  int32_t group = 0, label = 0;
  float score = 0;
  Box box;
};

// Lists in groups, such as the classes of an image. Pointers are to the context's device.
struct BoxLists {
  int64_t groups = 1, count = 0, each = 1;  // count: boxes per list; each: lists per group
  int64_t positions = 1;  // 1: the lists of a group share their boxes; `each`: separate boxes
  int64_t left_out = -1;  // the list of each group to skip
  const float* scores = nullptr;    // (groups, count, each)
  const Box* boxes = nullptr;       // (groups, count, positions)
  const int32_t* labels = nullptr;  // (groups, count); null: the index of the list in its group
  float minimum = 0;                // only scores above it take part
  int64_t candidates = -1;          // only the best so many take part; -1: all
  Suppression suppression{};
  int64_t max_of_group = -1;  // maximum kept in all lists of a group; -1: no limit
};

// Bytes of workspace for nms().
size_t nms_workspace(Context& context, const BoxLists& lists);

// The kept boxes of all lists, list after list, best first; of equal scores the earlier box first.
struct Nms {
  std::vector<int32_t> counts;  // per list
  std::vector<Detection> here;
  const Detection* there = nullptr;  // on a GPU, in the workspace; null: the results are in `here`

  int64_t count() const { return std::accumulate(counts.begin(), counts.end(), int64_t{0}); }
};

// Waits for the device to learn how many are kept. workspace: aligned to 256 bytes.
Nms nms(Context& context, const BoxLists& lists, void* workspace);

// The same on the CPU, with pointers to CPU memory.
Nms nms_on_host(const BoxLists& lists);

// Copies the results to the host: one result for every `together` lists.
std::vector<std::vector<Detection>> in_lists(Context& context, const Nms& found,
                                             int64_t together = 1);

}  // namespace crema
