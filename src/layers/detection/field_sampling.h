// Which positions of an MS-CNN map count in its loss, and with what weight: those of objects, and
// background that is sampled randomly or has the largest scores. For .cu files only, like
// device/parallel.h.
#pragma once

#include "base/random.h"
#include "kernels/labels/labels.h"
#include "kernels/reduce/reduce.h"
#include "kernels/reduce/sort_key.h"
#include "kernels/reduce/top_k_thresholds.h"
#include "layers/detection/field_boxes.h"

namespace crema {

struct FieldSampling {
  bool all = false, drawn = false, hardest = false;  // which background counts
  float multiple = 1;  // background per object, random or the hardest of a class
  bool by_overlap = false, balanced = false;
  double background_share = 0.5, box_factor = 0.25;

  CREMA_HD int64_t wanted(double objects, int64_t minimum) const {
    const auto share = static_cast<int64_t>(static_cast<float>(objects) * multiple);
    return share > minimum ? share : minimum;
  }
};

// Objects per class of each image. Notes labels that are out of range.
template <typename Real>
struct FieldLabelCounts {
  FieldTargets<Real> targets;
  int64_t classes;
  LabelNote note;
  template <typename T>
  CREMA_HD T operator()(int64_t k, int64_t, int64_t position) const {
    const int64_t image = k / classes;
    const int label = targets.label(image, position);
    if (!targets.is_object(label)) return T(0);
    if (label < 0 || label >= classes) note.write(image * targets.positions + position, label);
    return T(label == k % classes);
  }
};

// The background of an image as one list per class from 1 on, ordered by score; of equal scores the
// last position comes first.
template <typename T>
struct HardestBackground {
  FieldTargets<T> targets;
  FieldSampling sampling;
  int64_t classes;
  const T *scores, *counts;  // counts: (images, classes)
  CREMA_HD uint64_t key_in(int64_t image, int64_t label, int64_t position) const {
    const T score = scores[(image * (classes + 4) + label) * targets.positions + position];
    return sort_key(static_cast<float>(score), targets.positions - 1 - position);
  }
  CREMA_HD uint64_t key(int64_t list, int64_t position) const {
    const int64_t image = list / (classes - 1), label = list % (classes - 1) + 1;
    return targets.is_background(image, position) ? key_in(image, label, position) : 0;
  }
  CREMA_HD int64_t k(int64_t list) const {
    return sampling.wanted(counts[list / (classes - 1) * classes + list % (classes - 1) + 1], 4);
  }
};

template <typename T>
struct MarkBackground {
  HardestBackground<T> background;
  const uint64_t* thresholds;  // per list
  uint8_t* marks;
  CREMA_HD void operator()(int64_t i) const {
    const auto& [targets, sampling, classes, scores, counts] = background;
    const int64_t image = i / targets.positions, position = i % targets.positions;
    bool counts_here = sampling.all;
    for (int64_t k = 1; k < classes && sampling.hardest; ++k) {
      counts_here = counts_here || background.key_in(image, k, position) >=
                                       thresholds[image * (classes - 1) + k - 1];
    }
    marks[i] = counts_here && targets.is_background(image, position);
  }
};

// Marks randomly chosen background: kSamplers indices share the random numbers of an image.
template <typename T>
struct SampleBackground {
  static constexpr int64_t kSamplers = 256;
  HardestBackground<T> background;
  uint64_t seed, layer, pass;
  const uint64_t* live_pass;
  int64_t first_image;  // images of the batch before these
  uint8_t* marks;
  CREMA_HD void operator()(int64_t i) const {
    const int64_t image = i / kSamplers, classes = background.classes,
                  positions = background.targets.positions;
    double objects = 0;
    for (int64_t k = 1; k < classes; ++k) objects += background.counts[image * classes + k];
    const uint64_t who = mix(layer, static_cast<uint64_t>(first_image + image));
    const Random random = PassRandom{{seed, mix(who, pass)}, who, live_pass}.get();
    const int64_t samples = background.sampling.wanted(objects, 4 * (classes - 1));
    for (int64_t draw = i % kSamplers; draw < samples; draw += kSamplers) {
      const int64_t position = random.word(draw) % positions;
      if (background.targets.is_background(image, position))
        marks[image * positions + position] = 1;
    }
  }
};

// Sums over all positions: how many count, those of objects, and the weights of both kinds.
constexpr int kFieldSums = 4;

// Weights of a position before normalization, by kind.
template <typename Real>
struct FieldWeights {
  FieldTargets<Real> targets;
  bool by_overlap;
  const uint8_t* marks;
  CREMA_HD bool is_object(int64_t image, int64_t position) const {
    return targets.is_object(targets.label(image, position));
  }
  CREMA_HD Real of_object(int64_t image, int64_t position) const {
    return by_overlap ? targets.at(image, kTargetChannels - 1, position) : Real(1);
  }
  template <typename T>
  CREMA_HD T operator()(int64_t sum, int64_t image, int64_t position) const {
    const bool object = is_object(image, position),
               mark = marks[image * targets.positions + position];
    if (sum == 0) return T(object || mark);
    if (sum == 1) return T(object);
    if (sum == 2) return object ? of_object(image, position) : T(0);
    return T(!object && mark);
  }
};

// Factors of the weights of objects, background and boxes.
struct FieldFactors {
  FieldSampling sampling;
  double* factors;
  CREMA_HD void operator()(int64_t, const double* sums) const {
    const double counted = sums[0], objects = sums[1], object_sum = sums[2],
                 background_sum = sums[3];
    const bool balanced = sampling.balanced && object_sum > 0;
    factors[0] = balanced ? (1 - sampling.background_share) / object_sum : 1 / counted;
    factors[1] = balanced ? sampling.background_share / background_sum : 1 / counted;
    factors[2] = sampling.box_factor / objects;
  }
};

template <typename T>
struct WriteFieldWeights {
  FieldWeights<T> weights;
  const double* factors;
  T *class_weights, *box_weights;
  CREMA_HD void operator()(int64_t image, int64_t position) const {
    const int64_t i = image * weights.targets.positions + position;
    const bool object = weights.is_object(image, position);
    class_weights[i] =
        object
            ? static_cast<T>(static_cast<double>(weights.of_object(image, position)) * factors[0])
        : weights.marks[i] ? static_cast<T>(factors[1])
                           : T(0);
    box_weights[i] = object ? static_cast<T>(factors[2]) : T(0);
  }
};

inline size_t field_sampling_workspace(int64_t images, int64_t classes, int64_t positions,
                                       DType dtype) {
  return 3 * sizeof(double) + static_cast<size_t>(images * (classes - 1)) * sizeof(uint64_t) +
         static_cast<size_t>(images * classes) * size_of(dtype) +
         static_cast<size_t>(images * positions);
}

// Weights of each position in the classification and box sums, both (images, positions). `sampler`:
// the caller sets what its random numbers depend on; the rest is filled in.
template <typename T>
void sample_fields(Context& context, const FieldSampling& sampling, const FieldTargets<T>& targets,
                   int64_t images, int64_t classes, const T* scores, const LabelNote& note,
                   SampleBackground<T> sampler, void* workspace, T* class_weights, T* box_weights) {
  auto* const factors = static_cast<double*>(workspace);
  auto* const thresholds = reinterpret_cast<uint64_t*>(factors + 3);
  T* const counts = reinterpret_cast<T*>(thresholds + images * (classes - 1));
  auto* const marks = reinterpret_cast<uint8_t*>(counts + images * classes);
  parallel_sum<T>(context, {images * classes, 1, targets.positions},
                  FieldLabelCounts<T>{targets, classes, note}, {counts});
  const HardestBackground<T> background{targets, sampling, classes, scores, counts};
  if (sampling.hardest)
    top_k_thresholds(context, images * (classes - 1), targets.positions, background, thresholds);
  parallel_for(context, images * targets.positions,
               MarkBackground<T>{background, thresholds, marks});
  if (sampling.drawn) {
    sampler.background = background;
    sampler.marks = marks;
    parallel_for(context, images * sampler.kSamplers, sampler, sampler.kSamplers);
  }
  const FieldWeights<T> weights{targets, sampling.by_overlap, marks};
  parallel_totals<T, kFieldSums>(context, images, targets.positions, weights,
                                 FieldFactors{sampling, factors});
  parallel_rows(context, images, targets.positions,
                WriteFieldWeights<T>{weights, factors, class_weights, box_weights});
}

}  // namespace crema
