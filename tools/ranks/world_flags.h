// Several ranks: finds out whether this command should start them, or is one of them, from -gpu,
// -batch_mode, -rank_timeout and the launcher's environment variables.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/launcher.h"
#include "comm/world.h"
#include "net/prototxt/prototxt.h"
#include "solver/ranks/gradient_exchange.h"
#include "tools/console/program_log.h"
#include "tools/flags/flags_of.h"

namespace crema {

// For a command without a launcher: the GPUs that -gpu names, or the solver's device_id without
// -gpu, if there are several, one per rank; otherwise none.
std::vector<int> gpus_of_ranks(ProgramLog& log, const std::string& gpu, const SolverFile& file);

// Meets the other ranks of a launch. From here on ranks above 0 log errors only.
using RankFlags = FlagsOf<"batch_mode", "rank_timeout">;
std::unique_ptr<World> meet_ranks(ProgramLog& log, const RankFlags& flags, const Launch& launch);

// This rank's GPU as a value of -gpu: of those that `gpu` names, or of all if the solver requests a
// GPU, the one with the rank's number on this machine. "": the CPU.
std::string gpu_of_rank(const Launch& launch, const std::string& gpu, bool wanted);

// How ranks exchange gradients: -wire and -buckets.
using ExchangeFlags = FlagsOf<"wire", "buckets">;
ExchangeOptions exchange_of_flags(const ExchangeFlags& flags);

// Does `work` as one of several ranks, and returns the exit code. One rank reports an error,
// immediately: ending the world takes a moment, in which a launcher may end this process.
int run_on_rank(ProgramLog& log, const RankFlags& flags, World& world,
                const std::function<int()>& work);

// A rank above 0 has what rank 0 gives.
std::string from_rank_0(World* world, const std::string& text);
std::vector<std::string> from_rank_0(World* world, const std::vector<std::string>& texts);

}  // namespace crema
