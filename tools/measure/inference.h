// Times whole forward passes, as inference runs them.
#pragma once

#include "net/net.h"
#include "tools/console/program_log.h"
#include "tools/measure/repeated.h"

namespace crema {

// For a net that plans no gradients. After a warm-up, passes are timed as time_steps() says; their
// inputs are on the device already. Logs the median, samples per second, the memory that is
// reserved, and percentiles.
NetTimes time_inference(ProgramLog& log, const TimingFlags& flags, Net& net);

}  // namespace crema
