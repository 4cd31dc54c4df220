#include "fuzz/random_nets/trial.h"

#ifdef _OPENMP
#include <omp.h>
#endif

#include <cmath>

#include "base/error.h"
#include "net/plan/plan.h"
#include "proto/layer.pb.h"

namespace crema::tests {
namespace {

void use_threads([[maybe_unused]] int threads) {
#ifdef _OPENMP
  omp_set_num_threads(threads);
#endif
}

// Random values that others multiply; labels and indicators are made from others, which do not
// change.
bool is_noisy(const NetParameter& net, const LayerParameter& layer) {
  if (layer.type() != "DummyData") return false;
  for (const LayerParameter& reader : net.layer()) {
    for (const std::string& bottom : reader.bottom()) {
      if (bottom == layer.top(0) && reader.type() != "ArgMax" && reader.type() != "Threshold")
        return true;
    }
  }
  return false;
}

// Behind each data layer: x + noise * x * N(0, 1).
NetParameter with_noise(const NetParameter& net, const Way& way) {
  NetParameter noisy = net;
  noisy.clear_layer();
  for (const LayerParameter& layer : net.layer()) {
    LayerParameter& data = *noisy.add_layer();
    data = layer;
    if (!is_noisy(net, layer)) continue;
    const std::string top = layer.top(0), exact = top + "_exact", random = top + "_noise",
                      product = top + "_product";
    data.set_top(0, exact);
    LayerParameter& source = *noisy.add_layer();
    source = layer;
    source.set_name(cat(layer.name(), "_noise", way.noise_seed));
    source.set_top(0, random);
    FillerParameter& filler = *source.mutable_dummy_data_param()->mutable_data_filler(0);
    filler.Clear();
    filler.set_type("gaussian");
    filler.set_std(1);
    LayerParameter& times = *noisy.add_layer();
    times.set_name(layer.name() + "_product");
    times.set_type("Eltwise");
    times.add_bottom(exact);
    times.add_bottom(random);
    times.add_top(product);
    times.mutable_eltwise_param()->set_operation(EltwiseParameter::PROD);
    LayerParameter& sum = *noisy.add_layer();
    sum.set_name(layer.name() + "_sum");
    sum.set_type("Eltwise");
    sum.add_bottom(exact);
    sum.add_bottom(product);
    sum.add_top(top);
    sum.mutable_eltwise_param()->add_coeff(1);
    sum.mutable_eltwise_param()->add_coeff(static_cast<float>(way.noise));
  }
  return noisy;
}

void disturb_weights(Net& net, const Way& way) {
  uint64_t stream = 0;
  for (const Parameter& parameter : net.parameters()) {
    ++stream;
    if (!parameter.learned) continue;
    std::vector<double> values = to_doubles(net.context(), parameter.data);
    const Random random{way.noise_seed, stream};
    for (size_t i = 0; i < values.size(); ++i) values[i] *= 1 + way.noise * random.normal(i);
    from_doubles(net.context(), values.data(), parameter.data);
  }
  net.parameters_changed();
}

// False: one of them is not finite.
bool add_gradients(Net& net, const Way& way, const std::string& when, Outcome* outcome) {
  bool finite = true;
  for (const Parameter& parameter : net.parameters()) {
    if (!parameter.learned || !parameter.diff || parameter.lr_mult == 0) continue;
    std::vector<double> values = to_doubles(net.context(), parameter.diff);
    for (double& value : values) {
      finite = finite && std::isfinite(value);
      value /= way.loss_scale;
    }
    outcome->push_back({cat("gradient ", parameter.index, " of ", parameter.layer, when), values});
  }
  return finite;
}

constexpr const char* kTest = "test_iter: 1 test_interval: 1000 test_initialization: false ";

void add_outputs(Net& net, const std::string& when, Outcome* outcome) {
  for (const Net::Output& output : net.outputs())
    outcome->push_back(
        {cat("output ", output.blob, when), to_doubles(net.context(), output.value)});
}

SolverOptions options_for(const Way& way) {
  SolverOptions options;
  options.net.capture = way.capture;
  options.shard = way.shard;
  options.snapshot = way.snapshot;
  options.net.dtype = way.dtype;
  options.net.precision = way.precision;
  options.net.fuse = way.fuse;
  options.net.format = way.format;
  options.net.reuse_memory = way.reuse_memory;
  options.net.overlap = way.overlap;
  options.net.recompute = way.recompute;
  return options;
}

}  // namespace

Way plain_way(DType dtype) {
  Way way;
  way.dtype = dtype;
  way.implementation = "plain";
  way.fuse = way.format = way.reuse_memory = way.overlap = way.capture = false;
  way.recompute = Recompute::off;
  way.test = true;
  return way;
}

Outcome run_trial(const RandomNet& net, const Way& way) {
  use_threads(way.threads);
  RandomNet noisy;
  if (way.noise != 0) {
    noisy = net;
    noisy.net = with_noise(net.net, way);
  }
  const std::string text =
      (way.noise != 0 ? noisy : net).text(cat(way.more, way.test ? kTest : ""));
  Context context(way.device);
  context.implementation = way.implementation;
  context.repeatable = way.repeatable;
  context.set_world(way.world);
  Solver solver(context, parse_solver_text(text, "solver.prototxt"), options_for(way));
  if (way.noise != 0) disturb_weights(solver.net(), way);
  Outcome outcome;
  bool overflown = false;
  if (way.look == Way::Look::blobs) {
    const auto look = [&] {
      const std::string when = cat(" in iteration ", solver.iteration());
      if (overflown) return;
      add_outputs(solver.net(), when, &outcome);
      Outcome gradients;
      overflown = !add_gradients(solver.net(), way, when, &gradients) && way.loss_scale != 1;
      if (solver.iteration() == 0 && !overflown)
        outcome.insert(outcome.end(), gradients.begin(), gradients.end());
    };
    solver.add_callback({.on_start = {}, .on_gradients_ready = look});
  }
  if (way.look == Way::Look::nothing) solver.step(way.iterations - solver.iteration());
  while (solver.iteration() < way.iterations) {
    const bool before = overflown;
    solver.step(1);
    if (!before)
      outcome.push_back({cat("loss of iteration ", solver.iteration() - 1), {solver.loss()}});
  }
  if (way.planned) {
    for (const PlanNode& node : solver.net().plan().nodes) ++(*way.planned)[node.message.type()];
  }
  if (overflown) return outcome;
  for (const Parameter& parameter : solver.net().parameters())
    outcome.push_back({cat("weights ", parameter.index, " of ", parameter.layer,
                           " after iteration ", way.iterations),
                       to_doubles(context, parameter.data)});
  if (way.test) {
    Net& test = *solver.test_nets().at(0);
    test.forward(0);
    add_outputs(test, " in phase TEST", &outcome);
  }
  return outcome;
}

}  // namespace crema::tests
