// The solver and the net of a run: from its folder, or, if it has none, from the files that it was
// started with if they have not changed.
#pragma once

#include <string>

#include "base/log.h"
#include "solver/readers/metrics_file.h"

namespace crema {

struct RunTexts {
  std::string solver{}, net{};  // "": not there
  std::string net_file{};       // the path of `net`
  // Only the user can have written it. Layers are created only for such nets, because a layer reads
  // the files that its net names.
  bool own = false;
};

RunTexts texts_in(const std::string& folder);
RunTexts texts_of(const Run& run, const std::string& folder);

// The net, for training, as SVG; "" if it cannot be drawn, which is logged. One that is not the
// user's own is drawn from its text, without shapes.
std::string drawing_of(const RunTexts& texts, Log& log);

}  // namespace crema
