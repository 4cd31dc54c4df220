#include "device/host_limits.h"

#include <gtest/gtest.h>
#include <sched.h>

#include "support.h"

namespace crema::tests {
namespace host_limits_test {

// The kernel's files, and the number of this machine's many processors that remain.
struct Groups {
  const char* name;
  std::vector<std::pair<const char*, const char*>> files;
  int processors;
};

class ProcessorsTest : public testing::TestWithParam<Groups> {};

TEST_P(ProcessorsTest, OfControlGroups) {
  const Folder root;
  for (const auto& [path, text] : GetParam().files) root.write(path, text);
  const int all = usable_processors("/nowhere");
  EXPECT_EQ(usable_processors(root.path()), std::min(all, GetParam().processors));
}

constexpr int kAll = 1 << 20;

INSTANTIATE_TEST_SUITE_P(
    Processors, ProcessorsTest,
    testing::Values(
        Groups{"NoGroups", {}, kAll},
        Groups{"OneOfVersion2",
               {{"proc/self/cgroup", "0::/\n"}, {"sys/fs/cgroup/cpu.max", "100000 100000\n"}},
               1},
        Groups{"Unlimited",
               {{"proc/self/cgroup", "0::/\n"}, {"sys/fs/cgroup/cpu.max", "max 100000\n"}},
               kAll},
        Groups{"PartsAreRoundedUp",
               {{"proc/self/cgroup", "0::/\n"}, {"sys/fs/cgroup/cpu.max", "5000 100000\n"}},
               1},
        Groups{"AJobInsideOfALimitedOne",
               {{"proc/self/cgroup", "0::/slurm/job_7/step_0\n"},
                {"sys/fs/cgroup/slurm/job_7/step_0/cpu.max", "max 100000\n"},
                {"sys/fs/cgroup/slurm/job_7/cpu.max", "80000 100000\n"}},
               1},
        // The host's path, which does not exist inside of a container.
        Groups{"AContainersOwn",
               {{"proc/self/cgroup", "0::/docker/abc\n"},
                {"sys/fs/cgroup/cpu.max", "100000 100000\n"}},
               1},
        Groups{"Version1",
               {{"proc/self/cgroup", "12:cpuset:/\n4:cpu,cpuacct:/job\n1:name=systemd:/\n"},
                {"sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "100000\n"},
                {"sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n"}},
               1},
        Groups{"Version1Unlimited",
               {{"proc/self/cgroup", "4:cpu:/\n"},
                {"sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"},
                {"sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"}},
               kAll},
        Groups{"NoNumbers",
               {{"proc/self/cgroup", "0::/\nnonsense\n"}, {"sys/fs/cgroup/cpu.max", "\n"}},
               kAll}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Processors, OfTheAffinityMask) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(usable_processors(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

}  // namespace host_limits_test
}  // namespace crema::tests
