// Programs that may not generate code, as under systemd's MemoryDenyWriteExecute, or have no memory for
// it: oneDNN cannot work.
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>

#include "base/system.h"
#include "tools/program.h"

namespace crema::tests {
namespace system_test {

// From now on this process and its children cannot make written memory executable.
bool deny_generated_code() {
  constexpr auto kArgument = offsetof(seccomp_data, args) + 2 * sizeof(uint64_t);
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kArgument),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {sizeof rules / sizeof *rules, rules};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(ExecutableMemory, IsNotNeeded) {
  const Folder folder;
  folder.write("net.prototxt", R"(
    layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 4 dim: 3 dim: 20 dim: 20 } } }
    layer { name: "c" type: "Convolution" bottom: "x" top: "c"
            convolution_param { num_output: 32 kernel_size: 3 weight_filler { type: "xavier" } } }
    layer { name: "ip" type: "InnerProduct" bottom: "c" top: "ip"
            inner_product_param { num_output: 40 weight_filler { type: "xavier" } } })");
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (!deny_generated_code()) _exit(77);
    const Outcome outcome =
        run_shell(folder, "\"$TOOLS/crema\" time -model net.prototxt -iterations 1");
    folder.write("err", outcome.err);
    _exit(outcome.code);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status)) << folder.read("err");
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "this system has no seccomp filters";
  EXPECT_EQ(WEXITSTATUS(status), 0) << folder.read("err");
#ifdef CREMA_ONEDNN
  expect_part(folder.read("err"), "This process may not generate code");
#endif
}

// A limit of the address space leaves 3 MiB.
TEST(ExecutableMemory, IsMeasuredBeforeItIsUsed) {
  EXPECT_TRUE(has_room_for_code(kCodeOfProducts));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t room = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (3u << 20);
    const rlimit limit{room, room};
    setrlimit(RLIMIT_AS, &limit);
    _exit(has_room_for_code(1u << 20) && !has_room_for_code(kCodeOfConvolution) ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace system_test
}  // namespace crema::tests
