// Ranks for tests with values on a GPU, which they may share: a rank of another communicator, such
// as ThreadRanks, to which it passes them through the host.
#pragma once

#include <functional>
#include <vector>

#include "device/communicator.h"
#include "device/memory.h"

namespace crema {

class StagedRank : public Communicator {
 public:
  explicit StagedRank(Communicator& host) : Communicator(host.rank, host.ranks), host_(host) {
    divides_batches = host.divides_batches;
  }
  std::vector<std::string> gather(std::string_view text) override { return host_.gather(text); }
  void at_iteration(int64_t iteration) override { host_.at_iteration(iteration); }
  void begin_pause() override { host_.begin_pause(); }
  void end_pause() override { host_.end_pause(); }
  void sum(Context& context, void* values, int64_t count, Element element) override {
    staged(context, values, count, element,
           [&](void* staged) { host_.sum(context, staged, count, element); });
  }
  void begin_sum(Context& context, void* values, int64_t count, Element element) override {
    sum(context, values, count, element);
  }
  void wait(Context&) override {}
  void sum_part(Context& context, void* values, int64_t part, Element element) override {
    staged(context, values, part * ranks, element,
           [&](void* staged) { host_.sum_part(context, staged, part, element); });
  }
  void share_parts(Context& context, void* values, int64_t part, Element element) override {
    staged(context, values, part * ranks, element,
           [&](void* staged) { host_.share_parts(context, staged, part, element); });
  }
  bool recordable() const override { return false; }
  std::string engine() const override { return host_.engine(); }

 private:
  static void staged(Context& context, void* values, int64_t count, Element element,
                     const std::function<void(void*)>& work) {
    std::vector<double> memory(static_cast<size_t>(count));
    const size_t bytes = static_cast<size_t>(count) * (element == Element::f64 ? 8 : 4);
    copy_bytes(context, memory.data(), Device::cpu, values, context.device(), bytes);
    work(memory.data());
    copy_bytes(context, values, context.device(), memory.data(), Device::cpu, bytes);
  }
  Communicator& host_;
};

}  // namespace crema
