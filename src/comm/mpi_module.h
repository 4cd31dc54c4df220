// MPI is in a module, libcrema_mpi.so next to libcrema, which is loaded only in processes that an
// MPI launcher has started: starting MPI takes a tenth of a second.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "comm/engine.h"

namespace crema {

// The module's contents: MPI started, and the ranks of its world. For the thread that loaded it.
class MpiModule {
 public:
  // Ends MPI after end(). Otherwise the process must do without: ending MPI waits for all ranks, and
  // a lost one never comes.
  virtual ~MpiModule() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  // Rank 0's text, on all ranks. Only before there is an engine.
  virtual std::string broadcast(const std::string& text) = 0;
  // Sums in host memory, which must not be freed while a sum is being made. The module must outlive
  // the engine. timeout: seconds after which a sum that other ranks do not join is a RankLost.
  virtual std::unique_ptr<Engine> make_engine(double timeout) = 0;
  // This rank needs no other any more: waits until all say so, but at most `timeout` seconds, and
  // not once a rank is lost.
  virtual void end(double timeout, const std::function<bool()>& lost) = 0;
};

// Loads the module and starts MPI, once in a process. Error when the build has none or it cannot be
// loaded.
std::unique_ptr<MpiModule> load_mpi();

// The module's entry point, looked up by this name; the caller owns the result.
extern "C" MpiModule* crema_mpi_module();

}  // namespace crema
