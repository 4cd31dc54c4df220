// Upload: copies values from CPU memory to a GPU without waiting for the copy. The values pass
// through pinned memory, which is kept for the next copy.
#pragma once

#include <cstddef>
#include <memory>

#include "device/context.h"

namespace crema {

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

}  // namespace crema
