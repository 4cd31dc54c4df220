#include "comm/launcher.h"

#include <charconv>
#include <cstdlib>

#include "base/error.h"

namespace crema {
namespace {

using Variable = std::function<const char*(const char* name)>;

class Environment {
 public:
  explicit Environment(const Variable& variable) : variable_(variable) {}

  std::string text(const char* name) const {
    const char* const value = variable_(name);
    return value ? value : "";
  }
  bool has(const char* name) const { return !text(name).empty(); }

  int64_t number(const char* name, int64_t min, int64_t max) const {
    const std::string value = text(name);
    int64_t number = 0;
    const char* const end = value.data() + value.size();
    const auto [at, error] = std::from_chars(value.data(), end, number);
    require(error == std::errc() && at == end && number >= min && number <= max, name, " is \"",
            value, "\" in the environment; expected a number from ", min, " to ", max,
            value.empty() ? ": the other variables of its launcher are set" : "");
    return number;
  }
  int count(const char* name) const { return static_cast<int>(number(name, 1, kMaxRanks)); }
  // A rank of `ranks`, which the variable `of` states.
  int rank(const char* name, const char* of, int ranks) const {
    const int rank = static_cast<int>(number(name, 0, kMaxRanks));
    require(rank < ranks, name, " is ", rank, " in the environment, but ", of, " is ", ranks,
            ": ranks are numbered from 0");
    return rank;
  }

