// Loader: prepares batches ahead of the training, in its own threads. The content of a batch is a
// pure function of its number and the options; it does not depend on the number of threads, on
// timing, or on earlier requests.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "data/loader/balance.h"
#include "data/loader/dataset.h"
#include "data/transforms/mixture.h"

namespace crema {

// A record that a dataset hands over, and which one it is.
struct HandedOver {
  SampleIndex sample_index;
  Record record;
};

struct Batch {
  int64_t number = -1;
  int64_t samples = 0;        // batch_size, or less at the end of a whole epoch
  int64_t epoch = 0;          // epoch of its last sample
  Shape shape;                // shape of each sample's data
  Shape label_shape;          // shape of all labels together
  std::vector<float> data;    // sample after sample
  std::vector<float> labels;  // likewise
  std::vector<float> sizes;  // height and width of each image before a crop (Sample::stored_height)
  // Instead of data, from a dataset that hands_over().
  std::vector<HandedOver> records;
};

struct LoaderOptions {
  int64_t batch_size = 1;
  int prefetch = 4;  // batches that are made ahead
  int workers = 1;
  int reserve = 0;       // more threads, which work only while batch() waits
  bool shuffle = false;  // a new order in every epoch
  // Classes come equally often (data/loader/balance.h); then it does not matter whether records are
  // shuffled.
  bool balance = false;
  // No batch crosses the end of an epoch: the last one before it is smaller. For undivided batches
  // with skip 0.
  bool whole_epochs = false;
  int64_t skip = 0;  // samples skipped once, at the very beginning
  // Several ranks share each batch of the traversal, which has `batch_of_ranks` samples (0:
  // batch_size): this one takes those from `first_in_batch` on.
  int64_t batch_of_ranks = 0, first_in_batch = 0;
  int64_t traversed() const { return batch_of_ranks > 0 ? batch_of_ranks : batch_size; }
  Random random;    // for orders, crops and mirroring
  Mixture mixture;  // mixes the samples of a batch, which then have one label each
};

// How many threads are useful: decoding images needs many, copying bytes one or two. A CPU that
// also computes the net keeps half of its cores for that; they are idle while the net waits for a
// batch, and then the rest of the cores helps as reserve.
int loader_workers(bool decodes, bool cpu_computes);
int loader_reserve(bool decodes, bool cpu_computes);

// With whole_epochs.
inline int64_t batches_in_epoch(int64_t records, int64_t batch_size) {
  return (records + batch_size - 1) / batch_size;
}

class Loader {
 public:
  // Loads the first record: its sample's shape is the shape of all. Only in batches of one may
  // height and width differ. Threads start with the first batch.
  Loader(std::shared_ptr<const Dataset> samples, const LoaderOptions& options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  const Shape& sample_shape() const { return sample_shape_; }
  // The shape of a full batch's labels; where their number varies, that of no labels.
  Shape label_shape() const;
  // The number of samples in a batch.
  int64_t samples(int64_t number) const;
  // Records in an epoch; may have to read through the source.
  int64_t records() const { return samples_->size(); }
  const LoaderOptions& options() const { return options_; }
  // From now on this many samples come at the very beginning, in addition to options().skip.
  void skip(int64_t samples);
  uint64_t hash_of_first() const;
  // The record of a sample, as Dataset::describe() names it; of mixed samples, the first.
  std::string describe(int64_t number, int64_t in_batch) const {
    return samples_->describe(sample_index_at(number, in_batch));
  }
  // Null: classes are not balanced.
  const Balance* balance() const { return balance_.get(); }

  // Waits until the batch is complete; it stays valid until the next call. Sequential calls are
  // fast, any other number restarts the threads there. Throws a thread's Error with the batch that
  // it belongs to.
  const Batch& batch(int64_t number);

  // Seconds that callers of batch() have waited.
  double waited() const { return waited_; }
  // Makes a few samples, which takes at most a second, and says what took how long.
  WaitingFacts survey() const;

 private:
  struct Slot {
    Batch batch;
    std::vector<std::vector<float>> labels;  // per sample, if their number varies
    int64_t missing = 0;                     // samples not written yet
    std::vector<char> made;                  // samples already made, if samples are mixed
    int64_t error_at = 0;
    std::exception_ptr error;
  };
  struct Task {
    Slot* slot;
    int64_t number, first, last;
  };

  Slot& slot(int64_t number) { return slots_[static_cast<size_t>(number) % slots_.size()]; }
  bool has_task() const { return next_batch_ < held_ + static_cast<int64_t>(slots_.size()); }
  int threads() const { return std::max(1, options_.workers) + options_.reserve; }
  Task take_task();
  void work(bool is_reserve);
  SampleIndex sample_index_at(int64_t number, int64_t in_batch) const;
  void fill(const Task& task, Sample& sample) const;
  std::vector<int64_t> take_complete_pairs(const Task& task) const;
  void mix_with_partner(const Task& task, int64_t in_batch) const;
  MixedSample mixed_sample(const Task& task, int64_t in_batch) const;
  void make(const SampleIndex& sample_index, Sample& sample, Slot& slot) const;
  void check_shapes(const Sample& sample) const;
  Shape of_batch(const Shape& of_sample, int64_t samples) const;
  Shape shape_of_labels(const Shape& of_sample, int64_t samples) const;
  void set_samples(Slot& slot, int64_t samples) const;
  void set_label_shape(Batch& batch, const Shape& of_sample) const;
  int64_t first_position(int64_t number) const;
  void join_labels(Slot& slot) const;
  void start_at(int64_t number, std::unique_lock<std::mutex>& lock);

  const std::shared_ptr<const Dataset> samples_;
  LoaderOptions options_;
  const std::unique_ptr<const Balance> balance_;
  Shape sample_shape_, label_shape_;  // of each
  int64_t skipped_ = 0;               // part of options_.skip that skip() added
  double waited_ = 0;

  std::mutex mutex_;
  std::condition_variable tasks_, help_, done_;
  std::vector<Slot> slots_;  // batch n is in slot n % size
  int64_t held_ = -1;  // the batch that the caller has or waits for; later ones are made ahead
  int64_t next_batch_ = 0, next_sample_ = 0;  // where the next task begins
  int busy_ = 0;
  bool seeking_ = false, stopping_ = false;
  bool waiting_ = false;  // batch() waits, and its batch is not complete
  std::vector<std::thread> threads_;
};

}  // namespace crema
