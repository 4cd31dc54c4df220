// Engine: the library that sums values over the ranks: NCCL (nccl_engine.h) or MPI (mpi_module.h).
// The calls are those of Communicator (device/communicator.h), which documents them.
#pragma once

#include <cstdint>
#include <string>

#include "device/communicator.h"

namespace crema {

constexpr int64_t bytes_of(Element element) {
  return element == Element::f64 ? 8 : element == Element::f32 ? 4 : 2;
}

class Engine {
 public:
  virtual ~Engine() = default;

  // Whether it makes a difference.
  virtual bool expose(Context&, void* /*memory*/, size_t /*bytes*/, size_t /*most*/) {
    return false;
  }
  virtual void sum(Context& context, void* values, int64_t count, Element element) = 0;
  virtual void begin_sum(Context& context, void* values, int64_t count, Element element) = 0;
  virtual void wait(Context& context) = 0;
  virtual void sum_part(Context& context, void* values, int64_t part, Element element) = 0;
  virtual void share_parts(Context& context, void* values, int64_t part, Element element) = 0;
  virtual bool recordable() const = 0;
  virtual std::string name() const = 0;

  // Throws a RankLost once the engine has lost the other ranks: if a CUDA graph sums, no call above
  // would report it.
  virtual void check() = 0;
  // Called from another thread when a rank is lost: waits for the other ranks, here or on the GPU,
  // end soon. Later calls return or throw immediately; the memory that they leave is undefined.
  virtual void abort() = 0;
};

}  // namespace crema
