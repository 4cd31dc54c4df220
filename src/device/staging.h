// Copies from CPU memory to a GPU that the net does not wait for: Upload, for values that a program
// sets, and BatchStage, for batches of data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace crema {

class Context;

// Copies values through pinned memory, which is kept for the next copy.
class Upload {
 public:
  // For a context on a GPU.
  explicit Upload(Context& context);
  ~Upload();
  Upload(Upload&&) noexcept;
  Upload& operator=(Upload&&) noexcept;

  // Queues the copy on the context's stream. `from` may be changed when this returns; it only waits
  // for the previous copy.
  void copy(void* to, const void* from, size_t bytes);

 private:
  struct Pinned;
  std::unique_ptr<Pinned> pinned_;
};

// GPU memory for batches that are copied while the net computes. It has its own stream, of low
// priority, and kSlots slots: one thread fills them, another lets the net read them.
class BatchStage {
 public:
  static constexpr int kSlots = 2;
  virtual ~BatchStage() = default;

  // --- the thread that fills; it has made the GPU its current one ---
  // At least this many bytes of GPU memory, with undefined content: later work is queued behind the
  // net's reads there.
  virtual uint8_t* room(int slot, size_t bytes) = 0;
  // From CPU memory, which must stay valid until finish().
  virtual void copy(void* to, const void* from, size_t bytes) = 0;
  // Waits until all of it is done.
  virtual void finish() = 0;
  // The cudaStream_t, for other code that fills slots.
  virtual void* stream() const = 0;

  // --- the thread that runs the net ---
  // All reads of the slot's content are queued on the context by now.
  virtual void release(Context& context, int slot) = 0;
  // Whether all work queued on the context is done.
  virtual bool is_idle(Context& context) const = 0;
  // Bytes of GPU memory in the slots.
  virtual size_t bytes() const = 0;
};

// For a context on a GPU.
std::unique_ptr<BatchStage> open_batch_stage(Context& context);

}  // namespace crema