 private:
  static constexpr int64_t kMaxRanks = 1 << 20;
  const Variable& variable_;
};

struct Names {
  const char *rank, *ranks, *local_rank, *local_ranks;
};

// If a launcher does not say which of its ranks are on this machine, assume one.
Launch launch_by(const Environment& environment, const std::string& launcher, const Names& names) {
  Launch launch;
  launch.launcher = launcher;
  launch.ranks = environment.count(names.ranks);
  launch.rank = environment.rank(names.rank, names.ranks, launch.ranks);
  if (!environment.has(names.local_rank)) return launch;
  launch.local_ranks =
      environment.has(names.local_ranks) ? environment.count(names.local_ranks) : launch.ranks;
  launch.local_rank = environment.rank(names.local_rank, names.local_ranks, launch.local_ranks);
  require(launch.local_ranks <= launch.ranks, names.local_ranks, " is ", launch.local_ranks,
          " in the environment, but ", names.ranks, " is ", launch.ranks);
  launch.all_here = environment.has(names.local_ranks) && launch.local_ranks == launch.ranks;
  return launch;
}

// The token that a launcher or the user has set. "": none.
std::string token_of(const Environment& environment) {
  constexpr size_t kShortest = 16;
  std::string token = environment.text("CREMA_TOKEN");
  require(token.empty() || token.size() >= kShortest, "CREMA_TOKEN has ", token.size(),
          " characters in the environment; expected a random secret of at least ", kShortest,
          ", such as `openssl rand -hex 16` prints");
  return token;
}

// `crema train -gpu 0,1`: all ranks are on this machine.
Launch launch_by_crema(const Environment& environment) {
  Launch launch =
      launch_by(environment, "crema", {"CREMA_RANK", "CREMA_RANKS", "CREMA_RANK", "CREMA_RANKS"});
  launch.address = environment.text("CREMA_ADDRESS");
  launch.token = token_of(environment);
  require(launch.ranks == 1 || !launch.token.empty(),
          "CREMA_RANK is set in the environment, but not CREMA_TOKEN, the secret of its run: unset "
          "CREMA_RANK, or let `crema train -gpu 0,1` set both");
  if (launch.rank == 0 && environment.has("CREMA_LISTENING"))
    launch.listening = static_cast<int>(environment.number("CREMA_LISTENING", 0, 1 << 20));
  return launch;
}

// torchrun gives the address of its own store, which stays there: ranks use the next port. Others
// that set these variables, such as Kubernetes' PyTorchJob, leave the port to rank 0, and start one
// rank per machine if they do not set LOCAL_RANK.
Launch launch_by_torchrun(const Environment& environment) {
  Launch launch =
      launch_by(environment, "torchrun", {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"});
  const std::string host = environment.text("MASTER_ADDR");
  require(launch.ranks == 1 || !host.empty(),
          "RANK and WORLD_SIZE are set in the environment, but not MASTER_ADDR, the machine of "
          "rank 0");
  const bool has_store = environment.has("TORCHELASTIC_RUN_ID");
  int64_t port = 29500;  // torchrun's own default
  if (environment.has("MASTER_PORT")) port = environment.number("MASTER_PORT", 1, 65535);
  if (has_store) port += port < 65535 ? 1 : -1;
  launch.address = cat(launch.all_here ? kLoopback : host, ":", port);
  launch.token = token_of(environment);
  launch.job = cat("torchrun ", environment.text("TORCHELASTIC_RUN_ID"), " ", host, ":", port);
  return launch;
}

// "2(x3),1" says 2, 2, 2 and 1; -1 when the text says nothing of that node.
int64_t count_on_node(const std::string& counts, int64_t node) {
  for (const std::string& part : split(counts, ',')) {
    int64_t count = -1, nodes = 1;
    std::from_chars(part.data(), part.data() + part.size(), count);
    const size_t times = part.find("(x");
    if (times != std::string::npos)
      std::from_chars(part.data() + times + 2, part.data() + part.size(), nodes);
    if (node < nodes) return count;
    node -= nodes;
  }
  return -1;
}

// Slurm numbers the steps that srun starts from 0; the shells of salloc and sbatch also have the
// job's variables, and in recent versions their own step with one of the largest numbers.
bool is_step_of_srun(const Environment& environment) {
  return environment.has("SLURM_STEP_ID") && environment.has("SLURM_PROCID") &&
         environment.number("SLURM_STEP_ID", 0, int64_t{1} << 32) < 0xFFFFFFF0;
}

Launch launch_by_srun(const Environment& environment) {
  // SLURM_NTASKS may be that of the job.
  const char* const ranks =
      environment.has("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  Launch launch = launch_by(environment, "srun", {"SLURM_PROCID", ranks, "", ""});
  if (environment.has("SLURM_LOCALID")) {
    launch.local_rank = environment.rank("SLURM_LOCALID", ranks, launch.ranks);
    const int64_t node =
        environment.has("SLURM_NODEID") ? environment.number("SLURM_NODEID", 0, 1 << 20) : 0;
    int64_t count = count_on_node(environment.text("SLURM_STEP_TASKS_PER_NODE"), node);
    if (count < 0) count = count_on_node(environment.text("SLURM_NTASKS_PER_NODE"), 0);
    launch.all_here = count == launch.ranks;
    if (count < 0) count = launch.ranks;
    require(count > launch.local_rank && count <= launch.ranks, "SLURM_LOCALID is ",
            launch.local_rank, " in the environment and ", ranks, " ", launch.ranks,
            ", but SLURM_STEP_TASKS_PER_NODE says that ", count, " ranks are on this machine");
    launch.local_ranks = static_cast<int>(count);
  }
  if (launch.ranks == 1) return launch;
  const int64_t job = environment.number(
      environment.has("SLURM_JOB_ID") ? "SLURM_JOB_ID" : "SLURM_JOBID", 0, int64_t{1} << 40);
  const int64_t step = environment.number("SLURM_STEP_ID", 0, int64_t{1} << 32);
  // Slurm removes the variable if it is "none".
  const std::string mpi = environment.text("SLURM_MPI_TYPE");
  launch.has_mpi = !mpi.empty() && mpi != "none";
  // Below Linux's ephemeral ports; steps of one job get different ones.
  constexpr int64_t kFirstPort = 15000, kPorts = 16381;
  const int64_t port = kFirstPort + (job + step * 127) % kPorts;
  const std::string host =
      launch.all_here ? kLoopback : first_host(environment.text("SLURM_STEP_NODELIST"));
  launch.address = cat(host, ":", port);
  if (!launch.has_mpi) launch.token = token_of(environment);
  launch.job = cat("srun ", job, ".", step);
  return launch;
}

// The innermost launcher counts. Ours is started by hand or as another's only rank. torchrun is
// started by mpirun or srun, once per machine. In a Slurm job mpirun starts a helper on each
// machine by srun, whose variables its ranks inherit. RANK and WORLD_SIZE without torchrun come
// last: scripts set them for other programs too.
std::optional<Launch> innermost(const Environment& environment) {
  if (environment.has("CREMA_RANK")) return launch_by_crema(environment);
  if (environment.has("TORCHELASTIC_RUN_ID") && environment.has("RANK"))
    return launch_by_torchrun(environment);
  Launch launch;
  if (environment.has("OMPI_COMM_WORLD_RANK")) {
    launch = launch_by(environment, "mpirun",
                       {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                        "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"});
  } else if (environment.has("PMI_RANK") &&
             (environment.has("MPI_LOCALRANKID") || !is_step_of_srun(environment))) {
    // srun --mpi=pmi2 sets PMI_RANK as well, but not the others.
    launch = launch_by(environment, "mpirun",
                       environment.has("MPI_LOCALRANKID")
                           ? Names{"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"}
                           : Names{"PMI_RANK", "PMI_SIZE", "PMI_LOCAL_RANK", "PMI_LOCAL_SIZE"});
  } else if (is_step_of_srun(environment)) {
    return launch_by_srun(environment);
  } else if (environment.has("RANK") && environment.has("WORLD_SIZE")) {
    return launch_by_torchrun(environment);
  } else {
    return std::nullopt;
  }
  launch.has_mpi = true;
  return launch;
}

}  // namespace

std::optional<Launch> launch_of(const std::function<const char*(const char*)>& variable) {
  std::optional<Launch> launch = innermost(Environment(variable));
  // Ours never starts a single rank, so a user who sets its variables by hand wants a world of one.
  if (launch && launch->ranks == 1 && launch->launcher != "crema") return std::nullopt;
  return launch;
}

std::optional<Launch> launch_of_environment() {
  return launch_of([](const char* name) -> const char* { return std::getenv(name); });
}

std::string first_host(const std::string& nodelist) {
  const size_t bracket = nodelist.find('['), comma = nodelist.find(',');
  if (bracket == std::string::npos || comma < bracket) return nodelist.substr(0, comma);
  // "rack[1-2]n[01-04]-ib": the first number of each bracket.
  std::string host;
  for (size_t at = 0; at < nodelist.size() && nodelist[at] != ','; ++at) {
    if (nodelist[at] != '[') {
      host += nodelist[at];
      continue;
    }
    const size_t end = nodelist.find(']', at);
    require(end != std::string::npos, "Slurm's list of nodes, ", nodelist, ", lacks a ]");
    host += nodelist.substr(at + 1, nodelist.find_first_of(",-]", at) - at - 1);
    at = end;
  }
  return host;
}

}  // namespace crema
