// The module that libcrema loads in processes of an MPI launcher (comm/mpi_module.h). It uses no
// function of libcrema, so it can be loaded wherever that is. The thread that loaded it makes all
// MPI calls except those of the engine, which its queue's thread makes; the two never call at the
// same time.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "base/error.h"
#include "comm/mpi/mpi_queue.h"
#include "comm/mpi_module.h"

namespace crema {
namespace {

using Clock = std::chrono::steady_clock;

// "Open MPI v4.1.4, package: ..." and "MPICH Version:\t4.0.2\n..." become "Open MPI 4.1.4" and
// "MPICH 4.0.2".
std::string library_name() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  std::string name(text, static_cast<size_t>(length));
  name = name.substr(0, name.find_first_of(",\n"));
  std::replace(name.begin(), name.end(), '\t', ' ');
  for (const auto& [from, to] : {std::pair{" Version: ", " "}, std::pair{" v", " "}}) {
    const size_t at = name.find(from);
    if (at != std::string::npos) name.replace(at, std::string(from).size(), to);
  }
  return name;
}

class MpiEngine final : public Engine {
 public:
  MpiEngine(std::shared_ptr<MpiQueue> queue, int ranks)
      : queue_(std::move(queue)), ranks_(ranks), name_(library_name()) {}

  void sum(Context&, void* values, int64_t count, Element element) override {
    queue_->begin_sum(MpiQueue::kInOrder, values, count, element);
    queue_->wait(MpiQueue::kInOrder);
  }
  void begin_sum(Context&, void* values, int64_t count, Element element) override {
    queue_->begin_sum(MpiQueue::kBeside, values, count, element);
  }
  void wait(Context&) override { queue_->wait(MpiQueue::kBeside); }
  // All of the values: Open MPI's MPI_Ireduce_scatter_block takes twice as long, as it sums all at
  // one rank. The bits are those of sum(), too.
  void sum_part(Context& context, void* values, int64_t part, Element element) override {
    sum(context, values, part * ranks_, element);
  }
  void share_parts(Context&, void* values, int64_t part, Element element) override {
    queue_->begin_share(MpiQueue::kInOrder, values, part, element);
    queue_->wait(MpiQueue::kInOrder);
  }
  bool recordable() const override { return false; }
  std::string name() const override { return name_; }
  void check() override { queue_->check(); }
  void abort() override { queue_->abort(); }

 private:
  std::shared_ptr<MpiQueue> queue_;
  int ranks_;
  std::string name_;
};

class Mpi final : public MpiModule {
 public:
  Mpi() {
    int started = 0, finished = 0, level = 0;
    MPI_Initialized(&started);
    MPI_Finalized(&finished);
    require(!finished, "MPI has been ended in this process, and cannot be started a second time");
    if (started) {  // by the main program, which will finalize it
      MPI_Query_thread(&level);
    } else {
      // Open MPI ends this process if a rank whose memory it reads has been killed, so no rank
      // would report which. Through shared memory, sums of large nets take up to twice as long,
      // which a net's computation hides. mpirun's option, which arrives as this variable, overrides
      // this.
      setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0);
      check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level), "starting MPI");
      ours_ = true;
    }
    require(level >= MPI_THREAD_SERIALIZED, "this MPI (", library_name(),
            ") allows calls from one thread only: use a build of it that supports threads");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "starting MPI");
    check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &ranks_), "starting MPI");
  }
  ~Mpi() override {
    queue_.reset();
    if (together_ && ours_) MPI_Finalize();
  }

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }

  std::string broadcast(const std::string& text) override {
    const char* const what = "sending a text to all ranks";
    auto size = static_cast<int>(text.size());
    check_mpi(MPI_Bcast(&size, 1, MPI_INT, 0, MPI_COMM_WORLD), what);
    std::string result = text;
    result.resize(static_cast<size_t>(size));
    check_mpi(MPI_Bcast(result.data(), size, MPI_CHAR, 0, MPI_COMM_WORLD), what);
    return result;
  }

  std::unique_ptr<Engine> make_engine(double timeout) override {
    queue_ = std::make_shared<MpiQueue>(timeout);
    return std::make_unique<MpiEngine>(queue_, ranks_);
  }

  void end(double timeout, const std::function<bool()>& lost) override {
    if (lost() || (queue_ && !queue_->idle())) return;
    const auto until = Clock::now() + std::chrono::duration<double>(std::min(timeout, 1e8));
    MPI_Request request = MPI_REQUEST_NULL;
    int done = 0;
    if (MPI_Ibarrier(MPI_COMM_WORLD, &request) != MPI_SUCCESS) return;
    while (MPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done) {
      if (lost() || Clock::now() > until) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    together_ = done;
  }

 private:
  int rank_ = 0, ranks_ = 1;
  bool ours_ = false;                // MPI was started here
  bool together_ = false;            // all ranks have reached end()
  std::shared_ptr<MpiQueue> queue_;  // null before there is an engine
};

}  // namespace

extern "C" MpiModule* crema_mpi_module() { return new Mpi; }

}  // namespace crema
