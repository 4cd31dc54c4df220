// Gives readers damaged files, one after another, in a separate process: each must be read, or be
// refused with an Error, in bounded time and memory.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "fuzz/damage.h"

namespace crema::tests {

// A reader's input: contents by file name.
using Files = std::map<std::string, std::string>;

struct Target {
  const char* name;
  // Intact inputs, at least one of which must be accepted. Called once.
  std::function<std::vector<Files>()> corpus;
  // Changes one of them; `other` is a second one.
  std::function<void(Dice& dice, Files& files, const Files& other)> damage;
  // Reads it; the files are in `folder`, which is also the working directory.
  std::function<void(const std::string& folder, const Files& files)> read;
};

// As many inputs as the time allows: this target's part of CREMA_FUZZ_SECONDS (16), shared by all
// targets. Inputs are a function of CREMA_FUZZ_SEED (1) and their number (CREMA_FUZZ_FIRST: of the
// first). Failing inputs stay in CREMA_FUZZ_FAILURES (fuzz_failures); CREMA_FUZZ_REPLAY names one
// of them, which is then read in this process, under a debugger for example.
void fuzz(const Target& target);

// A file in tests/goldens.
std::string golden(const std::string& name);
// All files of a folder in the repository with this suffix, in order.
std::vector<std::string> contents(const std::string& folder, const std::string& extension);

}  // namespace crema::tests
