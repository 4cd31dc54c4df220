#include "data/loader/loader.h"

#include <algorithm>
#include <bit>
#include <chrono>

#include "base/error.h"
#include "data/loader/permutation.h"
#include "device/host_limits.h"

namespace crema {

int64_t Dataset::shuffled(int64_t index, const Random& of_epoch) const {
  return Permutation(size(), of_epoch)(index);
}

int loader_workers(bool decodes, bool cpu_computes) {
  const int cores = usable_processors();
  const int maximum = cpu_computes ? std::max(1, cores / 2) : std::max(1, cores - 1);
  return std::min(maximum, decodes ? 16 : cores >= 8 ? 2 : 1);
}

int loader_reserve(bool decodes, bool cpu_computes) {
  const int cores = usable_processors();
  // With a GPU other ranks may need the cores, and copying is soon limited by memory.
  const int maximum = cpu_computes ? cores : std::min(cores, decodes ? 16 : 4);
  return std::max(0, maximum - loader_workers(decodes, cpu_computes));
}

namespace {

// No epoch has this number.
Random order_of_classes(const Random& random) {
  return {random.seed, mix(random.stream, ~uint64_t{0})};
}

}  // namespace

Shape Loader::of_batch(const Shape& of_sample, int64_t samples) const {
  std::vector<int64_t> dims = of_sample.dims();
  dims.insert(dims.begin(), samples);
  return Shape(dims);
}

// Mixed samples have soft labels.
Shape Loader::shape_of_labels(const Shape& of_sample, int64_t samples) const {
  return of_batch(options_.mixture.any() ? Shape{options_.mixture.classes()} : of_sample, samples);
}

int64_t Loader::samples(int64_t number) const {
  if (!options_.whole_epochs) return options_.batch_size;
  const int64_t in_epoch = number % batches_in_epoch(records(), options_.batch_size);
  return std::min(options_.batch_size, records() - in_epoch * options_.batch_size);
}

// Where this rank's part of the batch begins in the traversal.
int64_t Loader::first_position(int64_t number) const {
  if (!options_.whole_epochs)
    return options_.skip + number * options_.traversed() + options_.first_in_batch;
  const int64_t batches = batches_in_epoch(records(), options_.batch_size);
  return number / batches * records() + number % batches * options_.batch_size;
}

Shape Loader::label_shape() const {
  if (!samples_->labels_vary()) return shape_of_labels(label_shape_, options_.batch_size);
  std::vector<float> none;
  return samples_->joined_label_shape(none);
}

void Loader::set_label_shape(Batch& batch, const Shape& of_sample) const {
  batch.label_shape = shape_of_labels(of_sample, batch.samples);
  batch.labels.resize(batch.label_shape.count());
}

void Loader::set_samples(Slot& slot, int64_t samples) const {
  Batch& batch = slot.batch;
  if (batch.samples == samples) return;
  batch.samples = samples;
  batch.shape = sample_shape_;
  if (samples_->hands_over()) {
    batch.records.resize(static_cast<size_t>(samples));
  } else {
    batch.data.resize(samples * sample_shape_.count());
  }
  set_label_shape(batch, label_shape_);
  batch.sizes.resize(2 * samples);
  if (samples_->labels_vary()) slot.labels.resize(samples);
}

Loader::Loader(std::shared_ptr<const Dataset> samples, const LoaderOptions& options)
    : samples_(std::move(samples)),
      options_(options),
      balance_(options.balance ? Balance::of(*samples_, order_of_classes(options.random))
                               : nullptr) {
  require(options_.batch_size > 0, "a batch needs at least one sample");
  SampleIndex first;
  first.random = sample_index_at(0, 0).random;
  Sample sample;
  try {
    samples_->load(first, sample);
    options_.mixture.check(sample.shape, sample.label_shape);
  } catch (const Error& problem) {
    fail(samples_->describe(first), ": ", problem.what());
  }
  sample_shape_ = sample.shape;
  label_shape_ = sample.label_shape;
}

void Loader::skip(int64_t samples) {
  if (samples == skipped_) return;
  std::unique_lock<std::mutex> lock(mutex_);
  seeking_ = true;
  done_.wait(lock, [&] { return busy_ == 0; });
  options_.skip += samples - skipped_;
  skipped_ = samples;
  if (threads_.empty()) {
    seeking_ = false;
  } else {
    start_at(std::max<int64_t>(0, held_), lock);
  }
}

uint64_t Loader::hash_of_first() const {
  SampleIndex first;
  first.random = first.all_epochs = options_.random;
  Sample sample;
  samples_->load(first, sample);
  std::vector<float> data(samples_->hands_over() ? 0 : sample.shape.count());
  samples_->write(first, sample, samples_->hands_over() ? nullptr : data.data());
  uint64_t hash = 0;
  const auto add = [&](const std::vector<float>& values) {
    for (const float value : values) hash = mix(hash, std::bit_cast<uint32_t>(value));
  };
  add(data);
  add(sample.labels);
  return hash;
}

Loader::~Loader() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  tasks_.notify_all();
  help_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

const Batch& Loader::batch(int64_t number) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (threads_.empty()) {
    slots_.resize(static_cast<size_t>(std::max(1, options_.prefetch)) + 1);
    for (Slot& slot : slots_) set_samples(slot, options_.batch_size);
    start_at(number, lock);
    for (int i = 0; i < threads(); ++i)
      threads_.emplace_back(
          [this, is_reserve = i >= threads() - options_.reserve] { work(is_reserve); });
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
    waiting_ = true;
    help_.notify_all();
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
  const int64_t samples = this->samples(next_batch_);
  if (next_sample_ == 0) {
    set_samples(next, samples);
    next.batch.number = next_batch_;
    next.missing = samples;
    next.error = nullptr;
    if (options_.mixture.any()) next.made.assign(samples, 0);
  }
  // Tasks small enough that all threads work on the batch that is needed first, large enough to be
  // worth their overhead.
  constexpr int64_t kValues = 1 << 14;
  const int64_t share = samples / (4 * threads());
  const int64_t least =
      samples_->decodes() ? 1 : 1 + kValues / std::max<int64_t>(1, sample_shape_.count());
  const int64_t piece = threads() > 1 ? std::max(least, share) : samples;
  const Task task{&next, next_batch_, next_sample_, std::min(samples, next_sample_ + piece)};
  next_sample_ = task.last;
  if (next_sample_ == samples) {
    next_sample_ = 0;
    ++next_batch_;
  }
  return task;
}

void Loader::work(bool is_reserve) {
  Sample sample;
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    (is_reserve ? help_ : tasks_).wait(lock, [&] {
      return stopping_ || (!seeking_ && has_task() && (waiting_ || !is_reserve));
    });
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
    if (!error && options_.mixture.any()) {
      const std::vector<int64_t> pairs = take_complete_pairs(task);
      lock.unlock();
      for (const int64_t one : pairs) mix_with_partner(task, one);
      lock.lock();
    }
    --busy_;
    Slot& slot = *task.slot;
    // Keeps the error of the first sample, which need not be the first in time.
    if (error && (!slot.error || task.first < slot.error_at)) {
      slot.error = error;
      slot.error_at = task.first;
    }
    slot.missing -= task.last - task.first;
    if (slot.missing == 0 && !slot.labels.empty()) join_labels(slot);
    if (slot.missing == 0 && slot.batch.number == held_) waiting_ = false;
    if (slot.missing == 0 || busy_ == 0) done_.notify_all();
  }
}

