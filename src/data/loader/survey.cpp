// Finds out why a run waits for samples, by timing a few of them.
#include <chrono>

#include "data/loader/loader.h"
#include "device/host_limits.h"

namespace crema {

WaitingFacts Loader::survey() const {
  constexpr int64_t kSamples = 16, kAhead = 64;
  constexpr std::chrono::duration<double> kTime(0.5);
  using Clock = std::chrono::steady_clock;
  WaitingFacts facts;
  Sample sample;
  sample.times = &facts.times;
  std::vector<float> data;
  const Clock::time_point begin = Clock::now();
  int64_t made = 0;
  while (made < kSamples && Clock::now() - begin < kTime) {
    // From batches that have not been read yet, because the system caches those that have.
    SampleIndex sample_index = sample_index_at(held_ + kAhead + made, 0);
    if (sample_index.record_index.epoch != sample_index_at(held_, 0).record_index.epoch)
      sample_index = sample_index_at(held_, made % samples(held_));  // the epoch is nearly over
    ++made;
    samples_->load(sample_index, sample);
    data.resize(sample.shape.count());
    samples_->write(sample_index, sample, data.data());
  }
  const auto each = static_cast<double>(made);
  facts.seconds = std::chrono::duration<double>(Clock::now() - begin).count() / each;
  for (double* part : {&facts.times.read, &facts.times.decode, &facts.times.change}) *part /= each;
  facts.threads = threads();
  facts.cores = usable_processors();
  facts.records = samples_->size();
  facts.channels = sample_shape_[0];
  if (sample_shape_.axes() == 3) {
    facts.height = sample_shape_[1];
    facts.width = sample_shape_[2];
  }
  facts.free_memory = free_host_memory();
  samples_->add_facts(facts);
  return facts;
}

}  // namespace crema
