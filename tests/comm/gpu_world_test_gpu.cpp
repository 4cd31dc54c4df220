// Sums over the GPUs of this machine, of which each rank has one; tests/comm/mpirun.sh starts the
// ranks. If NVLink connects the GPUs, copy engines sum exposed memory; otherwise NCCL does.
#include "device/gpu.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "comm/copy_engines.h"
#include "comm/launcher.h"
#include "comm/nccl_engine.h"
#include "comm/world.h"
#include "device/capture.h"
#include "on_gpu.h"
#include "support.h"

namespace crema::tests {
namespace gpu_world_test_gpu {

class GpuWorldTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::optional<Launch> launch = launch_of_environment();
    if (!launch || !launch->has_mpi) GTEST_SKIP() << "not started by mpirun";
    if (gpu_count() < launch->ranks) GTEST_SKIP() << "fewer GPUs than ranks";
    if (!has_nccl()) GTEST_SKIP() << "this build has no NCCL";
    context_ = std::make_unique<Context>(Device::gpu, launch->local_rank);
    world_ = meet(*launch, 20);
    world_->connect(*context_);
  }
  void TearDown() override {
    if (context_) context_->set_world(nullptr);
  }

  std::unique_ptr<Context> context_;
  std::unique_ptr<World> world_;
};

// Counts that no number of ranks divides, and parts of the exposed memory.
TEST_F(GpuWorldTest, SumsWhatIsExposed) {
  Context& context = *context_;
  constexpr int64_t kLeast = CopyEngines::kLeastBytes / 4;
  for (const int64_t count : {int64_t{1000}, kLeast, int64_t{5000011}}) {
    SCOPED_TRACE(count);
    const OnGpu values(context, values_of(world_->rank, count));
    world_->expose(context, values.data(), count * sizeof(float), size_t{64} << 20);
    const auto work = [&] {
      world_->begin_sum(context, values.data(), count, Element::f32);
      world_->begin_sum(context, values.data(), count, Element::f32);
      world_->wait(context);
    };
    work();
    EXPECT_EQ(values.read(), sums_of(world_->ranks, count, 2));
    Capture capture;
    capture.record(context, work);
    for (int times = 0; times < 50; ++times) {
      values.write(values_of(world_->rank, count));
      world_->gather("");  // no rank copies from memory that is being written
      capture.launch(context);
      ASSERT_EQ(values.read(), sums_of(world_->ranks, count, 2)) << times;
    }
  }
}

TEST_F(GpuWorldTest, SumsExposedHalves) {
  Context& context = *context_;
  for (const Element element : {Element::f16, Element::bf16}) {
    // Zeros, except for some ones, the same number on each rank: the sums are the number of ranks.
    const uint16_t one = element == Element::f16 ? 0x3c00 : 0x3f80;
    const int bits = element == Element::f16 ? 10 : 7, bias = element == Element::f16 ? 15 : 127;
    std::vector<uint16_t> values(6000007);
    for (size_t i = 0; i < values.size(); i += 3) values[i] = one;
    const Buffer buffer(context, values.size() * sizeof(uint16_t));
    copy_bytes(context, buffer.data(), Device::gpu, values.data(), Device::cpu, buffer.bytes());
    world_->expose(context, buffer.data(), buffer.bytes(), buffer.bytes());
    world_->begin_sum(context, buffer.data(), static_cast<int64_t>(values.size()), element);
    world_->wait(context);
    copy_bytes(context, values.data(), Device::cpu, buffer.data(), Device::gpu, buffer.bytes());
    for (size_t i = 0; i < values.size(); ++i) {
      const double sum = values[i] == 0
                             ? 0
                             : std::ldexp(1 + std::ldexp(values[i] & ((1 << bits) - 1), -bits),
                                          (values[i] >> bits) - bias);
      ASSERT_EQ(sum, i % 3 == 0 ? world_->ranks : 0) << i;
    }
  }
}

}  // namespace gpu_world_test_gpu
}  // namespace crema::tests