// One sample of each pair that is complete with this task. Both are still unmixed, and the thread
// that makes the second one mixes them: all threads take part, and a batch is complete when all its
// tasks are.
std::vector<int64_t> Loader::take_complete_pairs(const Task& task) const {
  Slot& slot = *task.slot;
  std::vector<int64_t> complete;
  for (int64_t i = task.first; i < task.last; ++i) {
    const int64_t partner = options_.mixture.partner(task.number, i, slot.batch.samples);
    slot.made[i] = 1;
    if (partner != i && slot.made[partner]) complete.push_back(i);
  }
  return complete;
}

MixedSample Loader::mixed_sample(const Task& task, int64_t in_batch) const {
  Batch& batch = task.slot->batch;
  return {first_position(task.number) + in_batch,
          batch.data.data() + in_batch * sample_shape_.count(),
          batch.labels.data() + in_batch * options_.mixture.classes()};
}

void Loader::mix_with_partner(const Task& task, int64_t in_batch) const {
  const int64_t partner = options_.mixture.partner(task.number, in_batch, task.slot->batch.samples);
  options_.mixture.mix_pair(mixed_sample(task, std::min(in_batch, partner)),
                            mixed_sample(task, std::max(in_batch, partner)), sample_shape_);
}

SampleIndex Loader::sample_index_at(int64_t number, int64_t in_batch) const {
  SampleIndex sample_index;
  sample_index.in_batch = in_batch;
  sample_index.position = first_position(number) + in_batch;
  sample_index.record_index = samples_->record_index(sample_index.position);
  const Random epoch{
      options_.random.seed,
      mix(options_.random.stream, static_cast<uint64_t>(sample_index.record_index.epoch))};
  sample_index.turn = sample_index.record_index.epoch;
  if (balance_) {
    const Balance::Place place = balance_->at(sample_index.position);
    sample_index.record_index.index = place.record;
    sample_index.turn = place.turn;
  } else if (options_.shuffle) {
    sample_index.record_index.index = samples_->shuffled(sample_index.record_index.index, epoch);
  }
  // A separate stream, so that crops do not depend on the random numbers of the order.
  sample_index.random = {
      options_.random.seed,
      mix(mix(options_.random.stream, static_cast<uint64_t>(sample_index.turn)), 1)};
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
    if (batch.records.empty()) batch.data.resize(sample.shape.count());
    set_label_shape(batch, sample.label_shape);
  }
  batch.sizes[2 * sample_index.in_batch] = static_cast<float>(sample.stored_height);
  batch.sizes[2 * sample_index.in_batch + 1] = static_cast<float>(sample.stored_width);
  if (batch.records.empty()) {
    samples_->write(sample_index, sample,
                    batch.data.data() + sample_index.in_batch * sample_shape_.count());
  } else {
    samples_->write(sample_index, sample, nullptr);
    HandedOver& to = batch.records[static_cast<size_t>(sample_index.in_batch)];
    to.sample_index = sample_index;
    std::swap(to.record, sample.record);
  }
  if (samples_->labels_vary()) {
    slot.labels[sample_index.in_batch] = sample.labels;
  } else if (options_.mixture.any()) {
    options_.mixture.write_shares(
        sample.labels.at(0),
        batch.labels.data() + sample_index.in_batch * options_.mixture.classes());
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
    if (i + 1 == task.slot->batch.samples) task.slot->batch.epoch = sample_index.record_index.epoch;
  }
}

}  // namespace crema
