// How often ranks exchange requests: about four times a second, although the host may be far ahead
// of the GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "solver/ranks/ranks.h"

namespace crema::tests {
namespace agreement_test {

// One rank, alone.
class Alone : public Communicator {
 public:
  Alone() : Communicator(0, 1) {}
  std::vector<std::string> gather(std::string_view text) override { return {std::string(text)}; }
  void at_iteration(int64_t) override {}
  void begin_pause() override {}
  void end_pause() override {}
  void sum(Context&, void*, int64_t, Element) override {}
  void begin_sum(Context&, void*, int64_t, Element) override {}
  void wait(Context&) override {}
  void sum_part(Context&, void*, int64_t, Element) override {}
  void share_parts(Context&, void*, int64_t, Element) override {}
  bool recordable() const override { return true; }
  std::string engine() const override { return "none"; }
};

// The iterations between exchanges, once the speed is known. The host queues iterations without
// waiting, and the device needs this time for each.
std::vector<int64_t> pauses(std::chrono::microseconds time_of_iteration, int64_t iterations) {
  using Clock = std::chrono::steady_clock;
  Alone world;
  Clock::time_point idle_at = Clock::now();
  Agreement agreement(world, [&] { std::this_thread::sleep_until(idle_at); });
  std::vector<int64_t> pauses;
  for (int64_t iteration = 0; iteration < iterations; ++iteration) {
    if (iteration >= agreement.next()) {
      agreement.exchange(iteration, {});
      if (iteration > iterations / 2) pauses.push_back(agreement.next() - iteration);
    }
    idle_at = std::max(idle_at, Clock::now()) + time_of_iteration;
  }
  return pauses;
}

TEST(Agreement, ComesAsOftenAsTheDeviceNeedsItNotTheHost) {
  for (const int64_t pause : pauses(std::chrono::milliseconds(10), 120)) {
    EXPECT_LE(pause, 30);  // 25, if the machine has nothing else to do
    EXPECT_GE(pause, 2);
  }
  EXPECT_FALSE(pauses(std::chrono::milliseconds(10), 120).empty());
}

TEST(Agreement, IsRareWhereIterationsAreShort) {
  const std::vector<int64_t> found = pauses(std::chrono::microseconds(50), 20000);
  ASSERT_FALSE(found.empty());
  EXPECT_GE(*std::max_element(found.begin(), found.end()), 500);
  EXPECT_LE(*std::max_element(found.begin(), found.end()), 1000);
}

TEST(Agreement, GivesTheWishesOfTheRanks) {
  Alone world;
  Agreement agreement(world);
  EXPECT_TRUE(agreement.exchange(0, {.stop = true}).stop);
  EXPECT_TRUE(agreement.exchange(1, {.snapshot = true}).snapshot);
  EXPECT_TRUE(agreement.exchange(2, {.timed_snapshot = true}).timed_snapshot);
  const Agreement::Wish none = agreement.exchange(3, {});
  EXPECT_FALSE(none.stop || none.snapshot || none.snapshot_stop || none.timed_snapshot);
}

}  // namespace agreement_test
}  // namespace crema::tests
