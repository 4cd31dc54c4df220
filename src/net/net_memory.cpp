// A net's memory: how much it needs, and whether that is available before allocating any of it.
#include "base/error.h"
#include "device/memory_account.h"
#include "layers/layer_facts.h"
#include "net/graph/graph_builder.h"
#include "net/net.h"
#include "net/plan/arena.h"
#include "net/plan/plan.h"

namespace crema {

MemoryKinds Net::memory() {
  const Plan& plan = planned();
  MemoryKinds kinds = memory_of(plan);
  const auto elements = static_cast<size_t>(parameter_elements_);
  kinds.parameters = elements * size_of(options_.dtype);
  if (plan.options.backward) kinds.diffs = kinds.parameters;
  if (is_half(options_.precision)) kinds.halves = elements * 2;
  for (const auto& [node, source] : sources_of(graph_)) kinds.resident += source.resident_bytes();
  return kinds;
}

std::vector<LayerMemory> Net::memory_by_layer() {
  return crema::memory_by_layer(planned(), graph_);
}

MemoryPeak Net::memory_peak() { return crema::memory_peak(planned(), graph_); }

// Bytes that this net, and those it shares its arena with, have yet to allocate.
size_t Net::pending_bytes() {
  const MemoryKinds kinds = memory();
  size_t bytes = options_.arena->growth(plan_->arena_bytes) + plan_->persistent_bytes +
                 plan_->new_folded_bytes(weights_->folded);
  if (!parameter_data_)
    bytes += kinds.parameters * (1 + options_.histories) + kinds.halves + kinds.diffs;
  const Net* const owner = options_.share;
  if (owner && owner->plan_ && !owner->plan_->bound()) bytes += owner->plan_->persistent_bytes;
  return bytes;
}

bool Net::fits() { return pending_bytes() <= free_memory(context_); }

void Net::check_memory() {
  if (fits()) return;
  const size_t free = free_memory(context_), to_come = pending_bytes();
  MemoryKinds kinds = memory();
  kinds.history = kinds.parameters * options_.histories;
  const MemoryAccount& account = *context_.memory();
  const size_t needed = account.taken() + to_come, there = account.taken() + free;
  const size_t others = needed > kinds.total() ? needed - kinds.total() : 0;

  // Memory that depends on the batch may use whatever everything else leaves.
  const BatchSource source = batch_source(graph_);
  const size_t of_plan = options_.arena->growth(plan_->arena_bytes) + kinds.persistent;
  const size_t fixed = to_come - of_plan, room = free + options_.arena->held();
  const int64_t fits = fixed < room ? largest_batch(*plan_, source.size, room - fixed) : 0;

  const std::string type = source.node ? source.node->message.type() : "";
  const LayerFacts facts = facts_of(type);
  const bool by_field = facts.kind == LayerKind::source && type != "Input" &&
                        facts.content != SourceContent::generated;
  const char* const batch = by_field ? "batch_size " : "a batch of ";
  const std::string message = cat(
      batch, source.size, training() ? "" : " in phase TEST", " needs ", size_text(needed), ", ",
      account.limited() && there >= account.limit()
          ? cat(size_text(account.limit()), " are allowed (", account.source(), ")")
          : cat(size_text(there), " are available"),
      ": ", fits > 0 ? cat(batch, fits, " would fit") : "no batch is small enough", "; needed are ",
      describe(kinds), others > 0 ? cat(", other ", size_text(others)) : "");
  at_layer(source.node ? source.node->place : LayerPlace{name(), ""}, [&] { fail(message); });
}

}  // namespace crema
