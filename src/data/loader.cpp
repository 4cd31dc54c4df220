#include "data/loader.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "data/permutation.h"

namespace crema {

int loader_workers(bool encoded, bool cpu_computes) {
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const int most = cpu_computes ? std::max(1, cores / 2) : std::max(1, cores - 1);
  return std::min(most, encoded ? 16 : cores >= 8 ? 2 : 1);
}

Loader::Loader(std::shared_ptr<const Source> source, Transform transform, LoaderOptions options)
    : source_(std::move(source)), transform_(std::move(transform)), options_(options) {
  require(options_.batch_size > 0, "a batch needs at least one sample");
  Record record;
  try {
    source_->read(0, record.datum);
    decode(record, transform_.color());
    sample_shape_ = transform_.output(record.shape());
  } catch (const Error& problem) {
    fail(source_->describe(0), ": ", problem.what());
  }
  record_shape_ = record.shape();
  encoded_ = record.datum.encoded();
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
      slot.batch.labels.resize(options_.batch_size);
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

// Threads may still write into the slots for the old numbers: new tasks wait until they are
// through.
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
  // Pieces small enough that all threads work on the batch that is needed first, large enough to be
  // worth taking.
  const int64_t share = options_.batch_size / (4 * std::max(1, options_.workers));
  const int64_t piece =
      std::max<int64_t>(encoded_ ? 1 : 16, options_.workers > 1 ? share : options_.batch_size);
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
  Record record;
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    tasks_.wait(lock, [&] { return stopping_ || (!seeking_ && has_task()); });
    if (stopping_) return;
    const Task task = take_task();
    ++busy_;
    lock.unlock();
    std::exception_ptr error;
    try {
      fill(task, record);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    --busy_;
    Slot& slot = *task.slot;
    // The first of several errors in the order of the samples, not in that of the clock.
    if (error && (!slot.error || task.first < slot.error_at)) {
      slot.error = error;
      slot.error_at = task.first;
    }
    slot.missing -= task.last - task.first;
    if (slot.missing == 0 || busy_ == 0) done_.notify_all();
  }
}

Shape Loader::load(int64_t index, Record& record) const {
  try {
    source_->read(index, record.datum);
    decode(record, transform_.color());
    if (record.shape() == record_shape_) return sample_shape_;
    const Shape shape = transform_.output(record.shape());
    const bool alone = options_.batch_size == 1 && shape[0] == sample_shape_[0];
    if (alone || shape == sample_shape_) return shape;
    fail("its shape ", shape.brief(), " is not ", sample_shape_.brief(),
         ", that of record 0 (key \"", source_->key(0),
         "\"); the samples of a batch have one shape, and all samples one number of channels: give "
         "transform_param a crop_size, force_color or force_gray, convert the images with "
         "-resize_height and -resize_width, or set batch_size: 1");
  } catch (const Error& problem) {
    fail(source_->describe(index), ": ", problem.what());
  }
}

void Loader::fill(const Task& task, Record& record) const {
  Batch& batch = task.slot->batch;
  const int64_t sample = sample_shape_.count();
  for (int64_t i = task.first; i < task.last; ++i) {
    const int64_t turn =
        options_.skip + (task.number * options_.batch_size + i) * options_.ranks + options_.rank;
    const Place place = source_->place(turn);
    const Random epoch{options_.random.seed,
                       mix(options_.random.stream, static_cast<uint64_t>(place.epoch))};
    const int64_t index =
        options_.shuffle ? Permutation(source_->size(), epoch)(place.index) : place.index;
    const Shape shape = load(index, record);
    if (options_.batch_size == 1) {
      batch.shape = shape;
      batch.data.resize(shape.count());
    }
    // A stream of its own, so that crops do not depend on the draws of the order.
    const Random draws{epoch.seed, mix(epoch.stream, 1)};
    transform_.apply(record, draws.four(static_cast<uint64_t>(index)),
                     batch.data.data() + i * sample);
    batch.labels[i] = static_cast<float>(record.label);
    if (i + 1 == options_.batch_size) batch.epoch = place.epoch;
  }
}

}  // namespace crema
