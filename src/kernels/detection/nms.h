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

// Lists of scored boxes in groups, such as the classes of an image. Pointers are to the context's
// device.
struct NmsInput {
  int64_t groups = 1, lists_per_group = 1, boxes_per_list = 0;
  bool shared_boxes = true;         // the lists of a group have the same boxes
  int64_t skipped_list = -1;        // of each group: it keeps none
  const float* scores = nullptr;    // (groups, boxes_per_list, lists_per_group)
  const Box* boxes = nullptr;       // (groups, boxes_per_list, box_lists())
  const int32_t* labels = nullptr;  // (groups, boxes_per_list); null: the list's index in its group
  float min_score = 0;              // only higher scores take part
  int64_t max_candidates = -1;      // of a list: only the best take part; -1: all
  Suppression suppression{};
  int64_t max_per_group = -1;  // how many are kept in all lists of a group; -1: no limit

  CREMA_HD int64_t lists() const { return groups * lists_per_group; }
  CREMA_HD int64_t box_lists() const { return shared_boxes ? 1 : lists_per_group; }
  // Where the boxes of a list begin; they are box_lists() apart. list: the index in its group.
  CREMA_HD const Box* boxes_of(int64_t group, int64_t list) const {
    return boxes + group * boxes_per_list * box_lists() + (shared_boxes ? 0 : list);
  }
};

// Bytes of workspace for nms().
size_t nms_workspace(Context& context, const NmsInput& input);

// The kept boxes of all lists, list after list, best first; of equal scores the earlier box first.
struct NmsResult {
  std::vector<int32_t> counts;  // per list
  std::vector<Detection> host;
  const Detection* device = nullptr;  // on a GPU, in the workspace; null: they are in `host`

  int64_t total() const { return std::accumulate(counts.begin(), counts.end(), int64_t{0}); }
};

// Waits for the device to learn how many are kept. workspace: aligned to 256 bytes.
NmsResult nms(Context& context, const NmsInput& input, void* workspace);

// The same on the CPU, with pointers to CPU memory.
NmsResult nms_on_host(const NmsInput& input);

// The kept boxes on the host, those of every `lists_each` lists in one vector.
std::vector<std::vector<Detection>> copy_detections(Context& context, const NmsResult& result,
                                                    int64_t lists_each = 1);

}  // namespace crema
