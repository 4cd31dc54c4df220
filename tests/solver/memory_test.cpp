// The memory of a run: its nets and its optimizer together, and a limit on it.
#include <gtest/gtest.h>

#include <algorithm>

#include "device/memory_account.h"
#include "fixtures.h"

namespace crema::tests {
namespace memory_test {

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

TEST(SolverMemory, RecordsInAGpusMemoryGiveWayToTheNet) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  const Folder folder;
  // Far larger than the batches that a run without resident records keeps on the GPU.
  const int64_t records = 400;
  const std::string data = image_database(folder, records, {3, 32, 32},
                                          [](int64_t i) { return static_cast<int>(i % 4); });
  const auto file = [&] {
    return solver_file("display: 1 random_seed: 1 snapshot_after_train: false ", cat(R"(
      layer { name: "data" type: "Data" top: "x" top: "label" data_param { batch_size: 16 backend: LMDB source: ")",
                                                                                     data, R"(" } }
      layer { name: "c" type: "Convolution" bottom: "x" top: "c" convolution_param { num_output: 16 kernel_size: 3 weight_filler { type: "xavier" } } }
      layer { name: "ip" type: "InnerProduct" bottom: "c" top: "z" inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
      layer { name: "loss" type: "SoftmaxWithLoss" bottom: "z" bottom: "label" top: "loss" })"));
  };
  const auto run = [&](Context& context, size_t* resident) {
    Losses losses;
    SolverOptions options;
    options.readers = {&losses};
    options.net.overlap = false;
    Solver solver(context, file(), options);
    solver.step(5);
    *resident = solver.memory().resident;
    return losses.values;
  };
  Context roomy(Device::gpu), scarce(Device::gpu);
  size_t resident = 0;
  const std::vector<double> losses = run(roomy, &resident);
  EXPECT_GE(resident, records * 3u * 32 * 32);
  size_t needs = 0;
  {
    Context context(Device::gpu);
    context.resident = false;
    SolverOptions options;
    options.net.overlap = false;
    Solver solver(context, file(), options);
    solver.step(1);
    needs = context.memory()->taken();
  }
  scarce.memory()->limit(needs + resident / 2, "-gpu_memory 1GB");
  size_t left = 1;
  EXPECT_EQ(run(scarce, &left), losses);
  // The raw records of two batches at a time, instead of all.
  EXPECT_LT(left, resident / 2);
}

}  // namespace memory_test
}  // namespace crema::tests
