// Engines that sum values over the ranks. The tests named Mpi... need several processes:
// comm/mpirun.sh starts them.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>

#include "base/random.h"
#include "comm/launcher.h"
#include "comm/mpi_module.h"
#include "comm/world.h"
#include "device/context.h"
#include "support.h"

namespace crema::tests {
namespace engine_test {

using Clock = std::chrono::steady_clock;

bool under_mpirun() { return std::getenv("OMPI_COMM_WORLD_SIZE") || std::getenv("PMI_SIZE"); }

void sleep(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

template <typename T>
constexpr Element kElement = sizeof(T) == 4 ? Element::f32 : Element::f64;

// A rank's values, with different signs and sizes, so that the order of additions shows.
template <typename T>
T value_of(int rank, int64_t i, uint64_t seed) {
  const uint64_t bits = mix(mix(seed, static_cast<uint64_t>(rank)), static_cast<uint64_t>(i));
  return static_cast<T>((static_cast<double>(bits % 2000001) - 1e6) /
                        static_cast<double>(1 + bits % 97));
}

template <typename T>
std::vector<T> values_of(int rank, int64_t count, uint64_t seed) {
  std::vector<T> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) values[i] = value_of<T>(rank, i, seed);
  return values;
}

// Engines of as many processes as mpirun has started.
class MpiEngineTest : public testing::Test {
 public:
  static void SetUpTestSuite() {
    if (!under_mpirun()) return;
    mpi_ = load_mpi();
    engine_ = mpi_->make_engine(20);
  }
  static void TearDownTestSuite() {
    if (!mpi_) return;
    mpi_->end(20, [] { return false; });
    engine_.reset();
    mpi_.reset();
  }

 protected:
  void SetUp() override {
    if (!mpi_) GTEST_SKIP() << "not started by mpirun";
    ASSERT_GT(mpi_->ranks(), 1);
  }

  int rank() const { return mpi_->rank(); }
  int ranks() const { return mpi_->ranks(); }
  Engine& engine() const { return *engine_; }

  // `sums` are those of values_of() from index `first` on, up to rounding.
  template <typename T>
  void expect_sums(const T* sums, int64_t first, int64_t count, uint64_t seed) const {
    int64_t wrong = 0;
    for (int64_t i = 0; i < count; ++i) {
      double sum = 0, sizes = 0;
      for (int other = 0; other < ranks(); ++other) {
        const auto value = static_cast<double>(value_of<T>(other, first + i, seed));
        sum += value;
        sizes += std::abs(value);
      }
      const double rounding = sizes * (sizeof(T) == 4 ? 1e-6 : 1e-14);
      if (!(std::abs(static_cast<double>(sums[i]) - sum) <= rounding)) ++wrong;
    }
    EXPECT_EQ(wrong, 0) << "of " << count << " sums on rank " << rank();
  }

  // All ranks have the same bits.
  template <typename T>
  void expect_alike(const std::vector<T>& values) {
    uint32_t hash = 2166136261u;
    for (const T value : values) {
      uint32_t words[sizeof(T) / 4];
      std::memcpy(words, &value, sizeof value);
      for (const uint32_t word : words) hash = (hash ^ word) * 16777619u;
    }
    // Numbers are equal if their mean is the root of the mean of their squares.
    double moments[2] = {static_cast<double>(hash >> 8), std::pow(hash >> 8, 2)};
    engine().sum(context_, moments, 2, Element::f64);
    EXPECT_EQ(moments[0], static_cast<double>(ranks()) * (hash >> 8));
    EXPECT_EQ(moments[1], ranks() * std::pow(hash >> 8, 2));
  }

  template <typename T>
  void expect_sum(int64_t count) {
    SCOPED_TRACE(cat(count, " values of ", sizeof(T), " bytes"));
    std::vector<T> values = values_of<T>(rank(), count, 1);
    engine().sum(context_, values.data(), count, kElement<T>);
    expect_sums(values.data(), 0, count, 1);
    expect_alike(values);
  }

