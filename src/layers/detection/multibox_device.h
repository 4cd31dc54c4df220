// The GPU's matching and mining of MultiBoxLoss, without the host: by priors, with one set of
// coordinates for all classes and without suppression. In CUDA builds only.
#pragma once

#include "kernels/core/labels.h"
#include "layers/detection/multibox_assignment.h"

namespace crema {

struct DeviceMatching {
  int64_t images, priors, objects;  // objects: rows of the bottom
  int32_t classes, background;
  MatchRule rule;
  bool use_difficult, agnostic;
  LabelNote note;  // of rows whose label is no class
  // Pointers to the GPU. Written: as in MultiBoxAssignment, a prior that is ignored has match
  // kIgnored; matched: of each image the number of priors with an object, or -1 when it has none.
  int32_t *matches = nullptr, *labels = nullptr;
  int32_t* matched = nullptr;
  // Scribbled on.
  float *overlaps = nullptr, *most_overlap = nullptr;
  int32_t* among = nullptr;
  uint64_t *best = nullptr, *first_best = nullptr;

  // Bytes that the last six point to, and where.
  size_t bytes() const {
    const int64_t pairs = images * objects;
    return (pairs + objects) * sizeof(uint64_t) + (objects + images) * priors * sizeof(float) +
           (pairs + images) * sizeof(int32_t);
  }
  void place(void* workspace) {
    best = static_cast<uint64_t*>(workspace);
    first_best = best + images * objects;
    overlaps = reinterpret_cast<float*>(first_best + objects);
    most_overlap = overlaps + objects * priors;
    among = reinterpret_cast<int32_t*>(most_overlap + images * priors);
    matched = among + images * objects;
  }
};

// boxes: (2, priors, 4); objects: rows of 8. Labels are those before mining: all priors that are
// not ignored count.
void match_on_device(Context& context, const DeviceMatching& matching, const Tensor& boxes,
                     const Tensor& objects);
// Leaves those with the largest losses, images x priors, as mine_boxes() chooses them.
void mine_on_device(Context& context, const DeviceMatching& matching, const MiningRule& rule,
                    const Tensor& losses);

}  // namespace crema
