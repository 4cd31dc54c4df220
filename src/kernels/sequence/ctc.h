// Connectionist temporal classification: how probable it is that the labels of a sequence come out
// of its steps, whichever way they are aligned.
//   A path names a class a step; joining equal neighbours and then dropping blanks gives its labels.
//   cost = -log(sum over the paths that give the labels of the product of their probabilities)
// Computed in logarithms, forward and backward along the states blank, label 0, blank, label 1,
// ...; a probability counts as at least the smallest normal float32. Labels that do not fit into
// the steps cost nothing and have no gradient.
#pragma once

#include "tensor/tensor.h"

namespace crema {

struct CtcCase {
  int64_t steps = 0, sequences = 0, classes = 0;
  int64_t labels = 0;  // at most, a sequence
  int64_t blank = 0;
  int64_t states() const { return 2 * labels + 1; }
};

// Written by forward, read by backward.
struct CtcSaved {
  Tensor probabilities;  // (steps, sequences, classes), the softmax of the scores
  Tensor forward;        // (steps, sequences, states)
  Tensor costs;          // (sequences)
};

// What a sequence is.
struct CtcTargets {
  Tensor labels;   // int32 (sequences, labels): classes, none of them the blank; -1 behind the last
  Tensor lengths;  // int32 (2, sequences): steps, and labels or -1 when they are wrong (costs NaN)
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
