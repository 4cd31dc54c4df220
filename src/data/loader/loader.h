// Loader: makes batches ahead of the training, on threads of its own. What is in a batch is a pure
// function of its number and the options: not of the number of threads, of timing, or of what was
// asked before.
#pragma once

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "data/loader/samples.h"

namespace crema {

struct Batch {
  int64_t number = -1;
  int64_t epoch = 0;          // of its last sample
  Shape shape;                // of the data of each sample
  Shape label_shape;          // of all labels together
  std::vector<float> data;    // sample after sample
  std::vector<float> labels;  // likewise
  std::vector<float> sizes;  // height and width of each image before a crop (Sample::stored_height)
};

struct LoaderOptions {
  int64_t batch_size = 1;
  int prefetch = 4;  // batches that may wait ready
  int workers = 1;
  bool shuffle = false;     // a new order in every epoch
  int64_t skip = 0;         // samples left out once, at the very beginning
  int rank = 0, ranks = 1;  // sample i of the walk belongs to rank i % ranks
  Random random;            // of orders, crops and mirrors
};

// Threads worth their cores: decoding images takes many, copying bytes one or two. A CPU that also
// computes the net keeps half of its cores for that.
int loader_workers(bool decodes, bool cpu_computes);

class Loader {
 public:
  // Loads the first record: the shape of its sample is that of all. Only in batches of one sample
  // height and width may be others. Threads start with the first batch.
  Loader(std::shared_ptr<const Samples> samples, LoaderOptions options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  const Shape& sample_shape() const { return sample_shape_; }
  // Of the labels of a batch; where their number varies, of none.
  Shape label_shape() const;
  const LoaderOptions& options() const { return options_; }

  // Waits until the batch is whole; it stays valid until the next call. Asking in sequence is fast,
  // any other number makes the threads start again there. The error of a thread comes out here,
  // with the batch that it belongs to.
  const Batch& batch(int64_t number);

  // Seconds that callers of batch() have waited.
  double waited() const { return waited_; }

 private:
  struct Slot {
    Batch batch;
    std::vector<std::vector<float>> labels;  // of each sample, where their number varies
    int64_t missing = 0;                     // samples not written yet
    int64_t error_at = 0;
    std::exception_ptr error;
  };
  struct Task {
    Slot* slot;
    int64_t number, first, last;
  };

  Slot& slot(int64_t number) { return slots_[static_cast<size_t>(number) % slots_.size()]; }
  bool has_task() const { return next_batch_ < held_ + static_cast<int64_t>(slots_.size()); }
  Task take_task();
  void work();
  Turn turn_at(int64_t number, int64_t in_batch) const;
  void fill(const Task& task, Sample& sample) const;
  void make(const Turn& turn, Sample& sample, Slot& slot) const;
  void check_shapes(const Sample& sample) const;
  Shape of_batch(const Shape& of_sample) const;
  void set_label_shape(Batch& batch, const Shape& of_sample) const;
  void join_labels(Slot& slot) const;
  void start_at(int64_t number, std::unique_lock<std::mutex>& lock);

  const std::shared_ptr<const Samples> samples_;
  const LoaderOptions options_;
  Shape sample_shape_, label_shape_;  // of each
  double waited_ = 0;

  std::mutex mutex_;
  std::condition_variable tasks_, done_;
  std::vector<Slot> slots_;  // batch n lies in slot n % size
  int64_t held_ = -1;  // the batch that the caller has or waits for; those after it are made ahead
  int64_t next_batch_ = 0, next_sample_ = 0;  // the next task begins here
  int busy_ = 0;
  bool seeking_ = false, stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace crema
