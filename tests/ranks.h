// Ranks for tests, in one process.
#pragma once

#include <condition_variable>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "device/communicator.h"

namespace crema {

// One rank of several that do not exist: for code that needs no communication.
class OnlyRank : public Communicator {
 public:
  OnlyRank(int rank, int ranks) : Communicator(rank, ranks) {}
  std::vector<std::string> gather(std::string_view) override { missing(); }
  void at_iteration(int64_t) override {}
  void begin_pause() override {}
  void end_pause() override {}
  void sum(Context&, void*, int64_t, Element) override { missing(); }
  void begin_sum(Context&, void*, int64_t, Element) override { missing(); }
  void wait(Context&) override {}
  void sum_part(Context&, void*, int64_t, Element) override { missing(); }
  void share_parts(Context&, void*, int64_t, Element) override { missing(); }
  bool recordable() const override { return false; }
  std::string engine() const override { return "none"; }

 private:
  [[noreturn]] static void missing() { fail("the other ranks do not exist"); }
};

// Ranks that are threads: each calls the same work with its own communicator, on CPUs. An exception
// in one of them ends all, and run() rethrows it.
class ThreadRanks {
 public:
  explicit ThreadRanks(int ranks, bool divides_batches = true) : texts_(ranks) {
    for (int rank = 0; rank < ranks; ++rank) {
      all_.push_back(std::make_unique<Rank>(*this, rank, ranks));
      all_.back()->divides_batches = divides_batches;
    }
  }

  void run(const std::function<void(Communicator&)>& work) {
    std::vector<std::thread> threads;
    for (const auto& rank : all_) {
      threads.emplace_back([&] {
        try {
          work(*rank);
        } catch (...) {
          const std::lock_guard<std::mutex> lock(mutex_);
          if (!error_) error_ = std::current_exception();
          changed_.notify_all();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    if (error_) std::rethrow_exception(error_);
  }

 private:
  class Rank : public Communicator {
   public:
    Rank(ThreadRanks& world, int rank, int ranks) : Communicator(rank, ranks), world_(world) {}
    std::vector<std::string> gather(std::string_view text) override {
      return world_.gather(rank, text);
    }
    void at_iteration(int64_t) override {}
    void begin_pause() override {}
    void end_pause() override {}
    void sum(Context&, void* values, int64_t count, Element element) override {
      element == Element::f64 ? add_all(static_cast<double*>(values), count)
                              : add_all(static_cast<float*>(values), count);
    }
    void begin_sum(Context& context, void* values, int64_t count, Element element) override {
      sum(context, values, count, element);
    }
    void wait(Context&) override {}
    void sum_part(Context& context, void* values, int64_t part, Element element) override {
      sum(context, values, part * ranks, element);
    }
    void share_parts(Context&, void* values, int64_t part, Element element) override {
      const size_t bytes = static_cast<size_t>(part) * (element == Element::f64 ? 8 : 4);
      const std::vector<char*> all = pointers(static_cast<char*>(values));
      for (int other = 0; other < ranks; ++other) {
        if (other != rank)
          std::memcpy(all[rank] + other * bytes, all[other] + other * bytes, bytes);
      }
      gather("");
    }
    bool recordable() const override { return false; }
    std::string engine() const override { return "threads"; }

   private:
    template <typename T>
    std::vector<T*> pointers(T* mine) {
      std::vector<T*> all;
      for (const std::string& text : gather({reinterpret_cast<const char*>(&mine), sizeof mine})) {
        all.emplace_back();
        std::memcpy(&all.back(), text.data(), sizeof mine);
      }
      return all;
    }
    template <typename T>
    void add_all(T* values, int64_t count) {
      const std::vector<T*> all = pointers(values);
      std::vector<T> sums(all[0], all[0] + count);
      for (int other = 1; other < ranks; ++other) {
        for (int64_t i = 0; i < count; ++i) sums[i] += all[other][i];
      }
      gather("");  // all have read
      std::copy(sums.begin(), sums.end(), values);
    }
    ThreadRanks& world_;
  };

  std::vector<std::string> gather(int rank, std::string_view text) {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto wait = [&](const auto& condition) {
      changed_.wait(lock, [&] { return error_ || condition(); });
      if (error_) throw RankLost("another rank has failed", true);
    };
    wait([&] { return !leaving_; });
    texts_[rank] = text;
    const size_t round = round_;
    if (++there_ == texts_.size()) {
      leaving_ = true;
      ++round_;
      changed_.notify_all();
    } else {
      wait([&] { return round_ != round; });
    }
    std::vector<std::string> all = texts_;
    if (--there_ == 0) {
      leaving_ = false;
      changed_.notify_all();
    }
    return all;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> texts_;
  size_t there_ = 0, round_ = 0;
  bool leaving_ = false;
  std::exception_ptr error_;
  std::vector<std::unique_ptr<Rank>> all_;
};

}  // namespace crema
