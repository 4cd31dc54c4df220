// The processes of our own launcher: this program once more for each rank.
#pragma once

#include <string>
#include <vector>

namespace crema {

struct RanksEnd {
  int code = 0;         // 0 when all ranks ended with 0, else that of the first that did not
  std::string message;  // when signals have ended ranks and none is left that could say so
};

// Starts one process for each command, whose first word is the name of the program, and waits until
// all have ended. Their variables CREMA_* say who they are (comm/launcher.h). Call it before the
// program starts threads.
//
// When one fails, the others may end by themselves for `patience` seconds, then they get SIGTERM,
// and as much later SIGKILL. They are killed when this process is. SIGINT, SIGTERM and SIGHUP that
// were sent to this process alone go on to rank 0, which tells the others; those of a terminal
// reach all of them.
RanksEnd run_ranks(const std::vector<std::vector<std::string>>& commands, double patience = 5);

}  // namespace crema
