// MemoryAccount: how much of a device's memory one Context has allocated, and its limit. Only
// Crema's own allocations count, not those of the driver and its libraries.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>

namespace crema {

class MemoryAccount {
 public:
  // `source` names the origin of the limit in messages: "-gpu_memory 8GiB". Error when more is
  // already allocated.
  void limit(size_t bytes, std::string source);
  bool limited() const { return limit_ > 0; }
  size_t limit() const { return limit_; }
  const std::string& source() const { return source_; }

  size_t taken() const { return taken_; }
  // Bytes left under the limit; without a limit, the largest size_t.
  size_t left() const;
  // Error when the limit would be exceeded.
  void take(size_t bytes);
  void give_back(size_t bytes) { taken_ -= bytes; }

 private:
  size_t limit_ = 0;
  std::string source_;
  std::atomic<size_t> taken_ = 0;
};

// Parses a user's limit into bytes: a fraction of `total` such as 0.8, or a size with a unit such
// as 12GB or 8000MiB. Error for anything else.
size_t allowed_memory(const std::string& text, size_t total);

}  // namespace crema
