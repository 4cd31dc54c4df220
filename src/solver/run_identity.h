// What a training is, in short: to tell whose a line of metrics, a net or a file of weights is.
#pragma once

#include <cstdint>
#include <string>

#include "net/net.h"
#include "proto/solver.pb.h"

namespace crema {

// A number as 16 digits.
std::string hex_of(uint64_t number);
// Of a net as it was read (upgraded, all phases): equal for files that differ in blanks, comments
// and the age of their form alone.
std::string hash_of_text(const NetParameter& net);
// Of the net and of how it is trained.
std::string hash_of_recipe(const NetParameter& net, const SolverParameter& solver);
// Of the values of all parameters: equal for equal weights of nets with equal fingerprint_of().
std::string hash_of_weights(Net& net);

}  // namespace crema
