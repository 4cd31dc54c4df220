#include "comm/mpi/mpi_queue.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.h"
#include "comm/background_thread.h"
#include "comm/engine.h"

namespace crema {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

// Open MPI 4.1 sums 100 MB fastest in pieces of 4 MiB of which four are under way, and then as fast
// as it does in one blocking call, however seldom it is polled.
constexpr int64_t kSumBytes = int64_t{4} << 20;
constexpr int64_t kShareBytes = int64_t{64} << 20;
constexpr size_t kUnderWay = 4;

MPI_Datatype type_of(Element element) {
  require(element == Element::f32 || element == Element::f64,
          "MPI adds float32 and float64, but these values are ",
          element == Element::f16 ? "float16" : "bfloat16", ": give -wire fp32");
  return element == Element::f32 ? MPI_FLOAT : MPI_DOUBLE;
}

}  // namespace

void check_mpi(int status, const char* what) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(status, text, &length);
  throw RankLost(cat(what, " failed: MPI says \"", text, "\""), false);
}

// One call of MPI.
struct MpiQueue::Piece {
  Lane lane;
  char* values;
  int count;
  MPI_Datatype type;
  int64_t stride = 0;  // bytes from one rank's values to the next's, for sharing; 0: a sum
};

struct MpiQueue::State {
  MPI_Comm comms[kLanes];
  double timeout;

  mutable std::mutex mutex;  // of all that follows
  std::condition_variable changed, done;
  std::deque<Piece> queued[kLanes];
  int64_t left[kLanes] = {};  // pieces that are queued or under way
  int64_t finished = 0;       // pieces
  int waiting = 0;            // callers in wait()
  bool stopped = false, ended = false;
  std::string lost;  // why MPI is not called any more

  bool over() const { return stopped || !lost.empty(); }
  void lose(const std::string& why) {
    if (lost.empty()) lost = why;
    changed.notify_all();
    done.notify_all();
  }
};

class MpiQueue::Worker {
 public:
  explicit Worker(State& state) : state_(state) {}

  void run() {
    try {
      while (step()) {
      }
    } catch (const std::exception& error) {
      const std::lock_guard<std::mutex> lock(state_.mutex);
      state_.lose(error.what());
    }
    const std::lock_guard<std::mutex> lock(state_.mutex);
    state_.ended = true;
    state_.done.notify_all();
  }

 private:
  // How long the thread sleeps between two checks of its requests. MPI makes progress only during
  // calls, but a thread that calls it all the time would take a core from the net.
  class Sleep {
   public:
    void reset() { looks_ = 0; }
    // awaited: someone waits for a sum, so there is a core for it.
    microseconds next(bool awaited) {
      ++looks_;
      if (awaited && looks_ < 100) return microseconds(0);
      const int64_t longest = awaited ? 100 : 1000;
      return microseconds(std::min<int64_t>(longest, 10 + looks_ * 2));
    }

   private:
    int64_t looks_ = 0;  // since something was begun or done
  };

  bool step() {
    std::vector<Piece> pieces;
    {
      std::unique_lock<std::mutex> lock(state_.mutex);
      const auto ready = [&] { return state_.over() || !startable().empty(); };
      if (requests_.empty()) {
        state_.changed.wait(lock, ready);
      } else if (const microseconds time = sleep_.next(state_.waiting > 0); time.count() > 0) {
        state_.changed.wait_for(lock, time, ready);
      } else {
        lock.unlock();
        std::this_thread::yield();
        lock.lock();
      }
      if (state_.over()) return false;
      for (const Lane lane : startable()) {
        for (; under_way_[lane] < kUnderWay && !state_.queued[lane].empty(); ++under_way_[lane]) {
          pieces.push_back(state_.queued[lane].front());
          state_.queued[lane].pop_front();
        }
      }
    }
    for (const Piece& piece : pieces) start(piece);
    if (!pieces.empty()) sleep_.reset();
    look();
    return true;
  }

  std::vector<Lane> startable() const {
    std::vector<Lane> lanes;
    for (const Lane lane : {kBeside, kInOrder}) {
      if (under_way_[lane] < kUnderWay && !state_.queued[lane].empty()) lanes.push_back(lane);
    }
    return lanes;
  }

