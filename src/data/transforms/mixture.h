// Mixture: samples of one batch mixed in pairs, in training (transform_param { augment { mixup
// cutmix } }).
//   mixup    s * own + (1 - s) * partner's       s ~ Beta(alpha, alpha)
//   cutmix   own, with a rectangle of the partner's at its place, whose area is 1 - s of the whole
//            before it is cut off at the borders
// Labels become shares of the classes: s is the own one's, after the cut that of the area. Both
// samples of a pair are mixed with what the other was before, each with its own s. All that is
// drawn depends on the number of the batch and the sample's position alone. Where ranks share a
// batch, both samples of a pair are of one rank's part: which two are mixed depends on the number of
// ranks, but what is drawn for a sample does not.
#pragma once

#include "data/transforms/rng.h"
#include "proto/data.pb.h"
#include "tensor/shape.h"

namespace crema {

// Follows a Beta(alpha, alpha) distribution, alpha > 0.
float draw_beta(float alpha, Rng& rng);

// A sample of a batch.
struct MixedSample {
  int64_t position;  // in the endless traversal
  float* values;
  float* shares;  // of the classes
};

class Mixture {
 public:
  Mixture() = default;  // none
  // Of the layer of this type. Error says what is missing.
  Mixture(const AugmentParameter& parameter, const std::string& type, const Random& random);

  bool any() const { return mixup() || cutmix(); }
  // For messages.
  const char* name() const { return mixup() ? "mixup" : "cutmix"; }
  int64_t classes() const { return parameter_.classes(); }

  // Error says why samples of these shapes cannot be mixed.
  void check(const Shape& values, const Shape& label) const;
  // All of the label's class. Error, without the record's name, when it is none.
  void write_shares(float label, float* shares) const;
  // With which sample of its batch a sample is mixed; itself where it stays alone. It is its partner's
  // partner.
  int64_t partner(int64_t batch, int64_t in_batch, int64_t batch_size) const;
  // shape: of the values, in which rectangles are cut from the last two axes.
  void mix_pair(const MixedSample& one, const MixedSample& other, const Shape& shape) const;

 private:
  // What becomes of a sample.
  struct Part {
    float share = 1;  // of its own
    bool cut = false;
    int64_t top = 0, left = 0, bottom = 0, right = 0;  // what the partner's is
    void apply(float* own, const float* partners, int64_t row, int64_t count) const;
  };
  bool mixup() const { return parameter_.has_mixup(); }
  bool cutmix() const { return parameter_.has_cutmix(); }
  Part draw(int64_t position, int64_t height, int64_t width) const;

  AugmentParameter parameter_;
  Random random_;
};

}  // namespace crema
