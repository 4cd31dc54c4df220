// What a solver's nets and its history take.
#include "base/strings.h"
#include "device/memory.h"
#include "device/memory_account.h"
#include "solver/iteration/optimizer.h"
#include "solver/solver.h"

namespace crema {

MemoryKinds Solver::memory() {
  MemoryKinds all = net_->memory();
  all.history = optimizer_->kept_bytes();
  for (const auto& net : test_nets_) {
    const MemoryKinds of_test = net->memory();
    if (of_test.arena() > all.arena()) {
      all.blobs = of_test.blobs;
      all.workspace = of_test.workspace;
    }
    all.persistent += of_test.persistent;
    all.parameters += of_test.parameters;
    all.halves += of_test.halves;
    all.resident += of_test.resident;
  }
  return all;
}

void Solver::log_memory() {
  const MemoryKinds all = memory();
  const MemoryAccount& account = *context_.memory();
  const size_t maximum = account.limited() ? account.limit() : total_memory(context_);
  const bool gpu = context_.device() == Device::gpu;
  context_.log().info(cat("Memory: ", size_text(all.total()),
                          gpu ? " of " + size_text(maximum) : "", " on the ",
                          name_of(context_.device()), ": ", describe(all)));
  if (!optimizer_->sharded()) return;
  const size_t whole = optimizer_->whole_bytes(), kept = optimizer_->kept_bytes();
  context_.log().info(cat("-shard: of ", size_text(whole), " of the optimizer's state each rank ",
                          "keeps a part; this saves ", size_text(whole - kept), " here"));
}

}  // namespace crema