  void start(const Piece& piece) {
    MPI_Request request = MPI_REQUEST_NULL;
    const MPI_Comm comm = state_.comms[piece.lane];
    if (piece.stride == 0) {
      check_mpi(MPI_Iallreduce(MPI_IN_PLACE, piece.values, piece.count, piece.type, MPI_SUM, comm,
                               &request),
                "summing over the ranks");
    } else {
      const char* const what = "sharing values among the ranks";
      MPI_Datatype row = MPI_DATATYPE_NULL, strided = MPI_DATATYPE_NULL;
      check_mpi(MPI_Type_contiguous(piece.count, piece.type, &row), what);
      check_mpi(MPI_Type_create_resized(row, 0, piece.stride, &strided), what);
      check_mpi(MPI_Type_commit(&strided), what);
      check_mpi(MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, piece.values, 1, strided, comm,
                               &request),
                what);
      check_mpi(MPI_Type_free(&strided), what);  // kept by MPI until the request is done
      check_mpi(MPI_Type_free(&row), what);
    }
    requests_.push_back(request);
    lanes_.push_back(piece.lane);
  }

  void look() {
    int count = 0;
    std::vector<int> at(requests_.size());
    check_mpi(MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count, at.data(),
                           MPI_STATUSES_IGNORE),
              "summing over the ranks");
    if (count == 0 || count == MPI_UNDEFINED) return;
    sleep_.reset();
    std::sort(at.begin(), at.begin() + count, std::greater<>());
    const std::lock_guard<std::mutex> lock(state_.mutex);
    for (int i = 0; i < count; ++i) {
      --under_way_[lanes_[at[i]]];
      --state_.left[lanes_[at[i]]];
      requests_.erase(requests_.begin() + at[i]);
      lanes_.erase(lanes_.begin() + at[i]);
    }
    state_.finished += count;
    state_.done.notify_all();
  }

  State& state_;
  std::vector<MPI_Request> requests_;  // under way
  std::vector<Lane> lanes_;            // theirs
  size_t under_way_[kLanes] = {};
  Sleep sleep_;
};

MpiQueue::MpiQueue(double timeout) : state_(std::make_shared<State>()) {
  state_->timeout = std::min(timeout, 1e8);
  for (MPI_Comm& comm : state_->comms) {
    check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "connecting the ranks");
    check_mpi(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "connecting the ranks");
  }
  thread_ = background_thread([state = state_] { Worker(*state).run(); });
}

MpiQueue::~MpiQueue() {
  std::unique_lock<std::mutex> lock(state_->mutex);
  state_->stopped = true;
  state_->changed.notify_all();
  const bool ended =
      state_->done.wait_for(lock, std::chrono::seconds(2), [&] { return state_->ended; });
  lock.unlock();
  ended ? thread_.join() : thread_.detach();
}

void MpiQueue::begin_sum(Lane lane, void* values, int64_t count, Element element) {
  const MPI_Datatype type = type_of(element);
  const int64_t size = bytes_of(element), most = kSumBytes / size;
  const std::lock_guard<std::mutex> lock(state_->mutex);
  for (int64_t first = 0; first < count; first += most) {
    state_->queued[lane].push_back({lane, static_cast<char*>(values) + first * size,
                                    static_cast<int>(std::min(most, count - first)), type});
    ++state_->left[lane];
  }
  state_->changed.notify_all();
}

void MpiQueue::begin_share(Lane lane, void* values, int64_t part, Element element) {
  const MPI_Datatype type = type_of(element);
  const int64_t size = bytes_of(element), most = kShareBytes / size;
  const std::lock_guard<std::mutex> lock(state_->mutex);
  for (int64_t first = 0; first < part; first += most) {
    state_->queued[lane].push_back({lane, static_cast<char*>(values) + first * size,
                                    static_cast<int>(std::min(most, part - first)), type,
                                    part * size});
    ++state_->left[lane];
  }
  state_->changed.notify_all();
}

void MpiQueue::wait(Lane lane) {
  State& state = *state_;
  const std::chrono::duration<double> limit(state.timeout);
  std::unique_lock<std::mutex> lock(state.mutex);
  ++state.waiting;
  state.changed.notify_all();
  const auto over = [&] { return state.left[lane] == 0 || !state.lost.empty(); };
  while (!over()) {
    const int64_t finished = state.finished;
    if (state.done.wait_for(lock, limit, [&] { return over() || state.finished != finished; }))
      continue;
    state.lose(cat("other ranks have not joined a sum of this one for ", state.timeout,
                   " s: a rank hangs, or is slower than -rank_timeout allows"));
  }
  --state.waiting;
  if (!state.lost.empty()) throw RankLost(state.lost, false);
}

void MpiQueue::abort() {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  state_->lose("a rank is lost, so no values can be summed over the ranks any more");
}

void MpiQueue::check() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  if (!state_->lost.empty()) throw RankLost(state_->lost, false);
}

bool MpiQueue::idle() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->lost.empty() && state_->left[kBeside] == 0 && state_->left[kInOrder] == 0;
}

}  // namespace crema
