// The processes of our own launcher: this program once more for each rank.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace crema {

// The words of a command, whose first is the program, with `-gpu GPU` in place of what it says of
// -gpu. takes_value: whether a flag without '=' is followed by its value.
std::vector<std::string> arguments_for_gpu(
    int gpu, const std::vector<std::string>& words,
    const std::function<bool(const std::string& flag)>& takes_value);

struct RanksEnd {
  int code = 0;         // 0 when all ranks ended with 0, else that of the first that did not
  std::string message;  // when signals have ended ranks and none is left that could say so
};

// Starts one process for each command, whose first word is the name of the program, and waits until
// all have ended. Their variables CREMA_* identify them (comm/launcher.h). Call it before the
// program starts threads.
//
// If one fails, the others have `patience` seconds to end by themselves, then they get SIGTERM, and
// at most a second later SIGKILL; a stopped process, which cannot end, gets that at once. They are
// killed if this process is. SIGINT, SIGTERM and SIGHUP to
// this process only are forwarded to rank 0, which tells the others; those from a terminal reach
// all of them.
RanksEnd run_ranks(const std::vector<std::vector<std::string>>& commands, double patience = 5);

}  // namespace crema
