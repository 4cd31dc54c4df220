// The page of an iteration that was computed again: its samples, its layers and its parameters.
#pragma once

#include <string>
#include <vector>

#include "solver/replay/opened_iteration.h"

namespace crema {

struct IterationReport {
  std::string run;                    // its folder, as messages name it
  std::vector<std::string> about;     // what was found, in sentences
  std::vector<std::string> warnings;  // what differs from the run
  std::vector<std::string> classes;   // their names; empty: they have numbers only
  std::vector<std::string> files;     // of tensors next to the page
};

std::string iteration_page(const OpenedIteration& opened, const IterationReport& report);

// "cat → dog, loss 2.31", or what is known of it.
std::string sample_caption(const OpenedSample& sample, const std::vector<std::string>& classes);

// Its samples, the highest loss first, as reports of the run show them.
event::Pictures sample_pictures(const OpenedIteration& opened,
                                const std::vector<std::string>& classes);

}  // namespace crema
