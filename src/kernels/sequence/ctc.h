// Connectionist temporal classification: the probability that a sequence's steps produce its
// labels, over all alignments.
//   A path names one class per step; merging repeats and then dropping blanks gives its labels.
//   cost = -log(sum over the paths that give the labels of the product of their probabilities)
// Computed in log space, forward and backward along the states blank, label 0, blank, label 1, ...;
// probabilities are clamped to at least the smallest normal float32. Labels that do not fit into
// the steps have cost 0 and no gradient.
#pragma once

#include "tensor/tensor.h"

namespace crema {

struct CtcCase {
  int64_t steps = 0, sequences = 0, classes = 0;
  int64_t labels = 0;  // maximum per sequence
  int64_t blank = 0;
  int64_t states() const { return 2 * labels + 1; }
};

// Written by forward, read by backward.
struct CtcSaved {
  Tensor probabilities;  // (steps, sequences, classes), the softmax of the scores
  Tensor alpha;          // (steps, sequences, states): log probabilities of path prefixes
  Tensor costs;          // (sequences)
};

// The steps and labels of each sequence.
struct CtcTargets {
  Tensor labels;   // int32 (sequences, labels): classes, never the blank; padded with -1
  Tensor lengths;  // int32 (2, sequences): steps, and labels or -1 when they are invalid (cost NaN)
};

// scores: (steps, sequences, classes).
void ctc_forward(Context& context, const CtcCase& c, const Tensor& scores,
                 const CtcTargets& targets, const CtcSaved& saved);
// d_scores = factor * d_cost * the gradient of the sum of all costs; d_cost is a scalar.
void ctc_backward(Context& context, const CtcCase& c, const CtcTargets& targets,
                  const CtcSaved& saved, const Tensor& d_cost, double factor,
                  const Tensor& d_scores, const Tensor& workspace);
size_t ctc_workspace(const CtcCase& c, DType dtype);

}  // namespace crema
