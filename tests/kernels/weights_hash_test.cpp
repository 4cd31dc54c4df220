// Hashes of weights: the same in every format, on every device and for any number of threads;
// another if a single bit or position differs.
#include "kernels/optim/weights_hash.h"

#include <cstring>
#include <set>

#include "kernels/random_values.h"

namespace crema {
namespace weights_hash_test {

Tensor filled(Context& context, const Shape& shape, const Format& format, DType dtype) {
  Tensor tensor(context, shape, dtype, format);
  from_doubles(context, random_values(shape.count(), 7, 1).data(), tensor);
  return tensor;
}

uint64_t hash(Context& context, const Tensor& tensor) {
  return weights_hashes(context, std::span(&tensor, 1))[0];
}

struct Row {
  Shape shape;
  Format format;
};

std::vector<Row> rows() {
  const auto blocking =
      std::make_shared<const Blocking>(Blocking{{8, 8, 3, 3}, {288, 144, 48, 16}, {4, 4}, {1, 0}});
  return {{{6, 5, 3, 3}, Format::channels_last()},
          {{6, 5, 3, 3}, {Order::channels_last, nullptr, 8}},
          {{8, 8, 3, 3}, {Order::blocked, blocking}},
          {{10, 12}, {Order::channels_last, nullptr, 0, 4}},
          {{10, 12}, Format::channels_last()},
          {{300, 31, 3, 5}, Format::channels_last()},
          {{7}, Format::row_major()},
          {{2, 1, 5}, Format::channels_last()}};
}

void expect_same_everywhere(Device device) {
  Context host(Device::cpu), context(device);
  for (const Row& row : rows()) {
    if (device == Device::gpu && row.format.order == Order::blocked) continue;
    SCOPED_TRACE(row.shape.brief());
    for (const DType dtype : {DType::f32, DType::f64}) {
      const uint64_t plain = hash(host, filled(host, row.shape, Format::row_major(), dtype));
      EXPECT_EQ(hash(context, filled(context, row.shape, row.format, dtype)), plain);
      EXPECT_EQ(hash(context, filled(context, row.shape, Format::row_major(), dtype)), plain);
    }
  }
}

TEST(WeightsHash, IsThatOfTheValuesInRowMajorOrder) { expect_same_everywhere(Device::cpu); }

TEST(WeightsHash, IsThatOfTheValuesInRowMajorOrderOnAGpu) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  expect_same_everywhere(Device::gpu);
}

void expect_differences_found(Device device) {
  Context host(Device::cpu), context(device);
  const Shape shape{40, 70};
  const Tensor original = filled(host, shape, {}, DType::f32);
  std::set<uint64_t> seen = {hash(host, original)};
  const Tensor there(context, shape);
  const auto expect_new = [&](const char* what) {
    copy(context, original, there);
    EXPECT_TRUE(seen.insert(hash(context, there)).second) << what;
  };
  auto* const words = original.data<uint32_t>();
  for (int bit = 0; bit < 32; ++bit) {  // of the first value, of one in the middle, of the last
    for (const int64_t at : {int64_t{0}, shape.count() / 2, shape.count() - 1}) {
      words[at] ^= 1u << bit;
      expect_new("a bit");
      words[at] ^= 1u << bit;
    }
  }
  std::swap(words[5], words[6]);
  expect_new("two values in each other's position");
  std::swap(words[5], words[6]);
  // As much added in one position as is taken away in another.
  words[8] += 1000, words[9] -= 1000;
  expect_new("two differences that cancel");
  words[8] -= 1000, words[9] += 1000;
  words[3] = 0;
  expect_new("zero");
  words[3] = 0x80000000u;
  expect_new("minus zero");
}

TEST(WeightsHash, FindsEachDifference) { expect_differences_found(Device::cpu); }

TEST(WeightsHash, FindsEachDifferenceOnAGpu) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  expect_differences_found(Device::gpu);
}

TEST(WeightsHash, OneForEachTensor) {
  Context context(Device::cpu);
  std::vector<Tensor> tensors;
  for (int64_t size = 1; size < 200; ++size)
    tensors.push_back(filled(context, {size}, {}, DType::f32));
  const std::vector<uint64_t> hashes = weights_hashes(context, tensors);
  ASSERT_EQ(hashes.size(), tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) EXPECT_EQ(hashes[i], hash(context, tensors[i]));
  EXPECT_EQ(std::set<uint64_t>(hashes.begin(), hashes.end()).size(), tensors.size());
}

}  // namespace weights_hash_test
}  // namespace crema
