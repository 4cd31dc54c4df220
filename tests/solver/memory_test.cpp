// The memory of a training: what its nets and its optimizer take together, and a limit on it.
#include <gtest/gtest.h>

#include <algorithm>

#include "device/memory_account.h"
#include "fixtures.h"

namespace crema::tests {
namespace {

TEST(SolverMemory, CountsAllNetsAndTheHistory) {
  Context context(Device::cpu);
  Lines lines;
  context.set_log(lines);
  const std::string text = "type: \"Adam\" momentum: 0.9 test_iter: 1 test_interval: 100 ";
  Solver solver(context, solver_file(text + "max_iter: 1 random_seed: 1 "));
  const MemoryKinds memory = solver.memory();
  EXPECT_EQ(memory.history, 2 * memory.parameters);
  EXPECT_EQ(memory.diffs, memory.parameters);
  EXPECT_GE(memory.arena(), solver.test_nets()[0]->memory().arena());
  const auto line = std::find_if(lines.infos.begin(), lines.infos.end(),
                                 [](const auto& info) { return starts_with(info, "Memory: "); });
  ASSERT_NE(line, lines.infos.end());
  expect_part(*line, cat("Memory: ", size_text(memory.total()), " on the CPU: activations"));
  EXPECT_EQ(*(line + 1), "Solver scaffolding done.");
}

TEST(SolverMemory, ALimitIsHeldAgainstNetAndHistory) {
  const std::string text = "max_iter: 1 random_seed: 1 snapshot_after_train: false ";
  size_t needs = 0;
  {
    Context context(Device::cpu);
    Solver solver(context, solver_file(text));
    needs = solver.memory().total();
  }
  Context enough(Device::cpu);
  enough.memory()->limit(needs + 4096, "-gpu_memory 1MB");  // some numbers of the update rule
  Solver(enough, solver_file(text)).solve();
  Context scarce(Device::cpu);
  scarce.memory()->limit(needs - 256, "-gpu_memory 1KB");
  expect_part(error_of([&] { Solver(scarce, solver_file(text)); }), "(-gpu_memory 1KB)");
}

}  // namespace
}  // namespace crema::tests
