// Memory has a bound here, however much the machine would give: what a damaged file claims is no
// reason to take it. In a file of its own, so that the compiler does not pair one half of this with
// the standard library's other half.
#include <cstdlib>
#include <new>

constexpr size_t kLargestPiece = size_t{512} << 20;

void* operator new(size_t size) {
  void* const memory = size <= kLargestPiece ? std::malloc(size) : nullptr;
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
