#include "device/memory_account.h"

#include <gtest/gtest.h>

#include "device/memory.h"
#include "support.h"

namespace crema::tests {
namespace memory_account_test {

TEST(AllowedMemory, TakesAShareOrASizeWithAUnit) {
  EXPECT_EQ(allowed_memory("0.5", 1000), 500u);
  EXPECT_EQ(allowed_memory("1", 1000), 1000u);
  EXPECT_EQ(allowed_memory("12GB", 1), 12'000'000'000u);
  EXPECT_EQ(allowed_memory("8000MiB", 1), size_t{8000} << 20);
  EXPECT_EQ(allowed_memory("1.5 GiB", 1), size_t{3} << 29);
  EXPECT_EQ(allowed_memory("64KiB", 1), 65536u);
}

TEST(AllowedMemory, SaysWhatItExpects) {
  for (const char* text : {"", "0", "-1", "80%", "8", "12 giga", "GB", "1e30GB", "nan", "0.5 GiBs"})
    expect_part(error_of([&] { allowed_memory(text, 1000); }), "such as 8000MiB");
}

TEST(MemoryAccount, CountsBuffers) {
  Context context(Device::cpu);
  const std::shared_ptr<MemoryAccount> account = context.memory();
  EXPECT_EQ(account->taken(), 0u);
  {
    const Buffer a(context, 1000), b(context, 24), none(context, 0);
    EXPECT_EQ(account->taken(), 1024u);
  }
  EXPECT_EQ(account->taken(), 0u);
}

TEST(MemoryAccount, KeepsToItsLimit) {
  Context context(Device::cpu);
  const Buffer first(context, 1000);
  expect_part(error_of([&] { context.memory()->limit(1000, "-gpu_memory 1KB"); }),
              "-gpu_memory 1KB: 1000 bytes are taken already");
  context.memory()->limit(3000, "-gpu_memory 3KB");
  EXPECT_EQ(free_memory(context), 2000u);
  const std::string message = error_of([&] { const Buffer large(context, 2001); });
  expect_part(message, "2.0 KiB requested, but of the 2.9 KiB that are allowed (-gpu_memory 3KB)");
  EXPECT_EQ(context.memory()->taken(), 1000u);  // the refused one is not counted
  const Buffer fits(context, 2000);
  EXPECT_EQ(free_memory(context), 0u);
}

TEST(MemoryAccount, AFailedAllocationIsNotCounted) {
  Context context(Device::cpu);
  error_of([&] { const Buffer huge(context, size_t{1} << 60); });
  EXPECT_EQ(context.memory()->taken(), 0u);
}

TEST(MemoryAccount, OutlivesItsContext) {
  auto context = std::make_unique<Context>(Device::cpu);
  auto buffer = std::make_unique<Buffer>(*context, 100);
  context.reset();
  buffer.reset();
}

}  // namespace memory_account_test
}  // namespace crema::tests