  template <typename T>
  void expect_parts(int64_t part) {
    SCOPED_TRACE(cat("parts of ", part, " values of ", sizeof(T), " bytes"));
    std::vector<T> values = values_of<T>(rank(), part * ranks(), 2);
    engine().sum_part(context_, values.data(), part, kElement<T>);
    const std::vector<T> own(values.begin() + part * rank(), values.begin() + part * (rank() + 1));
    expect_sums(own.data(), part * rank(), part, 2);
    std::fill(values.begin(), values.end(), T(-1));
    std::copy(own.begin(), own.end(), values.begin() + part * rank());
    engine().share_parts(context_, values.data(), part, kElement<T>);
    expect_sums(values.data(), 0, part * ranks(), 2);
    expect_alike(values);
  }

  Context context_{Device::cpu};

 private:
  static inline std::unique_ptr<MpiModule> mpi_;
  static inline std::unique_ptr<Engine> engine_;
};

// The largest are of several pieces (comm/mpi/mpi_queue.cpp).
TEST_F(MpiEngineTest, Sums) {
  for (const int64_t count : {0, 1, 2, 7, 1000, 262144, 1048577}) {
    expect_sum<float>(count);
    expect_sum<double>(count);
  }
  expect_sum<float>(25000003);
}

TEST_F(MpiEngineTest, BeginsManySumsAndMakesOthersMeanwhile) {
  constexpr int kBuckets = 100;
  const auto size_of = [](int bucket) { return 1 + (bucket * 7919) % 300000; };
  std::vector<std::vector<float>> buckets;
  for (int i = 0; i < kBuckets; ++i) {
    // The ranks are at different places.
    if (i % 30 == rank()) sleep(0.02);
    buckets.push_back(values_of<float>(rank(), size_of(i), 100 + i));
    engine().begin_sum(context_, buckets.back().data(), size_of(i), Element::f32);
    if (i % 20 == 0) expect_sum<double>(1 + i);
  }
  engine().wait(context_);
  for (int i = 0; i < kBuckets; ++i) {
    SCOPED_TRACE(i);
    expect_sums(buckets[i].data(), 0, size_of(i), 100 + i);
    expect_alike(buckets[i]);
  }
  engine().wait(context_);  // nothing is left
}

TEST_F(MpiEngineTest, DoesNotWaitForSlowRanksBeforeWait) {
  expect_sum<float>(1);  // all are here
  sleep(0.3 * rank());
  std::vector<float> values = values_of<float>(rank(), 100000, 3);
  const Clock::time_point start = Clock::now();
  engine().begin_sum(context_, values.data(), 100000, Element::f32);
  EXPECT_LT(seconds_since(start), 0.2);
  engine().wait(context_);
  if (rank() == 0) {
    EXPECT_GT(seconds_since(start), 0.2);
  }
  expect_sums(values.data(), 0, 100000, 3);
}

TEST_F(MpiEngineTest, Parts) {
  for (const int64_t part : {0, 1, 5, 100003}) {
    expect_parts<float>(part);
    expect_parts<double>(part);
  }
  expect_parts<double>(9000000);  // more than one piece
}

TEST_F(MpiEngineTest, RefusesTypesThatMpiDoesNotAdd) {
  float values[2] = {1, 2};
  for (const Element element : {Element::f16, Element::bf16}) {
    expect_part(error_of([&] { engine().sum(context_, values, 2, element); }), "give -wire fp32");
    EXPECT_THROW(engine().begin_sum(context_, values, 2, element), Error);
  }
  expect_sum<float>(3);
}

TEST_F(MpiEngineTest, Names) {
  EXPECT_FALSE(engine().recordable());
  EXPECT_FALSE(engine().name().empty());
  EXPECT_EQ(engine().name().find_first_of(",\n\t"), std::string::npos) << engine().name();
}

// Each of these leaves MPI unusable, so each has its own processes.
TEST(MpiAbortTest, EndsWhatWaits) {
  if (!under_mpirun()) GTEST_SKIP() << "not started by mpirun";
  Context context(Device::cpu);
  const std::unique_ptr<MpiModule> mpi = load_mpi();
  EXPECT_EQ(mpi->broadcast(cat("of rank ", mpi->rank())), "of rank 0");
  EXPECT_EQ(mpi->broadcast(mpi->rank() ? "x" : ""), "");
  const std::unique_ptr<Engine> engine = mpi->make_engine(30);
  const Clock::time_point start = Clock::now();
  std::thread other([&] {
    sleep(0.5);
    engine->abort();
  });
  std::vector<float> large(1 << 20), small(10);
  const auto sum = [&] { engine->sum(context, small.data(), 10, Element::f32); };
  if (mpi->rank() > 0) {  // rank 0 joins none of them
    engine->begin_sum(context, large.data(), 1 << 20, Element::f32);
    if (mpi->rank() == 1) {
      EXPECT_THROW(sum(), RankLost);
    } else {
      EXPECT_THROW(engine->wait(context), RankLost);
    }
    EXPECT_GT(seconds_since(start), 0.4);
  }
  other.join();
  EXPECT_THROW(sum(), RankLost);
  EXPECT_THROW(engine->check(), RankLost);
  EXPECT_THROW(engine->share_parts(context, small.data(), 1, Element::f32), RankLost);
  EXPECT_LT(seconds_since(start), 3);
  mpi->end(30, [] { return false; });
  EXPECT_LT(seconds_since(start), 3);
}

TEST(MpiTimeoutTest, EndsWhatWaits) {
  if (!under_mpirun()) GTEST_SKIP() << "not started by mpirun";
  Context context(Device::cpu);
  const std::unique_ptr<MpiModule> mpi = load_mpi();
  const std::unique_ptr<Engine> engine = mpi->make_engine(1);
  std::vector<float> values(10);
  engine->sum(context, values.data(), 10, Element::f32);
  const Clock::time_point start = Clock::now();
  if (mpi->rank() > 0) {
    const std::string message =
        error_of([&] { engine->sum(context, values.data(), 10, Element::f32); });
    expect_part(message, "have not joined a sum of this one for 1 s");
    EXPECT_GT(seconds_since(start), 0.9);
    EXPECT_LT(seconds_since(start), 3);
    EXPECT_THROW(engine->check(), RankLost);
  } else {
    sleep(2);
    EXPECT_NO_THROW(engine->check());
    engine->abort();
  }
}

class MpiWorldTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!under_mpirun()) GTEST_SKIP() << "not started by mpirun";
    launch_ = launch_of_environment();
    ASSERT_TRUE(launch_ && launch_->has_mpi);
  }
  std::optional<Launch> launch_;
};

