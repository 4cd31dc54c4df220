#include "data/loader/loader.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "data/loader/permutation.h"
#include "device/processors.h"

namespace crema {

int loader_workers(bool decodes, bool cpu_computes) {
  const int cores = usable_processors();
  const int maximum = cpu_computes ? std::max(1, cores / 2) : std::max(1, cores - 1);
  return std::min(maximum, decodes ? 16 : cores >= 8 ? 2 : 1);
}

Shape Loader::of_batch(const Shape& of_sample) const {
  std::vector<int64_t> dims = of_sample.dims();
  dims.insert(dims.begin(), options_.batch_size);
  return Shape(dims);
}

Shape Loader::label_shape() const {
  if (!samples_->labels_vary()) return of_batch(label_shape_);
  std::vector<float> none;
  return samples_->joined_label_shape(none);
}

void Loader::set_label_shape(Batch& batch, const Shape& of_sample) const {
  batch.label_shape = of_batch(of_sample);
  batch.labels.resize(batch.label_shape.count());
}

Loader::Loader(std::shared_ptr<const Dataset> samples, LoaderOptions options)
    : samples_(std::move(samples)), options_(options) {
  require(options_.batch_size > 0, "a batch needs at least one sample");
  SampleIndex first;
  first.random = sample_index_at(0, 0).random;
  Sample sample;
  try {
    samples_->load(first, sample);
  } catch (const Error& problem) {
    fail(samples_->describe(first), ": ", problem.what());
  }
  sample_shape_ = sample.shape;
  label_shape_ = sample.label_shape;
}

Loader::~Loader() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  tasks_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

const Batch& Loader::batch(int64_t number) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (threads_.empty()) {
    slots_.resize(static_cast<size_t>(std::max(1, options_.prefetch)) + 1);
    for (Slot& slot : slots_) {
      slot.batch.shape = sample_shape_;
      slot.batch.data.resize(options_.batch_size * sample_shape_.count());
      set_label_shape(slot.batch, label_shape_);
      slot.batch.sizes.resize(2 * options_.batch_size);
      if (samples_->labels_vary()) slot.labels.resize(options_.batch_size);
    }
    start_at(number, lock);
    for (int i = 0; i < std::max(1, options_.workers); ++i)
      threads_.emplace_back([this] { work(); });
  } else if (number == held_ + 1) {
    held_ = number;
    tasks_.notify_all();
  } else if (number != held_) {
    start_at(number, lock);
  }
  Slot& wanted = slot(number);
  const auto whole = [&] { return wanted.batch.number == number && wanted.missing == 0; };
  if (!whole()) {
    const auto begin = std::chrono::steady_clock::now();
    done_.wait(lock, whole);
    waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  if (wanted.error) std::rethrow_exception(wanted.error);
  return wanted.batch;
}

void Loader::join_labels(Slot& slot) const {
  std::vector<float>& labels_of_batch = slot.batch.labels;
  labels_of_batch.clear();
  for (const std::vector<float>& labels : slot.labels)
    labels_of_batch.insert(labels_of_batch.end(), labels.begin(), labels.end());
  slot.batch.label_shape = samples_->joined_label_shape(labels_of_batch);
}

// Threads may still be writing into slots for the old numbers: new tasks wait until they have
// finished.
void Loader::start_at(int64_t number, std::unique_lock<std::mutex>& lock) {
  seeking_ = true;
  done_.wait(lock, [&] { return busy_ == 0; });
  for (Slot& slot : slots_) slot.batch.number = -1;
  held_ = next_batch_ = number;
  next_sample_ = 0;
  seeking_ = false;
  tasks_.notify_all();
}

Loader::Task Loader::take_task() {
  Slot& next = slot(next_batch_);
  if (next_sample_ == 0) {
    next.batch.number = next_batch_;
    next.missing = options_.batch_size;
    next.error = nullptr;
  }
  // Tasks small enough that all threads work on the batch that is needed first, large enough to be
  // worth their overhead.
  const int64_t share = options_.batch_size / (4 * std::max(1, options_.workers));
  const int64_t piece = std::max<int64_t>(samples_->decodes() ? 1 : 16,
                                          options_.workers > 1 ? share : options_.batch_size);
  const Task task{&next, next_batch_, next_sample_,
                  std::min(options_.batch_size, next_sample_ + piece)};
  next_sample_ = task.last;
  if (next_sample_ == options_.batch_size) {
    next_sample_ = 0;
    ++next_batch_;
  }
  return task;
}

void Loader::work() {
  Sample sample;
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    tasks_.wait(lock, [&] { return stopping_ || (!seeking_ && has_task()); });
    if (stopping_) return;
    const Task task = take_task();
    ++busy_;
    lock.unlock();
    std::exception_ptr error;
    try {
      fill(task, sample);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    --busy_;
    Slot& slot = *task.slot;
    // Of several errors, the first by sample order, not by time.
    if (error && (!slot.error || task.first < slot.error_at)) {
      slot.error = error;
      slot.error_at = task.first;
    }
    slot.missing -= task.last - task.first;
    if (slot.missing == 0 && !slot.labels.empty()) join_labels(slot);
    if (slot.missing == 0 || busy_ == 0) done_.notify_all();
  }
}

SampleIndex Loader::sample_index_at(int64_t number, int64_t in_batch) const {
  SampleIndex sample_index;
  sample_index.in_batch = in_batch;
  sample_index.position =
      options_.skip + (number * options_.batch_size + in_batch) * options_.ranks + options_.rank;
  sample_index.record_index = samples_->record_index(sample_index.position);
  const Random epoch{
      options_.random.seed,
      mix(options_.random.stream, static_cast<uint64_t>(sample_index.record_index.epoch))};
  if (options_.shuffle)
    sample_index.record_index.index =
        Permutation(samples_->size(), epoch)(sample_index.record_index.index);
  // A separate stream, so that crops do not depend on the random numbers of the order.
  sample_index.random = {epoch.seed, mix(epoch.stream, 1)};
  sample_index.all_epochs = options_.random;
  return sample_index;
}

void Loader::check_shapes(const Sample& sample) const {
  if (sample.shape == sample_shape_ && sample.label_shape == label_shape_) return;
  if (options_.batch_size == 1 && sample.shape[0] == sample_shape_[0]) return;
  const bool of_labels = sample.shape == sample_shape_;
  const Shape &found = of_labels ? sample.label_shape : sample.shape,
              &expected = of_labels ? label_shape_ : sample_shape_;
  fail("its ", of_labels ? "label's shape " : "shape ", found.brief(), " is not ", expected.brief(),
       ", that of ", samples_->describe({}),
       "; the samples of a batch have one shape, and all samples one number of channels: ",
       samples_->how_to_equalize());
}

void Loader::make(const SampleIndex& sample_index, Sample& sample, Slot& slot) const {
  Batch& batch = slot.batch;
  samples_->load(sample_index, sample);
  check_shapes(sample);
  if (options_.batch_size == 1) {
    batch.shape = sample.shape;
    batch.data.resize(sample.shape.count());
    set_label_shape(batch, sample.label_shape);
  }
  batch.sizes[2 * sample_index.in_batch] = static_cast<float>(sample.stored_height);
  batch.sizes[2 * sample_index.in_batch + 1] = static_cast<float>(sample.stored_width);
  samples_->write(sample_index, sample,
                  batch.data.data() + sample_index.in_batch * sample_shape_.count());
  if (samples_->labels_vary()) {
    slot.labels[sample_index.in_batch] = sample.labels;
  } else {
    std::copy(sample.labels.begin(), sample.labels.end(),
              batch.labels.begin() + sample_index.in_batch * label_shape_.count());
  }
}

void Loader::fill(const Task& task, Sample& sample) const {
  for (int64_t i = task.first; i < task.last; ++i) {
    const SampleIndex sample_index = sample_index_at(task.number, i);
    try {
      make(sample_index, sample, *task.slot);
    } catch (const Error& problem) {
      fail(samples_->describe(sample_index), ": ", problem.what());
    }
    if (i + 1 == options_.batch_size) task.slot->batch.epoch = sample_index.record_index.epoch;
  }
}

}  // namespace crema
