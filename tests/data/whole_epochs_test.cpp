// Batches that do not cross the end of an epoch, as an exact test reads them.
#include <gtest/gtest.h>

#include "data/loader/loader.h"

namespace crema::tests {
namespace whole_epochs_test {

// Record i is the value i, with i objects of label i where their number varies.
class Values : public Dataset {
 public:
  Values(int64_t count, bool varies) : count_(count), varies_(varies) {}
  int64_t size() const override { return count_; }
  std::string describe(const SampleIndex&) const override { return "a value"; }
  std::string how_to_equalize() const override { return "do nothing"; }
  bool labels_vary() const override { return varies_; }
  void load(const SampleIndex&, Sample& sample) const override { sample.shape = {1, 1, 1}; }
  void write(const SampleIndex& at, Sample& sample, float* data) const override {
    *data = static_cast<float>(at.record_index.index);
    sample.labels.assign(varies_ ? at.record_index.index : 1, *data);
  }

 private:
  int64_t count_;
  bool varies_;
};

struct Case {
  int64_t records, batch;
  std::vector<int64_t> sizes;  // of the batches of an epoch
};

void PrintTo(const Case& row, std::ostream* out) { *out << row.records << " by " << row.batch; }

class WholeEpochs
    : public testing::TestWithParam<std::tuple<Case, bool /*shuffle*/, int /*workers*/>> {};

TEST_P(WholeEpochs, HaveEachRecordOnce) {
  const auto& [row, shuffle, workers] = GetParam();
  LoaderOptions options;
  options.batch_size = row.batch;
  options.workers = workers;
  options.shuffle = shuffle;
  options.whole_epochs = true;
  options.random = {5, 9};
  Loader loader(std::make_shared<Values>(row.records, false), options);
  LoaderOptions single = options;
  single.batch_size = 1;
  single.workers = 1;
  Loader one_by_one(std::make_shared<Values>(row.records, false), single);
  const auto batches = static_cast<int64_t>(row.sizes.size());
  ASSERT_EQ(batches_in_epoch(row.records, row.batch), batches);
  int64_t record = 0;
  for (int64_t number = 0; number < 3 * batches; ++number) {
    const Batch& batch = loader.batch(number);
    const int64_t size = row.sizes[number % batches];
    EXPECT_EQ(loader.samples(number), size);
    EXPECT_EQ(batch.samples, size);
    EXPECT_EQ(batch.epoch, number / batches);
    EXPECT_EQ(batch.label_shape, (Shape{size}));
    std::vector<float> wanted;
    for (int64_t i = 0; i < size; ++i) wanted.push_back(one_by_one.batch(record++).data[0]);
    EXPECT_EQ(batch.data, wanted) << number;
    EXPECT_EQ(batch.labels, wanted) << number;
  }
  EXPECT_EQ(record, 3 * row.records);
  EXPECT_EQ(one_by_one.batch(record - 1).epoch, 2);
  EXPECT_EQ(static_cast<int64_t>(loader.batch(batches - 1).data.size()), row.sizes.back());
  EXPECT_EQ(static_cast<int64_t>(loader.batch(0).data.size()), row.sizes.front());
}

INSTANTIATE_TEST_SUITE_P(All, WholeEpochs,
                         testing::Combine(testing::Values(Case{10, 4, {4, 4, 2}},
                                                          Case{12, 4, {4, 4, 4}}, Case{3, 5, {3}},
                                                          Case{5, 1, {1, 1, 1, 1, 1}},
                                                          Case{41, 40, {40, 1}}),
                                          testing::Bool(), testing::Values(1, 2, 8)));

TEST(WholeEpochs, JoinTheLabelsOfTheirRecords) {
  LoaderOptions options;
  options.batch_size = 3;
  options.whole_epochs = true;
  Loader loader(std::make_shared<Values>(5, true), options);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(loader.batch(2 * round).labels, (std::vector<float>{1, 2, 2}));
    EXPECT_EQ(loader.batch(2 * round + 1).labels, (std::vector<float>{3, 3, 3, 4, 4, 4, 4}));
  }
}

}  // namespace whole_epochs_test
}  // namespace crema::tests
