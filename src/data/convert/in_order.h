// InOrder: makes numbered items on threads, and hands them out in the order of their numbers.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace crema {

// Item has a member `bytes`, which make() sets: its memory. Items are reused, to reuse their
// memory.
template <typename Item>
class InOrder {
 public:
  using Make = std::function<void(int64_t number, Item& item)>;

  // The most items made ahead: enough to continue while many are written together.
  static constexpr size_t kAhead = 256;

  // Items 0 .. count-1. make() is called on `threads` threads at a time. No item is begun while the
  // waiting ones use more than `most_bytes`.
  InOrder(int64_t count, int threads, size_t most_bytes, Make make)
      : count_(count), most_bytes_(most_bytes), make_(std::move(make)) {
    slots_.resize(std::max(kAhead, static_cast<size_t>(std::max(1, threads)) * 4));
    try {
      for (int i = 0; i < std::max(1, threads); ++i) threads_.emplace_back([this] { work(); });
    } catch (...) {
      stop();
      throw;
    }
  }
  ~InOrder() { stop(); }
  InOrder(const InOrder&) = delete;
  InOrder& operator=(const InOrder&) = delete;

  // The next item, for at most `count` calls: valid until the next call. Rethrows what make() threw
  // for it.
  Item& next() {
    std::unique_lock<std::mutex> lock(mutex_);
    if (taken_ > 0) give_back(slot(taken_ - 1));
    Slot& wanted = slot(taken_++);
    free_.notify_all();
    done_.wait(lock, [&] { return wanted.made; });
    if (wanted.error) std::rethrow_exception(wanted.error);
    return wanted.item;
  }

 private:
  struct Slot {
    Item item;
    bool made = false;
    std::exception_ptr error;
  };

  Slot& slot(int64_t number) { return slots_[static_cast<size_t>(number) % slots_.size()]; }

  void give_back(Slot& used) {
    held_ -= used.item.bytes;
    // Memory that is kept for later items is bounded, too.
    if (used.item.bytes > most_bytes_ / slots_.size()) used.item = Item();
    used.item.bytes = 0;
    used.made = false;
  }

  // Numbers are begun in order, so while items wait, the next one is made or being made: no thread
  // waits for ever.
  bool may_begin() const {
    return begun_ < count_ && held_ <= most_bytes_ &&
           begun_ - std::max<int64_t>(0, taken_ - 1) < static_cast<int64_t>(slots_.size());
  }

  void work() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      free_.wait(lock, [&] { return stopping_ || begun_ == count_ || may_begin(); });
      if (stopping_ || begun_ == count_) return;
      const int64_t number = begun_++;
      Slot& mine = slot(number);
      lock.unlock();
      std::exception_ptr error;
      try {
        make_(number, mine.item);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      mine.error = error;
      mine.made = true;
      held_ += mine.item.bytes;
      done_.notify_all();
      free_.notify_all();
    }
  }

  void stop() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    free_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  const int64_t count_;
  const size_t most_bytes_;
  const Make make_;
  std::mutex mutex_;
  std::condition_variable free_, done_;
  std::vector<Slot> slots_;        // item n is in slot n % size
  int64_t begun_ = 0, taken_ = 0;  // how many
  size_t held_ = 0;                // of items that are made and not given back
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace crema
