// Sums over GPUs: a thread for each of up to four of this machine; with one GPU, a world of one rank.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "comm/nccl_engine.h"
#include "device/capture.h"
#include "device/gpu.h"
#include "device/memory.h"
#include "on_gpu.h"
#include "ranks.h"
#include "support.h"

namespace crema::tests {
namespace nccl_test_gpu {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

using Work = std::function<void(Context&, Communicator& world, Engine&)>;

class NcclTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_nccl()) GTEST_SKIP() << "this build has no NCCL";
    if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
    ranks_ = std::min(gpu_count(), 4);
  }

  static NcclOptions options_of(Communicator& world, double timeout) {
    NcclOptions options{world.rank, world.ranks, timeout, {}, [] {}};
    options.gather = [&world](const std::string& text) { return world.gather(text); };
    return options;
  }

  void run(const Work& work) const {
    ThreadRanks ranks(ranks_);
    ranks.run([&](Communicator& world) {
      Context context(Device::gpu, world.rank);
      const std::unique_ptr<Engine> engine = make_nccl_engine(context, options_of(world, 60));
      work(context, world, *engine);
      context.synchronize();
    });
  }

  int ranks_ = 0;
};

TEST_F(NcclTest, Sums) {
  run([&](Context& context, Communicator& world, Engine& engine) {
    EXPECT_TRUE(engine.recordable());
    expect_part(engine.name(), "NCCL 2.");
    for (const int64_t count : {1, 7, 1000, 1048577, 20000003}) {
      SCOPED_TRACE(count);
      const OnGpu values(context, values_of(world.rank, count));
      engine.sum(context, values.data(), count, Element::f32);
      EXPECT_EQ(values.read(), sums_of(world.ranks, count));
    }
    double number = world.rank + 0.5;
    const Buffer buffer(context, sizeof number);
    copy_bytes(context, buffer.data(), Device::gpu, &number, Device::cpu, sizeof number);
    engine.sum(context, buffer.data(), 1, Element::f64);
    copy_bytes(context, &number, Device::cpu, buffer.data(), Device::gpu, sizeof number);
    EXPECT_EQ(number, world.ranks * world.ranks * 0.5);
  });
}

TEST_F(NcclTest, BeginsManySumsAndMakesOthersMeanwhile) {
  run([&](Context& context, Communicator& world, Engine& engine) {
    std::vector<std::unique_ptr<OnGpu>> buckets;
    const auto size_of = [](int bucket) { return 1 + (bucket * 7919) % 300000; };
    for (int i = 0; i < 100; ++i) {
      buckets.push_back(std::make_unique<OnGpu>(context, values_of(world.rank, size_of(i))));
      engine.begin_sum(context, buckets.back()->data(), size_of(i), Element::f32);
      if (i % 20 > 0) continue;
      const OnGpu other(context, values_of(world.rank, 1000));
      engine.sum(context, other.data(), 1000, Element::f32);
      EXPECT_EQ(other.read(), sums_of(world.ranks, 1000));
    }
    engine.wait(context);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(buckets[i]->read(), sums_of(world.ranks, size_of(i)));
  });
}

TEST_F(NcclTest, Parts) {
  run([&](Context& context, Communicator& world, Engine& engine) {
    for (const int64_t part : {1, 5, 100003}) {
      SCOPED_TRACE(part);
      const int64_t count = part * world.ranks, first = part * world.rank;
      const OnGpu values(context, values_of(world.rank, count));
      engine.sum_part(context, values.data(), part, Element::f32);
      const std::vector<float> sums = sums_of(world.ranks, count), all = values.read();
      EXPECT_TRUE(
          std::equal(all.begin() + first, all.begin() + first + part, sums.begin() + first));
      std::vector<float> own(static_cast<size_t>(count), -1);
      std::copy_n(all.begin() + first, part, own.begin() + first);
      values.write(own);
      engine.share_parts(context, values.data(), part, Element::f32);
      EXPECT_EQ(values.read(), sums);
    }
  });
}

TEST_F(NcclTest, IsRecordedInCudaGraphs) {
  run([&](Context& context, Communicator& world, Engine& engine) {
    constexpr int64_t kCount = 300000;
    const OnGpu beside(context, values_of(world.rank, kCount));
    const OnGpu inside(context, values_of(world.rank, 1000));
    const auto work = [&] {
      engine.begin_sum(context, beside.data(), kCount, Element::f32);
      engine.sum(context, inside.data(), 1000, Element::f32);
      engine.wait(context);
    };
    work();  // sums of these sizes are connected
    Capture capture;
    capture.record(context, work);
    EXPECT_EQ(beside.read(), sums_of(world.ranks, kCount));
    for (int times = 2; times <= 4; ++times) {
      capture.launch(context);
      EXPECT_EQ(beside.read(), sums_of(world.ranks, kCount, times));
      EXPECT_EQ(inside.read(), sums_of(world.ranks, 1000, times));
    }
  });
}

TEST_F(NcclTest, AbortEndsWhatWaitsOnTheGpu) {
  if (ranks_ < 2) GTEST_SKIP() << "one GPU waits for no other";
  const Clock::time_point start = Clock::now();
  run([&](Context& context, Communicator& world, Engine& engine) {
    const OnGpu values(context, values_of(world.rank, 1000));
    // The first sums connect the GPUs.
    engine.sum(context, values.data(), 1000, Element::f32);
    engine.begin_sum(context, values.data(), 1000, Element::f32);
    engine.wait(context);
    context.synchronize();
    std::jthread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
      engine.abort();
    });
    if (world.rank > 0) {  // rank 0 does not come
      engine.sum(context, values.data(), 1000, Element::f32);
      engine.begin_sum(context, values.data(), 1000, Element::f32);
      engine.wait(context);
      context.synchronize();
    }
    other.join();
    EXPECT_THROW(engine.sum(context, values.data(), 1000, Element::f32), RankLost);
    EXPECT_THROW(engine.check(), RankLost);
  });
  EXPECT_LT(seconds_since(start), 30);
}

TEST_F(NcclTest, ARankThatDoesNotConnectIsLost) {
  if (ranks_ < 2) GTEST_SKIP() << "one GPU waits for no other";
  ThreadRanks ranks(ranks_);
  ranks.run([&](Communicator& world) {
    if (world.rank > 0) return static_cast<void>(world.gather(""));
    Context context(Device::gpu, world.rank);
    expect_part(error_of([&] { make_nccl_engine(context, options_of(world, 2)); }),
                "has taken 2 s");
  });
}

}  // namespace nccl_test_gpu
}  // namespace crema::tests
