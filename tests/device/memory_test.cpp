#include "device/memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "support.h"

namespace crema::tests {
namespace memory_test {

std::vector<Device> devices() {
  return gpu_count() > 0 ? std::vector<Device>{Device::cpu, Device::gpu}
                         : std::vector<Device>{Device::cpu};
}

TEST(BufferTest, IsZeroAndAligned) {
  for (Device device : devices()) {
    Context context(device);
    for (size_t bytes : {1, 63, 64, 1000}) {
      const Buffer buffer(context, bytes);
      EXPECT_EQ(buffer.bytes(), bytes);
      EXPECT_EQ(buffer.device(), device);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 64, 0u);
      std::vector<char> content(bytes, 'x');
      copy_bytes(context, content.data(), Device::cpu, buffer.data(), device, bytes);
      EXPECT_EQ(content, std::vector<char>(bytes, 0));
    }
  }
}

TEST(BufferTest, MayBeEmpty) {
  for (Device device : devices()) {
    Context context(device);
    const Buffer buffer(context, 0);
    EXPECT_EQ(buffer.bytes(), 0u);
  }
}

TEST(BufferTest, TooMuchIsAnError) {
  Context context(Device::cpu);
  expect_part(error_of([&] { const Buffer buffer(context, size_t{1} << 60); }), "out of memory");
}

TEST(CopyTest, GoesThereAndBack) {
  for (Device device : devices()) {
    Context context(device);
    const Buffer a(context, 300), b(context, 300);
    std::vector<char> sent(300), received(300);
    for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<char>(i);
    copy_bytes(context, a.data(), device, sent.data(), Device::cpu, 300);
    copy_bytes(context, b.data(), device, a.data(), device, 300);
    copy_bytes(context, received.data(), Device::cpu, b.data(), device, 300);
    EXPECT_EQ(received, sent);
    zero_bytes(context, static_cast<char*>(b.data()) + 100, device, 100);
    copy_bytes(context, received.data(), Device::cpu, b.data(), device, 300);
    std::memset(sent.data() + 100, 0, 100);
    EXPECT_EQ(received, sent);
    copy_bytes(context, nullptr, device, nullptr, device, 0);
  }
}

TEST(CopyTest, OverlappingPartsOnTheCpu) {
  Context context(Device::cpu);
  char text[] = "abcdef";
  copy_bytes(context, text + 1, Device::cpu, text, Device::cpu, 5);
  EXPECT_STREQ(text, "aabcde");
}

}  // namespace memory_test
}  // namespace crema::tests
