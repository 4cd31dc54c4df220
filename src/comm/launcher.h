// Finds out from the environment which launcher has started this process as one of several ranks:
// mpirun (Open MPI, MPICH, Intel MPI), srun (Slurm), torchrun and others with the same variables
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
  std::string job;  // identifies this run among those of its launcher and user
};

// Null: this process was started alone, or as the only rank, except for "crema", whose world of one
// shows the cost of a world. Error names variables that contradict each other or are not numbers.
std::optional<Launch> launch_of(const std::function<const char*(const char* name)>& variable);
std::optional<Launch> launch_of_environment();

// The first host of Slurm's notation: "node[03-05,9],other" is node03.
std::string first_host(const std::string& nodelist);

}  // namespace crema
