#include "tools/runs/spike_advice.h"

#include "base/strings.h"
#include "tools/flags/shell_words.h"

namespace crema {

std::string replay_command(const std::string& folder, int64_t iteration) {
  return cat("crema replay -run ", shell_quoted(folder), " -iteration ", iteration);
}

void SpikeAdvice::read(const Event& event) {
  const auto* const spike = std::get_if<event::LossSpike>(&event);
  if (!spike) return;
  log_.info(cat("To see its samples: ", replay_command(folder_, spike->iteration)));
}

}  // namespace crema
