// Memory is limited here, however much the machine has: a damaged file must not make a reader
// allocate it. In a separate file, so that the compiler does not pair one half of this with the
// standard library's other half. All forms, because AddressSanitizer has its own of each.
#include <cstdlib>
#include <new>

constexpr size_t kLargestPiece = size_t{1} << 30;

void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return size <= kLargestPiece ? std::malloc(size) : nullptr;
}
void* operator new(size_t size) {
  void* const memory = operator new(size, std::nothrow);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new[](size_t size) { return operator new(size); }
void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  return operator new(size, std::nothrow);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
