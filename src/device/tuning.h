// Tuning: which of several ways to compute the same thing is fastest on this GPU. Answers are kept
// in a file in the user's cache folder ($XDG_CACHE_HOME/crema, else ~/.cache/crema), one for each
// kind of card and version of cuDNN. Only files of a CUDA build include it.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <ios>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "device/device.h"

namespace crema {

class Buffer;
class Context;

class Tuning {
 public:
  Tuning();
  ~Tuning();
  Tuning(const Tuning&) = delete;
  Tuning& operator=(const Tuning&) = delete;

  // Reads the file. `card`: what the answers depend on besides the keys. An unreadable or damaged
  // file is as good as none.
  void open(const std::string& card);
  TuneMode mode = TuneMode::quick;
  // How many ways to try: 1, 6 or all that are known.
  int candidates() const;

  std::optional<std::string> find(const std::string& key);
  // Also appended to the file; when that cannot be written, this run goes on without. Returns what
  // another process has answered since the file was read, and then keeps that: runs that begin
  // together with an empty file compute the same bits.
  std::optional<std::string> remember(const std::string& key, const std::string& answer);

  // Memory to try things in, filled with small numbers; it stays until release(). Null where that
  // much is not free.
  void* scratch(Context& context, size_t bytes);
  void release();
  // Milliseconds that the work queued by `work` takes.
  double time(Context& context, const std::function<void()>& work);
  // Milliseconds that it takes within a CUDA graph, where launching costs little.
  double time_repeated(Context& context, const std::function<void()>& work);

 private:
  void read_on();

  std::string path_;
  std::streamoff read_ = 0;                                       // bytes of the file
  std::unordered_map<std::string, std::string> answers_, given_;  // given_: by find()
  std::unique_ptr<Buffer> scratch_;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

}  // namespace crema
