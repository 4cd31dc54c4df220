// Learning-rate policies: the rate as a function of the iteration.
//   fixed      base_lr
//   step       base_lr * gamma ^ floor(iteration / stepsize)
//   exp        base_lr * gamma ^ iteration
//   inv        base_lr * (1 + gamma * iteration) ^ -power
//   multistep  base_lr * gamma ^ (number of stepvalues reached)
//   poly       base_lr * (1 - iteration / max_iter) ^ power
//   sigmoid    base_lr / (1 + e ^ (-gamma * (iteration - stepsize)))
#pragma once

namespace crema {

class SolverParameter;

// Error when the policy is unknown, or when a field that it needs is missing.
void check_learning_rate(const SolverParameter& solver);

// The rate of an iteration, rounded to float as in Caffe. `current_step` is the state of "step" and
// "multistep", which a snapshot stores; multistep raises it when the iteration reaches the next
// stepvalue.
double learning_rate(const SolverParameter& solver, int iteration, int* current_step);

}  // namespace crema
