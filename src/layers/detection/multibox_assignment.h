// The host's part of MultiBoxLoss: which priors of a batch match which objects, and which count.
#pragma once

#include <map>
#include <vector>

#include "device/context.h"
#include "layers/detection/box_matching.h"
#include "proto/params/forks_detection.pb.h"
#include "tensor/tensor.h"

namespace crema {

constexpr int32_t kUncounted = -1;  // label of a prior whose class does not count

BoxCoding box_coding(PriorBoxParameter::CodeType type);
inline int64_t prior_count(const Shape& priors) { return priors.count() / 8; }

// State of one pass on the host.
struct MultiBoxAssignment {
  std::map<int, std::vector<Object>> objects;  // by image
  std::vector<Box> priors;
  std::vector<BoxVariances> variances;
  std::vector<float> predictions;  // empty if not needed
  std::vector<BoxMatches> found;   // images x coordinate classes
  // images x priors x coordinate classes: the object's row in its bottom, or -1.
  std::vector<int32_t> matches;
  std::vector<int32_t> labels;  // images x priors: a class, or kUncounted
};

class MultiBoxAssigner {
 public:
  MultiBoxAssigner(const MultiBoxLossParameter& p, MultiBoxLossParameter::MiningType mining);

  // bottom: those of the layer. No mining yet: all background priors count.
  MultiBoxAssignment assign(Context& context, const std::vector<Tensor>& bottom) const;
  MatchRule match_rule() const;
  MiningRule mining_rule() const;
  // Keeps the hardest by `losses`, images x priors.
  void mine(MultiBoxAssignment& a, const std::vector<float>& losses) const;

 private:
  std::vector<Box> decoded(const MultiBoxAssignment& a, int64_t image, int64_t k) const;
  void match(MultiBoxAssignment& a, int64_t image) const;
  void write(MultiBoxAssignment& a, int64_t image, const std::vector<int>* counts) const;

  const MultiBoxLossParameter& p_;
  MultiBoxLossParameter::MiningType mining_;
  int classes_, background_;
  int64_t each_;  // coordinate classes: 1, or one set of coordinates per class
};

}  // namespace crema
