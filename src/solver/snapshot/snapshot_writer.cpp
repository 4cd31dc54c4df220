#include "solver/snapshot/snapshot_writer.h"

#include <unistd.h>

#include <cassert>
#include <new>
#include <system_error>
#include <thread>

#include "solver/events/checksum.h"
#include "solver/events/run_identity.h"
#include "solver/iteration/optimizer.h"
#include "solver/snapshot/state_file.h"
#include "solver/snapshot/state_hdf5.h"

namespace crema {
namespace {

// Adds each file to `made` once it is there.
void write_files(const SnapshotJob& job, const TrainingCopy& copy, WrittenSnapshot* written,
                 std::vector<std::string>* made) {
  Context host(Device::cpu);
  const auto save = [&](const WeightsContent& content, const std::string& path) {
    job.hdf5 ? write_hdf5(host, content, path) : write_caffemodel(host, content, path);
    made->push_back(path);
  };
  if (!job.files.average.empty()) {
    save(copy.average(), job.files.average);
    written->hash_of_average = hex_of(weights_checksum(host, copy.average()));
  }
  save(copy.weights(), job.files.weights);
  const uint64_t checksum = weights_checksum(host, copy.weights());
  written->hash = hex_of(checksum);
  // Only now, so that a state never names weights that do not exist.
  if (job.files.state.empty()) return;
  SolverState state = job.state;
  state.set_weights_checksum(checksum);
  if (job.hdf5) {
    write_hdf5_state(copy.state(host, state), job.files.state);
  } else {
    write_solver_state(host, copy.binary_state(state), job.files.state);
  }
}

}  // namespace

SnapshotWriter::~SnapshotWriter() {
  if (thread_.joinable()) thread_.join();
}

void SnapshotWriter::start(SnapshotJob job) {
  assert(!started_);
  written_ = {};
  written_.iteration = job.iteration;
  written_.files = job.files;
  written_.of_best = job.of_best;
  started_ = true;
  done_ = !writes_;
  if (!writes_) return;
  const auto write = [this, job = std::move(job)] {
    std::vector<std::string> made;
    try {
      write_files(job, copy_, &written_, &made);
    } catch (const std::exception& error) {
      const bool no_memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
      written_.error = no_memory ? "out of memory" : error.what();
      for (const std::string& path : made) unlink(path.c_str());
    }
    done_ = true;
  };
  try {
    thread_ = std::thread(write);
  } catch (const std::system_error&) {
    write();  // the training waits meanwhile
  }
}

std::optional<WrittenSnapshot> SnapshotWriter::take_if_done() {
  return started_ && done_ ? wait() : std::nullopt;
}

std::optional<WrittenSnapshot> SnapshotWriter::wait() {
  if (!started_) return std::nullopt;
  started_ = false;
  if (thread_.joinable()) thread_.join();
  return std::move(written_);
}

}  // namespace crema
