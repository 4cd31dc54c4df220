// Which places of a map of MS-CNN count in its loss, and how much: those of objects, and background
// that is drawn or has the largest scores. For .cu files only, as device/parallel.h.
#pragma once

#include "base/random.h"
#include "kernels/core/labels.h"
#include "kernels/core/least_ranks.h"
#include "kernels/core/rank.h"
#include "kernels/core/reduce.h"
#include "layers/detection/field_boxes.h"

namespace crema {

struct FieldSampling {
  bool all = false, drawn = false, hardest = false;  // of the background
  float multiple = 1;  // so many of it as there are objects, drawn or the hardest of a class
  bool by_overlap = false, balanced = false;
  double background_share = 0.5, box_factor = 0.25;

  CREMA_HD int64_t wanted(double objects, int64_t least) const {
    const auto share = static_cast<int64_t>(static_cast<float>(objects) * multiple);
    return share > least ? share : least;
  }
};

// How many objects each class of an image has. Notes labels that are no class.
template <typename Real>
struct FieldLabelCounts {
  FieldTargets<Real> targets;
  int64_t classes;
  LabelNote note;
  template <typename T>
  CREMA_HD T operator()(int64_t k, int64_t, int64_t place) const {
    const int64_t image = k / classes;
    const int label = targets.label(image, place);
    if (!targets.is_object(label)) return T(0);
    if (label < 0 || label >= classes) note.write(image * targets.places + place, label);
    return T(label == k % classes);
  }
};

// The background of an image, as a list for each class from 1 on, by its scores; of equal ones the
// last place comes first.
template <typename T>
struct HardestBackground {
  FieldTargets<T> targets;
  FieldSampling sampling;
  int64_t classes;
  const T *scores, *counts;  // counts: (images, classes)
  CREMA_HD uint64_t rank_in(int64_t image, int64_t label, int64_t place) const {
    const T score = scores[(image * (classes + 4) + label) * targets.places + place];
    return rank_of(static_cast<float>(score), targets.places - 1 - place);
  }
  CREMA_HD uint64_t rank(int64_t list, int64_t place) const {
    const int64_t image = list / (classes - 1), label = list % (classes - 1) + 1;
    return targets.is_background(image, place) ? rank_in(image, label, place) : 0;
  }
  CREMA_HD int64_t wanted(int64_t list) const {
    return sampling.wanted(counts[list / (classes - 1) * classes + list % (classes - 1) + 1], 4);
  }
};

template <typename T>
struct MarkBackground {
  HardestBackground<T> background;
  const uint64_t* least;  // of each list
  uint8_t* marks;
  CREMA_HD void operator()(int64_t i) const {
    const auto& [targets, sampling, classes, scores, counts] = background;
    const int64_t image = i / targets.places, place = i % targets.places;
    bool counts_here = sampling.all;
    for (int64_t k = 1; k < classes && sampling.hardest; ++k) {
      counts_here = counts_here ||
                    background.rank_in(image, k, place) >= least[image * (classes - 1) + k - 1];
    }
    marks[i] = counts_here && targets.is_background(image, place);
  }
};

// Marks what is drawn: kDrawers of them share the draws of an image.
template <typename T>
struct DrawBackground {
  static constexpr int64_t kDrawers = 256;
  HardestBackground<T> background;
  uint64_t seed, layer, pass;
  const uint64_t* live_pass;
  uint8_t* marks;
  CREMA_HD void operator()(int64_t i) const {
    const int64_t image = i / kDrawers, classes = background.classes,
                  places = background.targets.places;
    double objects = 0;
    for (int64_t k = 1; k < classes; ++k) objects += background.counts[image * classes + k];
    const uint64_t who = mix(layer, static_cast<uint64_t>(image));
    const Random random = PassRandom{{seed, mix(who, pass)}, who, live_pass}.get();
    const int64_t draws = background.sampling.wanted(objects, 4 * (classes - 1));
    for (int64_t draw = i % kDrawers; draw < draws; draw += kDrawers) {
      const int64_t place = random.word(draw) % places;
      if (background.targets.is_background(image, place)) marks[image * places + place] = 1;
    }
  }
};

// Sums over all places: how many count, those of objects, and both kinds' weights.
constexpr int kFieldSums = 4;

// Of a place before it is divided, by the kind.
template <typename Real>
struct FieldWeights {
  FieldTargets<Real> targets;
  bool by_overlap;
  const uint8_t* marks;
  CREMA_HD bool is_object(int64_t image, int64_t place) const {
    return targets.is_object(targets.label(image, place));
  }
  CREMA_HD Real of_object(int64_t image, int64_t place) const {
    return by_overlap ? targets.at(image, kTargetChannels - 1, place) : Real(1);
  }
  template <typename T>
  CREMA_HD T operator()(int64_t sum, int64_t image, int64_t place) const {
    const bool object = is_object(image, place), mark = marks[image * targets.places + place];
    if (sum == 0) return T(object || mark);
    if (sum == 1) return T(object);
    if (sum == 2) return object ? of_object(image, place) : T(0);
    return T(!object && mark);
  }
};

// What the weights of objects and of background are multiplied with, and those of boxes.
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
  CREMA_HD void operator()(int64_t image, int64_t place) const {
    const int64_t i = image * weights.targets.places + place;
    const bool object = weights.is_object(image, place);
    class_weights[i] =
        object ? static_cast<T>(static_cast<double>(weights.of_object(image, place)) * factors[0])
        : weights.marks[i] ? static_cast<T>(factors[1])
                           : T(0);
    box_weights[i] = object ? static_cast<T>(factors[2]) : T(0);
  }
};

inline size_t field_sampling_workspace(int64_t images, int64_t classes, int64_t places,
                                       DType dtype) {
  return 3 * sizeof(double) + static_cast<size_t>(images * (classes - 1)) * sizeof(uint64_t) +
         static_cast<size_t>(images * classes) * size_of(dtype) +
         static_cast<size_t>(images * places);
}

// Weights of each place in the sum for classes and in that for boxes, both (images, places).
// `draws`: seed, layer and pass are its; the rest is filled in.
template <typename T>
void sample_fields(Context& context, const FieldSampling& sampling, const FieldTargets<T>& targets,
                   int64_t images, int64_t classes, const T* scores, const LabelNote& note,
                   DrawBackground<T> draws, void* workspace, T* class_weights, T* box_weights) {
  auto* const factors = static_cast<double*>(workspace);
  auto* const least = reinterpret_cast<uint64_t*>(factors + 3);
  T* const counts = reinterpret_cast<T*>(least + images * (classes - 1));
  auto* const marks = reinterpret_cast<uint8_t*>(counts + images * classes);
  parallel_sum<T>(context, {images * classes, 1, targets.places},
                  FieldLabelCounts<T>{targets, classes, note}, {counts});
  const HardestBackground<T> background{targets, sampling, classes, scores, counts};
  if (sampling.hardest)
    least_ranks(context, images * (classes - 1), targets.places, background, least);
  parallel_for(context, images * targets.places, MarkBackground<T>{background, least, marks});
  if (sampling.drawn) {
    draws.background = background;
    draws.marks = marks;
    parallel_for(context, images * draws.kDrawers, draws, draws.kDrawers);
  }
  const FieldWeights<T> weights{targets, sampling.by_overlap, marks};
  parallel_totals<T, kFieldSums>(context, images, targets.places, weights,
                                 FieldFactors{sampling, factors});
  parallel_rows(context, images, targets.places,
                WriteFieldWeights<T>{weights, factors, class_weights, box_weights});
}

}  // namespace crema