TEST_F(MpiWorldTest, MeetsAndEnds) {
  Context context(Device::cpu);
  const std::unique_ptr<World> world = meet(*launch_, 20);
  const int rank = world->rank, ranks = world->ranks;
  const std::vector<std::string> before = world->gather(cat("I am ", rank));
  EXPECT_EQ(before.back(), cat("I am ", ranks - 1));
  world->connect(context);
  EXPECT_EQ(context.world(), world.get());
  EXPECT_FALSE(world->recordable());
  for (int iteration = 0; iteration < 100; ++iteration) {
    float values[3] = {1, static_cast<float>(rank), static_cast<float>(iteration)};
    world->begin_sum(context, values, 3, Element::f32);
    double others[2] = {1, rank * 0.5};
    world->sum(context, others, 2, Element::f64);
    world->wait(context);
    EXPECT_EQ(values[0], ranks);
    EXPECT_EQ(values[1], ranks * (ranks - 1) / 2);
    EXPECT_EQ(values[2], ranks * iteration);
    EXPECT_EQ(others[1], ranks * (ranks - 1) / 4.0);
    world->at_iteration(iteration);
  }
  context.set_world(nullptr);
}

TEST_F(MpiWorldTest, AFailureEndsAll) {
  Context context(Device::cpu);
  const Clock::time_point start = Clock::now();
  const auto work = [&] {
    const std::unique_ptr<World> world = meet(*launch_, 20);
    world->connect(context);
    float value = 1;
    world->sum(context, &value, 1, Element::f32);
    if (world->rank == 1) fail("a file is missing");
    try {
      world->sum(context, &value, 1, Element::f32);
      ADD_FAILURE() << "rank 1 is not there";
    } catch (const RankLost& lost) {
      EXPECT_TRUE(lost.told()) << lost.what();
      EXPECT_NE(std::string(lost.what()).find("rank 1"), std::string::npos) << lost.what();
      throw;
    }
  };
  EXPECT_THROW(work(), Error);
  EXPECT_LT(seconds_since(start), 10);
}

}  // namespace engine_test
}  // namespace crema::tests
