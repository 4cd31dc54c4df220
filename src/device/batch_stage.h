// BatchStage: GPU memory into which batches are brought while the net computes. It has a stream of its
// own, of low priority, and kSlots places: one thread fills them, another lets the net read them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace crema {

class Context;

class BatchStage {
 public:
  static constexpr int kSlots = 2;
  virtual ~BatchStage() = default;

  // --- the thread that fills; it has made the GPU its current one ---
  // At least so many bytes of GPU memory, in which nothing is kept: what follows is queued behind
  // what the net still reads there.
  virtual uint8_t* room(int slot, size_t bytes) = 0;
  // From CPU memory, which must stay until finish().
  virtual void copy(void* to, const void* from, size_t bytes) = 0;
  // Waits until all of it is done.
  virtual void finish() = 0;
  // The cudaStream_t, for who else fills.
  virtual void* stream() const = 0;

  // --- the thread that runs the net ---
  // What is queued on the context until now is all that reads the slot's content.
  virtual void release(Context& context, int slot) = 0;
  // Whether all that is queued on the context is done.
  virtual bool is_idle(Context& context) const = 0;
  // Bytes of GPU memory in the slots.
  virtual size_t bytes() const = 0;
};

// Of a context on a GPU.
std::unique_ptr<BatchStage> open_batch_stage(Context& context);

}  // namespace crema
