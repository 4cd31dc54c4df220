// MultiBoxLoss's matching and mining on the GPU, without the host: matching with priors, one set of
// coordinates for all classes and no NMS.
#pragma once

#include "kernels/core/kernel_registry.h"
#include "kernels/labels/labels.h"
#include "layers/detection/multibox_assignment.h"

namespace crema {

struct DeviceMatching {
  int64_t images, priors, objects;  // objects: rows of the bottom
  int32_t classes, background;
  MatchRule rule;
  bool use_difficult, agnostic;
  LabelNote note;  // for rows whose label is out of range
  // Device pointers. Outputs: as in MultiBoxAssignment, an ignored prior has match kIgnored;
  // matched: per image the number of matched priors, or -1 if it has none.
  int32_t *matches = nullptr, *labels = nullptr;
  int32_t* matched = nullptr;
  // Scratch.
  float *overlaps = nullptr, *max_overlap = nullptr;
  int32_t* among = nullptr;
  uint64_t *best = nullptr, *first_best = nullptr;

  // Bytes of the last six arrays; assign_workspace() sets their pointers.
  size_t bytes() const {
    const int64_t pairs = images * objects;
    return (pairs + objects) * sizeof(uint64_t) + (objects + images) * priors * sizeof(float) +
           (pairs + images) * sizeof(int32_t);
  }
  void assign_workspace(void* workspace) {
    best = static_cast<uint64_t*>(workspace);
    first_best = best + images * objects;
    overlaps = reinterpret_cast<float*>(first_best + objects);
    max_overlap = overlaps + objects * priors;
    among = reinterpret_cast<int32_t*>(max_overlap + images * priors);
    matched = among + images * objects;
  }
};

// boxes: (2, priors, 4); objects: rows of 8. Labels are those before mining: all priors that are
// not ignored count.
extern KernelFunctions<const DeviceMatching&, const Tensor& /*boxes*/, const Tensor& /*objects*/>
    match_boxes_kernels;
// Keeps those with the largest losses, images x priors, as mine_boxes() chooses them.
extern KernelFunctions<const DeviceMatching&, const MiningRule&, const Tensor& /*losses*/>
    mine_boxes_kernels;

}  // namespace crema
