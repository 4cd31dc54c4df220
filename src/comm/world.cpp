#include "comm/world.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/hmac.h"
#include "base/system.h"
#include "comm/control.h"
#include "comm/control_sockets.h"
#include "comm/mpi_module.h"
#include "comm/nccl_engine.h"
#include "comm/staged_engine.h"
#include "comm/token_file.h"
#include "device/context.h"

namespace crema {
namespace {

class ProcessGroup final : public World {
 public:
  ProcessGroup(const Launch& launch, double timeout, std::unique_ptr<MpiModule> mpi,
               const ControlOptions& control)
      : World(launch.rank, launch.ranks),
        launcher_(launch.launcher),
        timeout_(timeout),
        mpi_(std::move(mpi)),
        control_(control) {}

  ~ProcessGroup() override {
    // Launchers end all ranks as soon as one has failed: the one that tells the user goes first.
    if (told_by_another()) std::this_thread::sleep_for(std::chrono::seconds(3));
    // If an exception ends this rank, it must not wait for the others; control_ tells them.
    if (!mpi_ || std::uncaught_exceptions() > exceptions_) return;
    const Wait wait(*this);
    mpi_->end(kLastResort, [this] { return control_.lost(); });
  }

  void connect(Context& context) override {
    const bool gpu = context.device() == Device::gpu;
    const std::vector<std::string> devices =
        control_.gather(gpu ? cat("GPU ", context.ordinal(), " of ", host_name()) : "CPU");
    for (size_t i = 0; i < devices.size(); ++i) {
      require((devices[i] == "CPU") == !gpu, "rank ", i, " computes on ", devices[i], ", but rank ",
              rank, " on ", devices[static_cast<size_t>(rank)], ": give all ranks the same -gpu");
    }
    const bool shared =
        gpu && std::set<std::string>(devices.begin(), devices.end()).size() < devices.size();
    if (gpu && !shared && (has_nccl() || !mpi_)) {
      NcclOptions options{rank, ranks, timeout_, {}, {}};
      options.gather = [this](const std::string& text) { return control_.gather(text); };
      options.check = [this] { control_.check(); };
      engine_ = make_nccl_engine(context, options);
    } else {
      require(mpi_ != nullptr, shared ? "several ranks have one GPU" : "the ranks compute on CPUs",
              ", which only MPI can connect, but ", launcher_,
              " does not start MPI: start them with mpirun -n ", ranks);
      engine_ = mpi_->make_engine(kLastResort);
      if (gpu) engine_ = stage_on_host(std::move(engine_), rank, ranks);
    }
    control_.when_lost([this] { engine_->abort(); });
    context.set_world(this);
  }

  // If one rank cannot read something, usually none can: each waits a little for those before it.
  bool fail(const std::string&) override {
    const int moments = rank == 0 ? 0 : 5 + std::min(rank, 50);
    for (int i = 0; i < moments && !control_.lost(); ++i) wait_a_moment();
    if (told_by_another()) return false;
    control_.fail();
    return true;
  }

  std::vector<std::string> gather(std::string_view text) override { return control_.gather(text); }
  void at_iteration(int64_t iteration) override {
    control_.at_iteration(iteration);
    guard([&] { engine_->check(); });
  }
  void begin_pause() override { control_.begin_pause(); }
  void end_pause() override { control_.end_pause(); }

  void expose(Context& context, void* memory, size_t bytes, size_t most) override {
    guard([&] { engine_->expose(context, memory, bytes, most); });
  }
  void sum(Context& context, void* values, int64_t count, Element element) override {
    guard([&] {
      const Wait wait(*this);
      engine_->sum(context, values, count, element);
    });
  }
  void begin_sum(Context& context, void* values, int64_t count, Element element) override {
    guard([&] { engine_->begin_sum(context, values, count, element); });
  }
  void wait(Context& context) override {
    guard([&] {
      const Wait wait(*this);
      engine_->wait(context);
    });
  }
  void sum_part(Context& context, void* values, int64_t part, Element element) override {
    guard([&] {
      const Wait wait(*this);
      engine_->sum_part(context, values, part, element);
    });
  }
  void share_parts(Context& context, void* values, int64_t part, Element element) override {
    guard([&] {
      const Wait wait(*this);
      engine_->share_parts(context, values, part, element);
    });
  }
  bool recordable() const override { return engine_->recordable(); }
  std::string engine() const override { return engine_->name(); }

 private:
  // The control notices earlier that a rank is lost, and knows which; and ranks may pause for long.
  static constexpr double kLastResort = 1e8;  // seconds

  class Wait {
   public:
    explicit Wait(ProcessGroup& world) : control_(world.control_) { control_.begin_wait(); }
    ~Wait() { control_.end_wait(); }
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

   private:
    Control& control_;
  };

  bool told_by_another() const {
    try {
      control_.check();
    } catch (const RankLost& lost) {
      return lost.told();
    }
    return false;
  }

  static void wait_a_moment() { std::this_thread::sleep_for(std::chrono::milliseconds(100)); }

  // An engine may notice first that a rank is lost, but does not know which. The control finds out
  // moments later, and its message is better.
  template <typename Work>
  void guard(const Work& work) {
    control_.check();
    try {
      work();
    } catch (const RankLost&) {
      for (int i = 0; i < 20 && !control_.lost(); ++i) wait_a_moment();
      control_.check();
      throw;
    }
    control_.check();
  }

  std::string launcher_;
  double timeout_;
  int exceptions_ = std::uncaught_exceptions();
  std::unique_ptr<MpiModule> mpi_;  // ends last
  std::unique_ptr<Engine> engine_;  // null before connect()
  Control control_;                 // its thread may call the engine: it ends first
};

}  // namespace

std::unique_ptr<World> meet(const Launch& launch, double timeout) {
  ControlOptions control;
  control.rank = launch.rank;
  control.ranks = launch.ranks;
  control.address = launch.address;
  control.listening = launch.listening;
  control.token = launch.token;
  control.timeout = timeout;
  if (launch.ranks > 1 && !launch.has_mpi && launch.token.empty())
    control.token_file = token_file_of(launch);
  std::unique_ptr<MpiModule> mpi;
  if (launch.has_mpi) {
    mpi = load_mpi();
    require(mpi->rank() == launch.rank && mpi->ranks() == launch.ranks, launch.launcher,
            " says that this is rank ", launch.rank, " of ", launch.ranks, ", but MPI that it is ",
            mpi->rank(), " of ", mpi->ranks(), ": the launcher is of another MPI than ",
            "this build's");
    if (launch.rank == 0) {
      const Listening listening = launch.all_here ? listen_on(kLoopback, 0) : listen_anywhere();
      control.listening = listening.socket;
      const std::vector<std::string> hosts =
          launch.all_here ? std::vector<std::string>{kLoopback} : own_addresses();
      for (const std::string& host : hosts)
        control.address += cat(control.address.empty() ? "" : ",", host, ":", listening.port);
    }
    control.address = mpi->broadcast(control.address);
    control.token = mpi->broadcast(launch.rank == 0 ? random_token() : "");
  }
  return std::make_unique<ProcessGroup>(launch, timeout, std::move(mpi), control);
}

}  // namespace crema
