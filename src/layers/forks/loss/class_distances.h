// Common code of a fork's losses whose scores are distances to the centres of all classes. For .cu
// files only, like device/parallel.h.
#pragma once

#include "layers/loss/labelled_loss.h"

namespace crema {

// Row n of x has the distances of example n to each class. With a label out of range the distance
// to the own class is NaN.
template <typename T>
struct ClassDistances {
  const T* x;
  NotedLabels<T> labels;

  CREMA_HD T at(int64_t n, int64_t k) const { return x[n * labels.classes + k]; }
  CREMA_HD bool is_own(int64_t n, int64_t k) const { return labels.at(n) == k; }
  CREMA_HD T own(int64_t n) const {
    const int label = labels.noted(n);
    return label < 0 ? T(NAN) : at(n, label);
  }
  // The nearest of the other classes; 0 if there is only one class.
  CREMA_HD int64_t nearest_other(int64_t n) const {
    int64_t nearest = is_own(n, 0) && labels.classes > 1 ? 1 : 0;
    for (int64_t k = nearest + 1; k < labels.classes; ++k)
      nearest = !is_own(n, k) && at(n, k) < at(n, nearest) ? k : nearest;
    return nearest;
  }
};

template <typename T>
struct NearestOthers {
  ClassDistances<T> distances;
  T* nearest;
  CREMA_HD void operator()(int64_t n) const {
    nearest[n] = static_cast<T>(distances.nearest_other(n));
  }
};

inline void require_class_distances(const std::vector<Shape>& bottoms) {
  const Shape &x = bottoms[0], &labels = bottoms[1];
  require(x.axes() > 1 && labels.count() == x[0],
          "there must be one label for each row of distances to classes, but the bottoms are ",
          x.brief(), " and ", labels.brief());
}

}  // namespace crema
