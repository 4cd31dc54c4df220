// The loader's reserve: threads that make samples only while a run waits for its batch.
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "data/loader/loader.h"

namespace crema::tests {
namespace loader_reserve_test {

constexpr auto kPatience = std::chrono::seconds(20);

// Records which threads make samples. Those of `meeting` threads wait for each other, once.
class Meeting : public Dataset {
 public:
  int64_t size() const override { return 100; }
  std::string describe(const SampleIndex&) const override { return "a sample"; }
  std::string how_to_equalize() const override { return "do nothing"; }
  void load(const SampleIndex&, Sample& sample) const override {
    sample.shape = {1, 1, 1};
    std::unique_lock<std::mutex> lock(mutex);
    threads.insert(std::this_thread::get_id());
    ++loads;
    changed.notify_all();
    if (meeting > 0) changed.wait_for(lock, kPatience, [&] { return threads.size() >= meeting; });
  }
  void write(const SampleIndex&, Sample& sample, float* data) const override {
    sample.labels = {0};
    *data = 0;
  }
  void wait_for_loads(int64_t count) const {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait_for(lock, kPatience, [&] { return loads >= count; });
    EXPECT_EQ(loads, count);
  }

  size_t meeting = 0;
  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  mutable std::set<std::thread::id> threads;
  mutable int64_t loads = 0;
};

TEST(LoaderReserve, WorksOnlyWhileABatchIsWaitedFor) {
  constexpr int kPrefetch = 8, kBatch = 4;
  const auto samples = std::make_shared<Meeting>();
  LoaderOptions options;
  options.batch_size = kBatch;
  options.prefetch = kPrefetch;
  options.reserve = 2;
  Loader loader(samples, options);
  samples->threads.clear();
  samples->loads = 0;
  samples->meeting = 3;
  loader.batch(0);
  EXPECT_EQ(samples->threads.size(), 3u) << "all help with the first batch";
  // The batches ahead are complete, so this one is available immediately.
  samples->wait_for_loads((kPrefetch + 1) * kBatch);
  samples->threads.clear();
  samples->meeting = 0;
  const double waited = loader.waited();
  loader.batch(1);
  EXPECT_EQ(loader.waited(), waited);
  samples->wait_for_loads((kPrefetch + 2) * kBatch);
  EXPECT_EQ(samples->threads.size(), 1u) << "the others leave the cores to the net";
}

}  // namespace loader_reserve_test
}  // namespace crema::tests
