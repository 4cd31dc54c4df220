// MemoryAccount: how much of a device's memory has been taken through one Context, and how much may
// be. Only what Crema allocates counts, not what the driver and its libraries need for themselves.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>

namespace crema {

class MemoryAccount {
 public:
  // `source` is who asked for it, in messages: "-gpu_memory 8GiB". Error when more is taken
  // already.
  void limit(size_t bytes, std::string source);
  bool limited() const { return limit_ > 0; }
  size_t limit() const { return limit_; }
  const std::string& source() const { return source_; }

  size_t taken() const { return taken_; }
  // What the limit leaves; the largest size_t without one.
  size_t left() const;
  // Error when the limit forbids it.
  void take(size_t bytes);
  void give_back(size_t bytes) { taken_ -= bytes; }

 private:
  size_t limit_ = 0;
  std::string source_;
  std::atomic<size_t> taken_ = 0;
};

// What a user allows, in bytes: a share of all (`total`), such as 0.8, or a size with a unit, such
// as 12GB or 8000MiB. Error for anything else.
size_t allowed_memory(const std::string& text, size_t total);

}  // namespace crema
