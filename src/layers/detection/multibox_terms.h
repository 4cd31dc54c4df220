// The device's part of MultiBoxLoss: the classification and localization loss of each prior of each
// image, and their gradients. For .cu files only, like device/parallel.h.
#pragma once

#include <cstdint>

#include "device/parallel.h"
#include "kernels/pointwise/pointwise_math.h"
#include "layers/detection/multibox_assignment.h"

namespace crema {

enum class ClassLoss { softmax, focal, logistic };

template <typename T>
struct ClassTerm {
  ClassLoss kind;
  int64_t classes, coordinate_classes;
  int32_t background;
  T alpha = 1, gamma = 0;              // focal loss
  bool background_is_a_target = true;  // logistic: if false, the background has no class
  const T* scores = nullptr;           // (images * priors, classes)
  const int32_t* labels = nullptr;     // per prior: a class or kUncounted
  const int32_t* matches =
      nullptr;        // (images * priors, coordinate_classes): row of an object or -1
  T* sums = nullptr;  // (images * priors, 2), softmax and focal: written by loss for gradient

  CREMA_HD T target(int64_t prior, int64_t k) const {
    // A prior may match objects of several classes if each class has its own coordinates.
    if (coordinate_classes > 1 && k != background)
      return matches[prior * coordinate_classes + k] >= 0 ? T(1) : T(0);
    const bool own = labels[prior] == k;
    return own && (k != background || background_is_a_target) ? T(1) : T(0);
  }

  // 1 - p, clamped at 0 against rounding at p = 1.
  CREMA_HD static T rest(T p) { return p < 1 ? 1 - p : T(0); }

  // For a prior that counts.
  CREMA_HD T loss(int64_t prior) const {
    const T* x = scores + prior * classes;
    if (kind == ClassLoss::logistic) {
      T loss = 0;
      for (int64_t k = 0; k < classes; ++k) {
        const T size = x[k] > 0 ? x[k] : -x[k];
        loss += (x[k] > 0 ? x[k] : T(0)) - x[k] * target(prior, k) + log1p_of(exp_of(-size));
      }
      return loss;
    }
    T largest = x[0], sum = 0;
    for (int64_t k = 1; k < classes; ++k) largest = x[k] > largest ? x[k] : largest;
    for (int64_t k = 0; k < classes; ++k) sum += exp_of(x[k] - largest);
    sums[2 * prior] = largest;
    sums[2 * prior + 1] = sum;
    const T own = x[labels[prior]] - largest;
    const T cost = log(sum) - own;
    const T minimum = cost < T(87.3365) ? cost : T(87.3365);
    return kind == ClassLoss::focal ? minimum * alpha * pow(rest(exp_of(own) / sum), gamma)
                                    : minimum;
  }

  // With respect to score k; 0 if the prior does not count.
  CREMA_HD T gradient(int64_t prior, int64_t k) const {
    const int32_t label = labels[prior];
    if (label == kUncounted) return T(0);
    const T* x = scores + prior * classes;
    if (kind == ClassLoss::logistic) return sigmoid_of(x[k]) - target(prior, k);
    const T largest = sums[2 * prior], sum = sums[2 * prior + 1];
    T slope = 1;
    if (kind == ClassLoss::focal) {
      const T own = x[label] - largest, p = exp_of(own) / sum;
      // At p = 1 the derivative of the modulating factor is multiplied by the logarithm, which is
      // 0.
      const T fading = rest(p) > 0 ? gamma * p * pow(rest(p), gamma - 1) * (own - log(sum)) : T(0);
      slope = alpha * (pow(rest(p), gamma) - fading);
    }
    return slope * (exp_of(x[k] - largest) / sum - (label == k ? T(1) : T(0)));
  }
};

template <typename T>
struct CoordinateTerm {
  int64_t priors, coordinate_classes;
  BoxCoding coding;
  bool smooth;             // smooth L1; else half the square
  bool variances_in_code;  // the target is divided by the variances, the prediction not
  bool inside_only;        // coordinates of a box outside the image add no loss
  bool by_prediction;      // the test is on the predicted box, not on the prior
  const T *predictions, *boxes, *objects;  // boxes: (2, priors, 4); objects: rows of 8
  const int32_t* matches;

  CREMA_HD static Box box_at(const T* at) {
    return {static_cast<float>(at[0]), static_cast<float>(at[1]), static_cast<float>(at[2]),
            static_cast<float>(at[3])};
  }

  // The differences that the loss of the four coordinates is a function of, and the divisor of the
  // prediction in each.
  CREMA_HD bool differences(int64_t slot, T* z, T* divisor) const {
    const int32_t row = matches[slot];
    if (row < 0) return false;
    const int64_t prior = slot / coordinate_classes % priors;
    const Box box = box_at(boxes + prior * 4);
    BoxVariances variances;
    for (int i = 0; i < 4; ++i)
      variances.v[i] = static_cast<float>(boxes[(priors + prior) * 4 + i]);
    const T* x = predictions + slot * 4;
    const Box code = encode(coding, box, variances, box_at(objects + row * 8 + 3));
    const T wanted[4] = {code.x1, code.y1, code.x2, code.y2};
    Box position = box;
    if (inside_only && by_prediction)
      position = decode(coding, box, variances_in_code ? variances : BoxVariances(), box_at(x));
    const float corners[4] = {position.x1, position.y1, position.x2, position.y2};
    for (int i = 0; i < 4; ++i) {
      divisor[i] = variances_in_code ? T(1) : static_cast<T>(variances.v[i]);
      const bool left_out = inside_only && (corners[i] < 0 || corners[i] > 1);
      z[i] = left_out ? T(0) : x[i] / divisor[i] - wanted[i];
    }
    return true;
  }

  CREMA_HD T loss(int64_t slot) const {
    T z[4], divisor[4], sum = 0;
    if (!differences(slot, z, divisor)) return T(0);
    for (int i = 0; i < 4; ++i) {
      const T size = z[i] < 0 ? -z[i] : z[i];
      sum += !smooth || size < 1 ? z[i] * z[i] / 2 : size - T(0.5);
    }
    return sum;
  }

  CREMA_HD void gradient(int64_t slot, T factor, T* dx) const {
    T z[4] = {0, 0, 0, 0}, divisor[4] = {1, 1, 1, 1};
    differences(slot, z, divisor);
    for (int i = 0; i < 4; ++i) {
      const T slope = !smooth || (z[i] < 1 && z[i] > -1) ? z[i] : (z[i] > 0 ? T(1) : T(-1));
      dx[slot * 4 + i] = factor * slope / divisor[i];
    }
  }
};

}  // namespace crema
