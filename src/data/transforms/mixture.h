// Mixture: samples of one batch mixed in pairs, in training (transform_param { augment { mixup
// cutmix } }).
//   mixup    s * own + (1 - s) * partner's       s ~ Beta(alpha, alpha)
//   cutmix   own, with a rectangle of the partner's at the same position, of area 1 - s of the
//   whole
//            before clipping at the borders
// Labels become soft labels with weight s for the own class, for cutmix after clipping. Both
// samples of a pair are mixed with the other's original, each with its own s. Random numbers depend
// only on the number of the batch and the sample's position. If ranks share a batch, both samples
// of a pair are in one rank's part: the pairs depend on the number of ranks, but the numbers drawn
// for a sample do not.
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
  // For the layer of this type. Error names what is missing.
  Mixture(const AugmentParameter& parameter, const std::string& type, const Random& random);

  bool any() const { return mixup() || cutmix(); }
  // For messages.
  const char* name() const { return mixup() ? "mixup" : "cutmix"; }
  int64_t classes() const { return parameter_.classes(); }

  // Error says why samples of these shapes cannot be mixed.
  void check(const Shape& values, const Shape& label) const;
  // All of the label's class. Error, without the record's name, when it is none.
  void write_shares(float label, float* shares) const;
  // The index in the batch of the sample to mix with; its own if it stays alone. It is its
  // partner's partner.
  int64_t partner(int64_t batch, int64_t in_batch, int64_t batch_size) const;
  // shape: of the values, in which rectangles are cut from the last two axes.
  void mix_pair(const MixedSample& one, const MixedSample& other, const Shape& shape) const;

 private:
  // How to mix a sample.
  struct Part {
    float share = 1;  // of its own
    bool cut = false;
    int64_t top = 0, left = 0, bottom = 0, right = 0;  // the rectangle from the partner
    void apply(float* own, const float* partners, int64_t row, int64_t count) const;
  };
  bool mixup() const { return parameter_.has_mixup(); }
  bool cutmix() const { return parameter_.has_cutmix(); }
  Part draw(int64_t position, int64_t height, int64_t width) const;

  AugmentParameter parameter_;
  Random random_;
};

}  // namespace crema
