#include "fuzz/random_nets/comparisons.h"

#include "base/error.h"
#include "device/communicator.h"
#include "fuzz/dice.h"
#include "ranks.h"
#include "staged_ranks.h"
#include "support.h"

namespace crema::tests {
namespace {

// Whether the values of this net grow out of float32's range.
bool diverges(const RandomNet& net) {
  Way way = plain_way(DType::f32);
  way.iterations = 4;
  try {
    run_trial(net, way);
  } catch (const Diverged&) {
    return true;
  }
  return false;
}

Judgement near(const RandomNet& net, Rounding& rounding, const Way& way, double unit) {
  const Outcome seen = run_trial(net, way);
  const std::optional<Mismatch> mismatch = rounding.too_far(seen, unit);
  if (!mismatch) return {};
  if (rounding.explained_by_jumps(seen, unit)) return {Verdict::undecided, mismatch->str()};
  return {Verdict::different, mismatch->str()};
}

Judgement same_bits(const Outcome& seen, const Outcome& expected) {
  const std::optional<Mismatch> mismatch = different_bits(seen, expected);
  if (!mismatch) return {};
  return {Verdict::different, mismatch->str()};
}

Judgement planned(const RandomNet& net, Rounding& rounding) {
  Way way;
  way.test = true;
  way.planned = &rounding.planned;
  return near(net, rounding, way, Rounding::kFloat32);
}

Judgement fast_kernels(const RandomNet& net, Rounding& rounding) {
  Way way = plain_way(DType::f32);
  way.implementation = "";
  return near(net, rounding, way, Rounding::kFloat32);
}

Judgement two_threads(const RandomNet& net, Rounding& rounding) {
  Way way;
  way.threads = 2;
  return near(net, rounding, way, Rounding::kFloat32);
}

// The tolerance is worth nothing if it does not see this.
Judgement noise_is_seen(const RandomNet& net, Rounding& rounding) {
  if (net.number % 16 != 0) return {Verdict::skipped, ""};
  Way way;
  way.noise = 1e-4;
  way.noise_seed = 7;
  if (rounding.too_far(run_trial(net, way), Rounding::kFloat32)) return {};
  return {Verdict::different, "noise of 1e-4 in data and weights is not seen"};
}

// A few switches, and an implementation that is preferred.
Judgement some_off(const RandomNet& net, Rounding& rounding) {
  Dice dice({net.seed, mix(net.number, 2)});
  Way way;
  way.fuse = !dice.one_in(3);
  way.format = !dice.one_in(3);
  way.reuse_memory = !dice.one_in(3);
  way.overlap = !dice.one_in(3);
  way.recompute = dice.one_in(2) ? Recompute::off : Recompute::all;
  way.implementation = dice.pick<std::string>({"", "plain", "im2col", "depthwise"});
  way.test = true;
  return near(net, rounding, way, Rounding::kFloat32);
}

Judgement recomputed(const RandomNet& net, Rounding&) {
  Way kept, again;
  kept.overlap = again.overlap = false;
  kept.repeatable = again.repeatable = true;
  kept.recompute = Recompute::off;
  again.recompute = Recompute::all;
  return same_bits(run_trial(net, again), run_trial(net, kept));
}

// Every blob has its own memory and is looked at.
Judgement with_debug_info(const RandomNet& net, Rounding& rounding) {
  if (net.number % 4 != 0) return {Verdict::skipped, ""};
  Way way;
  way.more = "debug_info: true ";
  return near(net, rounding, way, Rounding::kFloat32);
}

// Tests between the iterations, of a net that uses the same memory, change nothing.
Judgement tested(const RandomNet& net, Rounding&) {
  Way way;
  way.repeatable = true;
  const Outcome alone = run_trial(net, way);
  way.more = "test_iter: 2 test_interval: 1 ";
  return same_bits(run_trial(net, way), alone);
}

Judgement resumed(const RandomNet& net, Rounding&) {
  const Folder folder;
  Way way;
  way.repeatable = true;
  way.iterations = 4;
  way.look = Way::Look::nothing;
  way.more = cat("snapshot: 2 snapshot_prefix: '", folder.file("s"), "' ");
  const Outcome whole = run_trial(net, way);
  way.snapshot = folder.file("s_iter_2.solverstate");
  return same_bits(run_trial(net, way), whole);
}

template <int kRanks>
Judgement ranks(const RandomNet& net, Rounding& rounding) {
  if (!net.for_ranks) return {Verdict::skipped, ""};
  Outcome first;
  try {
    ThreadRanks(kRanks).run([&](Communicator& world) {
      Way way;
      way.look = Way::Look::losses;
      way.world = &world;
      way.shard = net.number % 3 == 0;
      Outcome mine = run_trial(net, way);
      if (world.rank == 0) first = std::move(mine);
    });
  } catch (const Error& error) {
    // Setup errors name a position in the file; an error during training is not a refusal.
    if (starts_with(error.what(), "solver.prototxt:")) return {Verdict::refused, error.what()};
    if (diverges(net)) return {Verdict::skipped, ""};
    throw;
  }
  const std::optional<Mismatch> mismatch = rounding.too_far(first, Rounding::kFloat32);
  if (!mismatch) return {};
  return {rounding.explained_by_jumps(first, Rounding::kFloat32) ? Verdict::undecided
                                                                 : Verdict::different,
          mismatch->str()};
}

constexpr double kTf32 = 1.0 / (1 << 11), kBf16 = 1.0 / (1 << 8), kFp16 = 1.0 / (1 << 11);

template <Precision kPrecision, bool kPlanned>
Judgement on_gpu(const RandomNet& net, Rounding& rounding) {
  Way way;
  way.device = Device::gpu;
  way.precision = kPrecision;
  if (kPrecision == Precision::fp16) way.loss_scale = 1 << 15;  // the solver's first
  way.test = true;
  way.planned = &rounding.planned;
  if (!kPlanned) {
    way.fuse = way.reuse_memory = way.overlap = way.capture = false;
    way.format = is_half(kPrecision);  // 16 bits exist channels-last only
    way.recompute = Recompute::off;
  }
  const double unit = kPrecision == Precision::tf32   ? kTf32
                      : kPrecision == Precision::bf16 ? kBf16
                      : kPrecision == Precision::fp16 ? kFp16
                                                      : Rounding::kFloat32;
  return near(net, rounding, way, unit);
}

// Blobs and gradients are not read, so that iterations are recorded and replayed.
template <Precision kPrecision>
Judgement captured(const RandomNet& net, Rounding&) {
  Way way;
  way.repeatable = true;
  way.device = Device::gpu;
  way.precision = kPrecision;
  way.look = Way::Look::nothing;
  way.iterations = 4;
  const Outcome replayed = run_trial(net, way);
  way.capture = false;
  return same_bits(replayed, run_trial(net, way));
}

Judgement resumed_on_gpu(const RandomNet& net, Rounding&) {
  const Folder folder;
  Way way;
  way.repeatable = true;
  way.device = Device::gpu;
  way.iterations = 4;
  way.look = Way::Look::nothing;
  way.more = cat("snapshot: 2 snapshot_prefix: '", folder.file("s"), "' ");
  const Outcome whole = run_trial(net, way);
  way.snapshot = folder.file("s_iter_2.solverstate");
  return same_bits(run_trial(net, way), whole);
}

std::vector<Comparison> made() {
  std::vector<Comparison> all = {
      {"planned", planned},
      {"fast kernels", fast_kernels},
      {"noise is seen", noise_is_seen},
      {"two threads", two_threads},
      {"some passes off", some_off},
      {"with debug_info", with_debug_info},
      {"recomputed", recomputed},
      {"tested in between", tested},
      {"resumed", resumed},
      {"2 ranks", ranks<2>},
      {"3 ranks", ranks<3>},
  };
  if (gpu_count() > 0) {
    const std::vector<Comparison> gpu = {
        {"GPU fp32 unplanned", on_gpu<Precision::fp32, false>},
        {"GPU fp32", on_gpu<Precision::fp32, true>},
        {"GPU tf32 unplanned", on_gpu<Precision::tf32, false>},
        {"GPU tf32", on_gpu<Precision::tf32, true>},
        {"GPU bf16 unplanned", on_gpu<Precision::bf16, false>},
        {"GPU bf16", on_gpu<Precision::bf16, true>},
        {"GPU fp16 unplanned", on_gpu<Precision::fp16, false>},
        {"GPU fp16", on_gpu<Precision::fp16, true>},
        {"GPU fp32 captured", captured<Precision::fp32>},
        {"GPU fp16 captured", captured<Precision::fp16>},
        {"GPU resumed", resumed_on_gpu},
    };
    all.insert(all.end(), gpu.begin(), gpu.end());
  }
  return all;
}

}  // namespace

const std::vector<Comparison>& comparisons() {
  static const std::vector<Comparison> all = made();
  return all;
}

Judgement judge(const Comparison& comparison, const RandomNet& net, Rounding& rounding) {
  try {
    return comparison.judge(net, rounding);
  } catch (const DeviceLost&) {
    throw;
  } catch (const Diverged& error) {
    if (diverges(net)) return {Verdict::skipped, ""};
    return {Verdict::different, cat("stopped: ", error.what())};
  } catch (const Error& error) {
    return {Verdict::different, cat("stopped: ", error.what())};
  }
}

}  // namespace crema::tests
