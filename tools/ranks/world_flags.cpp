#include "tools/ranks/world_flags.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/system.h"
#include "device/host_limits.h"
#include "tools/console/error_text.h"
#include "tools/devices.h"
#include "tools/flags/numbers_of.h"

namespace crema {
namespace {

bool names_several(const std::string& flag) {
  return flag == "all" || flag.find(',') != std::string::npos;
}

void check_flags(const RankFlags& flags) {
  require(flags.rank_timeout > 0, "-rank_timeout is ", flags.rank_timeout,
          "; expected the seconds after which a rank that keeps the others waiting counts as lost");
  require(flags.batch_mode == "per_gpu" || flags.batch_mode == "total", "-batch_mode ",
          flags.batch_mode,
          ": expected per_gpu (batch_size is that of each rank) or total (of all ranks together)");
}

// Ranks connect before flags are checked, so that one of them tells the user what is wrong.
double meeting_timeout(const RankFlags& flags) {
  return flags.rank_timeout > 0 ? flags.rank_timeout : RankFlags().rank_timeout;
}

// If the launcher leaves all processors to each rank, the ranks of a machine would compete: this
// one takes its part.
void share_processors(const Launch& launch) {
  cpu_set_t all, mine;
  CPU_ZERO(&mine);
  if (sched_getaffinity(0, sizeof all, &all) != 0) return;
  const int count = CPU_COUNT(&all), ranks = launch.local_ranks;
  if (count < sysconf(_SC_NPROCESSORS_ONLN) || count < ranks) return;
  for (int cpu = 0, number = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &all)) continue;
    const bool is_mine = number * ranks / count == launch.local_rank;
    if (is_mine) CPU_SET(cpu, &mine);
    ++number;
  }
  sched_setaffinity(0, sizeof mine, &mine);
}

// mpirun gives each rank a single core if there are few ranks.
void warn_of_idle_processors(ProgramLog& log, const Launch& launch) {
  const long all = sysconf(_SC_NPROCESSORS_ONLN);
  const int each = usable_processors();
  if (2 * each * launch.local_ranks > all) return;
  log.warning(cat("The ", launch.local_ranks, " ranks of this machine may use ", each, " of its ",
                  all, " processors each: ", launch.launcher,
                  " binds them so; with mpirun --bind-to none they share all"));
}

// Nothing ends an MPI start in which one rank hangs. While this lives, it ends the process after
// the timeout and the time that the ranks need to report a missing one.
class StartLimit {
 public:
  StartLimit(ProgramLog& log, const Launch& launch, double timeout)
      : thread_([&log, &launch, timeout](const std::stop_token& over) {
          std::mutex mutex;
          std::condition_variable_any changed;
          std::unique_lock<std::mutex> lock(mutex);
          // One rank tells the user, if it can.
          const double seconds = timeout + 3 + std::min(launch.rank, 10);
          changed.wait_for(lock, over, std::chrono::duration<double>(seconds),
                           [] { return false; });
          if (over.stop_requested()) return;
          log.error(cat("the ", launch.ranks, " ranks have not connected within ", timeout,
                        " s, and ", launch.launcher, " does not say which of them hangs"));
          _exit(1);
        }) {}

 private:
  std::jthread thread_;
};

}  // namespace

std::vector<int> gpus_of_ranks(ProgramLog& log, const std::string& gpu, const SolverFile& file) {
  std::vector<int> gpus;
  if (names_several(gpu)) {
    gpus = gpus_of(gpu);
  } else if (gpu.empty() && file.solver.has_solver_mode() &&
             file.solver.solver_mode() == SolverParameter::GPU && gpu_count() > 0) {
    const int count = gpu_count();
    for (const int number : file.solver.device_id()) {
      if (number >= 0 && number < count) {
        gpus.push_back(number);
      } else {
        log.warning(cat(file.where("device_id"), ": device_id names GPU ", number,
                        ", but this machine has ", count, count == 1 ? " GPU" : " GPUs",
                        ": it is left out"));
      }
    }
  }
  return gpus.size() > 1 ? gpus : std::vector<int>();
}

std::unique_ptr<World> meet_ranks(ProgramLog& log, const RankFlags& flags, const Launch& launch) {
  if (launch.rank > 0) log.only_errors();
  if (launch.launcher != "crema") log.no_status();
  share_processors(launch);
  warn_of_idle_processors(log, launch);
  std::unique_ptr<World> world;
  {
    const double timeout = meeting_timeout(flags);
    const StartLimit limit(log, launch, timeout);
    world = meet(launch, timeout);
  }
  world->divides_batches = flags.batch_mode == "total";
  return world;
}

std::string gpu_of_rank(const Launch& launch, const std::string& gpu, bool wanted) {
  if (gpu.empty() && (!wanted || gpu_count() == 0)) return "";
  const std::string flag = gpu.empty() ? "all" : gpu;
  const std::vector<int> gpus = gpus_of(flag);
  const auto local = static_cast<size_t>(launch.local_rank);
  // One that is named alone is for all ranks of the machine.
  const bool shared = gpus.size() == 1 && flag != "all";
  require(shared || local < gpus.size(), "rank ", launch.rank, " is number ", local,
          " on its machine, but -gpu ", flag, " gives ", gpus.size(),
          " GPUs there: start as many ranks on it as it has GPUs");
  return cat(shared ? gpus[0] : gpus[local]);
}

ExchangeOptions exchange_of_flags(const ExchangeFlags& flags) {
  ExchangeOptions options;
  options.wire = wire_named(flags.wire);
  if (flags.buckets.empty()) return options;
  const std::vector<double> sizes = numbers_of("buckets", flags.buckets, 3, 0.001);
  const auto bytes = [](double mebibytes) { return std::llround(mebibytes * (1 << 20)); };
  BucketSizes& buckets = options.buckets.emplace();
  buckets.others = bytes(sizes[sizes.size() > 1 ? 1 : 0]);
  buckets.first = sizes.size() > 1 ? bytes(sizes[0])
                                   : std::min(buckets.others, bucket_sizes(Device::cpu).first);
  if (sizes.size() > 2) buckets.last = bytes(sizes[2]);
  return options;
}

int run_on_rank(ProgramLog& log, const RankFlags& flags, World& world,
                const std::function<int()>& work) {
  try {
    check_flags(flags);
    return work();
  } catch (const RankLost& lost) {
    if (!lost.told()) log.error(lost.what());
  } catch (const std::exception& error) {
    if (!world.fail(error.what())) return 1;
    const std::string who =
        world.rank == 0 ? "" : cat("rank ", world.rank, " on ", host_name(), ": ");
    log.error(who + error_text(error));
  }
  return 1;
}

std::string from_rank_0(World* world, const std::string& text) {
  return world ? world->gather(world->rank == 0 ? text : "")[0] : text;
}

std::vector<std::string> from_rank_0(World* world, const std::vector<std::string>& texts) {
  if (!world) return texts;
  std::string joined;
  for (const std::string& text : texts) joined += text + '\n';
  std::vector<std::string> all = split(from_rank_0(world, joined), '\n');
  if (!all.empty()) all.pop_back();  // behind the last end of line
  return all;
}

}  // namespace crema
