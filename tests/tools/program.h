// Runs the program's verbs as a user does, each test in a separate folder.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "support.h"

namespace crema::tests {

struct Outcome {
  int code = -1;    // exit code; 128 + number for a signal
  std::string out;  // stdout
  std::string err;  // stderr: the log
  std::vector<std::string> messages()
      const;  // of the log, without prefixes; a message may have several lines
  // The messages whose level is E.
  std::vector<std::string> errors() const;
};

// Shell text that hides the user's own flags: the config file is .config/crema/flags in `folder`.
std::string own_environment(const Folder& folder);

// `command` is a shell line such as "crema train -solver solver.prototxt", run in `folder` or a
// folder within; its first word is one of the programs that the build made.
Outcome run(const Folder& folder, const std::string& command, const std::string& within = ".");

// Any shell text; $TOOLS is the folder of the programs. The log of a program in it is in .stderr
// while it runs.
Outcome run_shell(const Folder& folder, const std::string& script, const std::string& within = ".");

// Shell text after which programs may use about this much more than their libraries do. It limits
// the address space: sanitizers map far more than that, and an emulator (arm64.sh) counts its own
// memory, so a test that needs this is skipped there.
std::string limit_memory(int megabytes);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool memory_can_be_limited = false;
#else
inline const bool memory_can_be_limited = !std::getenv("QEMU_CPU");
#endif

}  // namespace crema::tests
