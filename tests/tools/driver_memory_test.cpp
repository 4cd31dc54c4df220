// The memory of a process as the driver counts it, with a library that stands in for the driver's.
#include <gtest/gtest.h>

// A part of the program, not of the library.
#include "tools/measure/driver_memory.h"

namespace crema::tests {
namespace driver_memory_test {

struct Row {
  const char* bus;
  size_t bytes;
  bool exact;
};

class DriverMemoryTest : public testing::TestWithParam<Row> {};

TEST_P(DriverMemoryTest, IsThatOfTheProcessOrOfAll) {
  const DriverMemory memory = driver_memory(GetParam().bus, CREMA_FAKE_NVML);
  EXPECT_EQ(memory.bytes, GetParam().bytes);
  EXPECT_EQ(memory.exact, GetParam().exact);
}

INSTANTIATE_TEST_SUITE_P(DriverMemory, DriverMemoryTest,
                         testing::Values(Row{"two", 200, true},
                                         Row{"forty", 4000, true},  // more than expected at first
                                         // As in a container: this process is not listed.
                                         Row{"alone", 555, false}, Row{"none", 555, false},
                                         Row{"others", 0, false}, Row{"forbidden", 555, false},
                                         Row{"absent", 0, false}),
                         [](const auto& info) { return std::string(info.param.bus); });

TEST(DriverMemory, IsUnknownWithoutADriver) {
  EXPECT_EQ(driver_memory("two", "libcrema_absent.so.1").bytes, 0u);
}

}  // namespace driver_memory_test
}  // namespace crema::tests
