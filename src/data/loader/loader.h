// Loader: prepares batches ahead of the training, in its own threads. The content of a batch is a
// pure function of its number and the options; it does not depend on the number of threads, on
// timing, or on earlier requests.
#pragma once

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "data/loader/dataset.h"

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
  int prefetch = 4;  // batches that are made ahead
  int workers = 1;
  bool shuffle = false;     // a new order in every epoch
  int64_t skip = 0;         // samples skipped once, at the very beginning
  int rank = 0, ranks = 1;  // sample i of the traversal belongs to rank i % ranks
  Random random;            // for orders, crops and mirroring
};

// How many threads are useful: decoding images takes many, copying bytes one or two. A CPU that
// also computes the net keeps half of its cores for that.
int loader_workers(bool decodes, bool cpu_computes);

class Loader {
 public:
  // Loads the first record: its sample's shape is the shape of all. Only in batches of one may
  // height and width differ. Threads start with the first batch.
  Loader(std::shared_ptr<const Dataset> samples, LoaderOptions options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  const Shape& sample_shape() const { return sample_shape_; }
  // The shape of a batch's labels; where their number varies, that of no labels.
  Shape label_shape() const;
  const LoaderOptions& options() const { return options_; }

  // Waits until the batch is complete; it stays valid until the next call. Sequential calls are
  // fast, any other number restarts the threads there. An Error of a thread is thrown here, with
  // the batch that it belongs to.
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
  SampleIndex sample_index_at(int64_t number, int64_t in_batch) const;
  void fill(const Task& task, Sample& sample) const;
  void make(const SampleIndex& sample_index, Sample& sample, Slot& slot) const;
  void check_shapes(const Sample& sample) const;
  Shape of_batch(const Shape& of_sample) const;
  void set_label_shape(Batch& batch, const Shape& of_sample) const;
  void join_labels(Slot& slot) const;
  void start_at(int64_t number, std::unique_lock<std::mutex>& lock);

  const std::shared_ptr<const Dataset> samples_;
  const LoaderOptions options_;
  Shape sample_shape_, label_shape_;  // of each
  double waited_ = 0;

  std::mutex mutex_;
  std::condition_variable tasks_, done_;
  std::vector<Slot> slots_;  // batch n is in slot n % size
  int64_t held_ = -1;  // the batch that the caller has or waits for; later ones are made ahead
  int64_t next_batch_ = 0, next_sample_ = 0;  // where the next task begins
  int busy_ = 0;
  bool seeking_ = false, stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace crema
