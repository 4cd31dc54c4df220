#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>

#include "base/system.h"
#include "device/gpu.h"
#include "device/memory.h"
#include "device/tuning.h"

namespace crema {
namespace {

std::string as_file_name(std::string text) {
  for (char& c : text) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-') c = '_';
  }
  return text;
}

// While it lives, no other process writes the file. On a file system without locks it is a no-op.
class FileLock {
 public:
  explicit FileLock(const std::string& path)
      : descriptor_(open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644)) {
    if (descriptor_ >= 0) flock(descriptor_, LOCK_EX);
  }
  ~FileLock() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int descriptor_;
};

// Work that is queued on the stream after it starts only once it is open, or its time is over:
// before, a full queue could keep the program from opening it.
class Barrier {
 public:
  explicit Barrier(cudaStream_t stream) {
    auto shared = std::make_unique<std::shared_ptr<std::atomic<bool>>>(open_);
    check_cuda(cudaLaunchHostFunc(stream, &wait, shared.get()), "timing");
    shared.release();  // wait() takes it
  }
  ~Barrier() { open(); }
  Barrier(const Barrier&) = delete;
  Barrier& operator=(const Barrier&) = delete;
  void open() { open_->store(true, std::memory_order_release); }

 private:
  static void CUDART_CB wait(void* given) {
    const std::unique_ptr<std::shared_ptr<std::atomic<bool>>> shared(
        static_cast<std::shared_ptr<std::atomic<bool>>*>(given));
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(5);
    while (!(*shared)->load(std::memory_order_acquire) && std::chrono::steady_clock::now() < end)
      std::this_thread::yield();
  }

  std::shared_ptr<std::atomic<bool>> open_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace

Tuning::Tuning() = default;

Tuning::~Tuning() {
  if (begin_) cudaEventDestroy(begin_);
  if (end_) cudaEventDestroy(end_);
}

void Tuning::open(const std::string& card) {
  const std::string folder = user_cache_folder();
  if (folder.empty()) return;
  path_ = folder + "/tune-" + as_file_name(card) + ".tsv";
  read_on();
}

void Tuning::read_on() {
  std::ifstream file(path_);
  file.seekg(read_);
  for (std::string line; std::getline(file, line) && !file.eof();) {
    read_ = file.tellg();
    const size_t tab = line.find('\t');
    if (tab != std::string::npos) answers_[line.substr(0, tab)] = line.substr(tab + 1);
  }
}

int Tuning::candidates() const {
  return mode == TuneMode::off ? 1 : mode == TuneMode::quick ? 6 : 1000;
}

std::optional<std::string> Tuning::find(const std::string& key) {
  const auto found = answers_.find(key);
  if (mode == TuneMode::off || found == answers_.end()) return std::nullopt;
  return given_[key] = found->second;
}

std::optional<std::string> Tuning::remember(const std::string& key, const std::string& answer) {
  ++spent.answers;
  if (!path_.empty()) {
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
    const FileLock lock(path_);
    read_on();
    // The caller found find()'s answer unusable: do not return it again.
    const auto known = answers_.find(key), given = given_.find(key);
    if (known != answers_.end() && (given == given_.end() || given->second != known->second))
      return known->second;
    const bool cut_off = std::filesystem::file_size(path_, ignored) > static_cast<size_t>(read_);
    std::ofstream(path_, std::ios::app) << (cut_off ? "\n" : "") + key + "\t" + answer + "\n"
                                        << std::flush;
  }
  answers_[key] = answer;
  return std::nullopt;
}

void* Tuning::scratch(Context& context, size_t bytes) {
  if (!scratch_ || scratch_->bytes() < bytes) {
    scratch_.reset();
    if (free_memory(context) < bytes) return nullptr;
    scratch_ = std::make_unique<Buffer>(context, bytes);
    // A small nonzero number in every floating-point type: multiplying zeros takes less energy,
    // hence less time, than multiplying other numbers.
    check_cuda(cudaMemsetAsync(scratch_->data(), 0x23, bytes, context.gpu().stream),
               "filling memory");
  }
  return scratch_->data();
}

void Tuning::release() { scratch_.reset(); }

double Tuning::time(Context& context, const std::function<void()>& work) {
  const cudaStream_t stream = context.gpu().stream;
  if (!begin_) {
    check_cuda(cudaEventCreate(&begin_), "timing");
    check_cuda(cudaEventCreate(&end_), "timing");
  }
  check_cuda(cudaEventRecord(begin_, stream), "timing");
  work();
  check_cuda(cudaEventRecord(end_, stream), "timing");
  check_cuda(cudaEventSynchronize(end_), "timing");
  float milliseconds = 0;
  check_cuda(cudaEventElapsedTime(&milliseconds, begin_, end_), "timing");
  return milliseconds;
}

double Tuning::time_queued(Context& context, const std::function<void()>& work, int times) {
  Barrier barrier(context.gpu().stream);
  return time(context, [&] {
    for (int i = 0; i < times; ++i) work();
    barrier.open();
  });
}

double Tuning::time_repeated(Context& context, const std::function<void()>& work, double best) {
  work();  // libraries load their kernels on the first call
  double shortest = time(context, work);
  if (is_hopeless(shortest, best)) return shortest;
  constexpr double kLong = 0.3;  // milliseconds; launch overhead is negligible above
  if (shortest > kLong) {
    for (int i = 0; i < 2; ++i) shortest = std::min(shortest, time(context, work));
    return shortest;
  }
  constexpr int kTimes = 8;
  constexpr double kSlower = 1.05;  // than the best: no luck would make up for that
  shortest = 1e30;
  for (int i = 0; i < 4; ++i) {
    shortest = std::min(shortest, time_queued(context, work, kTimes) / kTimes);
    if (shortest > kSlower * best) break;
  }
  return shortest;
}

std::string Tuning::report() {
  const Spent was = std::exchange(spent, {});
  if (was.seconds < 1) return "";
  const auto seconds = [](double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f s", value);
    return std::string(text);
  };
  return cat("Timed kernels for ", was.answers, " computations in ", seconds(was.seconds), ", ",
             seconds(was.building), " of it to make plans of cuDNN",
             path_.empty() ? "" : cat("; the answers are kept in ", path_));
}

Tuning::Spending::Spending(Tuning& tuning)
    : tuning_(tuning),
      outermost_(!std::exchange(tuning.spending_, true)),
      begin_(std::chrono::steady_clock::now()) {}

Tuning::Spending::~Spending() {
  if (!outermost_) return;
  tuning_.spending_ = false;
  tuning_.spent.seconds +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

}  // namespace crema
