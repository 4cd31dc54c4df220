// The fields of a solver by name: whether they are given, and the range of each number.
#pragma once

#include "net/check/finding.h"
#include "net/prototxt/prototxt.h"

namespace crema {

// Whether a field is given; of a list, at least once.
bool is_set(const SolverParameter& solver, const std::string& field);

// Numbers outside their range, each with its place and what to write instead. An error each.
Findings out_of_range(const SolverFile& file);

// The place of the field that a message begins with, "gamma is -1, ..."; else that of `otherwise`.
std::string place_of_message(const SolverFile& file, const std::string& message,
                             const std::string& otherwise);

}  // namespace crema
