// Which launcher has started this process as one of several ranks, told by its environment: mpirun
// (Open MPI, MPICH, Intel MPI), srun (Slurm), torchrun and what sets the same variables
// (Kubernetes' PyTorchJob), and `crema train -gpu 0,1`, which starts its ranks itself.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace crema {

// Other machines cannot connect to it.
constexpr const char* kLoopback = "127.0.0.1";

struct Launch {
  std::string launcher;  // "mpirun", "srun", "torchrun" or "crema"
  int rank = 0, ranks = 1;
  int local_rank = 0, local_ranks = 1;  // among those on this machine
  // The launcher knows MPI: ranks meet through MPI_Init. Otherwise at `address`, "host:port".
  bool has_mpi = false;
  std::string address;
  // The secret of the run, which its launcher or CREMA_TOKEN gives. Empty: MPI carries a random one,
  // or a file does (comm/token_file.h).
  std::string token;
  int listening = -1;  // rank 0 of our own launcher: a socket that listens already
  // The launcher says that all ranks are on this machine: they meet on its loopback.
  bool all_here = false;
  std::string job;  // what this run is, among those of its launcher and user
};

// Null: this process was started alone; so is one of one rank, but for "crema", whose world of one
// shows what a world costs. Error when variables contradict each
// other or are not numbers, which names them.
std::optional<Launch> launch_of(const std::function<const char*(const char* name)>& variable);
std::optional<Launch> launch_of_environment();

// The first host of Slurm's notation: "node[03-05,9],other" is node03.
std::string first_host(const std::string& nodelist);

}  // namespace crema
