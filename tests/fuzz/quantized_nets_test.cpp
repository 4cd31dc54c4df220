// Random nets with quantization_param (quantized_net.h), planned in several ways: all lead to the same bits.
#include <google/protobuf/text_format.h>

#ifdef _OPENMP
#include <omp.h>
#endif

#include <cmath>
#include <cstdlib>
#include <iostream>
#include <map>
#include <set>
#include <thread>

#include "base/random.h"
#include "fuzz/quantized_net.h"
#include "net/net.h"
#include "net/plan/plan.h"
#include "proto/net.pb.h"
#include "support.h"

namespace crema::tests {
namespace quantized_nets_test {

using Blobs = std::map<std::string, std::vector<float>>;

float whole_number(const Random& random, uint64_t index, int largest) {
  return static_cast<float>(static_cast<int>(random.word(index) % (2 * largest + 1)) - largest);
}

// A net in phase TEST with its context.
struct Run {
  Context context{Device::cpu};
  std::unique_ptr<Net> net;

  Run(const QuantizedNet& made, NetOptions options) {
    NetParameter message;
    if (!google::protobuf::TextFormat::ParseFromString(made.text(), &message)) fail("no net");
    options.state.set_phase(TEST);
    net = std::make_unique<Net>(context, message, options);
    if (!options.weights_of) fill(1);
  }

  void fill(uint64_t seed) {
    for (size_t k = 0; k < net->parameters().size(); ++k) {
      const Tensor& data = net->parameters()[k].data;
      const bool weights = data.shape().axes() > 1;
      std::vector<float> values(static_cast<size_t>(data.shape().count()));
      for (size_t i = 0; i < values.size(); ++i)
        values[i] =
            weights ? whole_number({seed, k}, i, 256) / 256 : whole_number({seed, k}, i, 16) / 8;
      from_floats(context, values.data(), data);
    }
    net->parameters_changed();
  }

  void forward(const QuantizedNet& made, uint64_t pass) {
    for (const std::string& input : made.inputs()) {
      std::vector<float> values(static_cast<size_t>(net->input(input).shape().count()));
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = whole_number({pass, std::hash<std::string>()(input)}, i, 256) / 64;
      net->set_input(input, values.data());
    }
    net->forward(pass);
  }
  Blobs outputs() {
    Blobs found;
    for (const Net::Output& output : net->outputs())
      found[output.blob] = to_floats(context, output.value);
    return found;
  }
};

void reshape(Net& net, const QuantizedNet& made, int64_t batch) {
  std::vector<std::pair<std::string, Shape>> shapes;
  for (const std::string& input : made.inputs()) {
    Shape shape = net.input(input).shape();
    shape[0] = batch;
    shapes.emplace_back(input, shape);
  }
  net.reshape(shapes);
}

struct Counts {
  int nets = 0, with_edges = 0, edges = 0, unwritten = 0, micro_batches = 0;
};

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

class Trial {
 public:
  Trial(QuantizedNet made, Dice dice, Counts* counts)
      : made_(std::move(made)), dice_(dice), counts_(counts) {}

  void run() {
    NetOptions every;
    every.keep_blobs = true;
    every.fuse = false;
    Run reference(made_, every);
    reference.forward(made_, 1);
    want_ = reference.outputs();
    for (const LayerParameter& layer : reference.net->graph().net.layer()) {
      for (const std::string& top : layer.top())
        blobs_[top] = to_floats(reference.context, reference.net->blob(top));
    }
    planned();
    switched_off();
    kept();
    reshaped(reference);
    in_threads();
  }
  const std::string& text() const { return made_.text(); }

 private:
  void compare(const Blobs& got, const Blobs& want, const char* way) {
    EXPECT_EQ(got.size(), want.size()) << way;
    for (const auto& [name, values] : want) {
      const auto found = got.find(name);
      ASSERT_NE(found, got.end()) << way << ": no " << name;
      if (found->second == values) continue;
      ASSERT_EQ(found->second.size(), values.size()) << way << " " << name;
      size_t different = 0, first = 0;
      for (size_t i = values.size(); i-- > 0;) {
        if (found->second[i] != values[i]) ++different, first = i;
      }
      ADD_FAILURE() << way << ": " << different << " of " << values.size() << " values of " << name
                    << " differ, the first is [" << first << "] " << found->second[first]
                    << " instead of " << values[first];
    }
  }

  void planned() {
    Run run(made_, {});
    run.forward(made_, 3);
    run.forward(made_, 1);
    compare(run.outputs(), want_, "planned");
    const std::string dump = run.net->dump_plan();
    run.net->memory_by_layer();
    const auto edges = static_cast<int>(count_of(dump, "as integers of 8 bits"));
    ++counts_->nets;
    counts_->with_edges += edges > 0;
    counts_->edges += edges;
    counts_->unwritten += static_cast<int>(count_of(dump, "bits; the top is never written"));
    // Other weights, then these again.
    run.fill(2);
    run.forward(made_, 1);
    run.fill(1);
    run.forward(made_, 1);
    compare(run.outputs(), want_, "filled again");
  }

  void switched_off() {
    for (const size_t cache : {300, 3000, 20000, 100000}) {
      NetOptions options;
      options.cache_bytes = cache;
      options.fuse = !dice_.one_in(6);
      options.format = !dice_.one_in(6);
      options.reuse_memory = !dice_.one_in(6);
      options.pack = !dice_.one_in(8);
      Run run(made_, options);
      run.forward(made_, 1);
      compare(run.outputs(), want_, "with micro-batches");
      counts_->micro_batches += count_of(run.net->dump_plan(), "samples at a time") > 0;
    }
  }

  // Blobs in the middle stay until the end of a pass.
  void kept() {
    std::set<std::string> names;
    NetOptions options;
    options.cache_bytes = dice_.one_in(2) ? 3000 : 0;
    options.kept = [&](const Graph& graph) {
      std::map<std::string, int> last;
      for (size_t id = 0; id < graph.values.size(); ++id)
        last[graph.values[id].blob] = static_cast<int>(id);
      std::vector<int> ids;
      for (const auto& [name, id] : last) {
        if (!dice_.one_in(3) || blobs_.count(name) == 0) continue;
        names.insert(name);
        ids.push_back(id);
      }
      return ids;
    };
    Run run(made_, options);
    run.forward(made_, 1);
    compare(run.outputs(), want_, "with kept blobs");
    Blobs got, want;
    for (const std::string& name : names) {
      got[name] = to_floats(run.context, run.net->blob(name));
      want[name] = blobs_[name];
    }
    compare(got, want, "kept");
  }

  void reshaped(Run& reference) {
    const int64_t batch = reference.net->input(made_.inputs()[0]).shape()[0];
    const int64_t other = 1 + static_cast<int64_t>(dice_.below(7));
    reshape(*reference.net, made_, other);
    reference.forward(made_, 2);
    const Blobs want = reference.outputs();
    NetOptions options;
    options.cache_bytes = dice_.one_in(2) ? 3000 : 0;
    Run run(made_, options);
    if (dice_.one_in(2)) run.forward(made_, 1);
    reshape(*run.net, made_, other);
    run.forward(made_, 2);
    compare(run.outputs(), want, "reshaped");
    reshape(*run.net, made_, batch);
    run.forward(made_, 1);
    compare(run.outputs(), want_, "reshaped again");
    run.net->look_into(false);
    run.forward(made_, 1);
    compare(run.outputs(), want_, "looked into");
  }

  // A net per thread, on one set of weights. The number of threads of a kernel may change its layouts.
  void in_threads() {
    NetOptions options;
    Run first(made_, options);
    options.weights_of = first.net.get();
    std::vector<std::unique_ptr<Run>> runs;
    for (int i = 0; i < 2; ++i) {
      options.cache_bytes = i == 0 ? 0 : 2000;
      runs.push_back(std::make_unique<Run>(made_, options));
    }
    if (dice_.one_in(2)) reshape(*runs[0]->net, made_, 1 + static_cast<int64_t>(dice_.below(4)));
    std::vector<std::thread> threads;
    std::string errors;
    for (int i = 0; i < 2; ++i) {
      threads.emplace_back([&, i] {
#ifdef _OPENMP
        omp_set_num_threads(1 + i);
#endif
        try {
          for (int pass = 0; pass < 2; ++pass) runs[i]->forward(made_, 1);
        } catch (const std::exception& error) {
          errors += error.what();
        }
      });
    }
    first.forward(made_, 1);
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(errors, "");
    compare(first.outputs(), want_, "first of several");
    compare(runs[1]->outputs(), want_, "on the weights of another");
  }

  QuantizedNet made_;
  Dice dice_;
  Counts* counts_;
  Blobs want_, blobs_;
};

uint64_t setting(const char* name, uint64_t otherwise) {
  const char* const value = std::getenv(name);
  return value ? std::strtoull(value, nullptr, 10) : otherwise;
}

int failures() {
  return testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count();
}

void try_ways(const char* name, const char* shape, const std::string& layers) {
  SCOPED_TRACE(name);
  const std::string input =
      cat("layer { name: 'x' type: 'Input' top: 'x' input_param { shape { ", shape, " } } }");
  Counts counts;
  for (uint64_t number = 0; number < 4; ++number)
    Trial({input + layers, {"x"}}, Dice({1, number}), &counts).run();
}

// Each was wrong once. One test, because the time of the fuzzed readers is divided by the number of tests.
TEST(QuantizedNets, GivenNetsLeadToTheSameBits) {
  // oneDNN 2.6 has a product of matrices for these, which is wrong for bytes with a sign.
  try_ways("groups of few outputs", "dim: 2 dim: 32 dim: 5 dim: 6",
           R"(layer { name: 'c' type: 'Convolution' bottom: 'x' top: 'c'
             convolution_param { num_output: 8 group: 4 kernel_size: 1 }
             quantization_param { bw_layer_in: 8 scale_in: 16 is_negative_input: true bw_params: 8 scale_params: 64 } })");
  try_ways(
      "weights that are not rounded", "dim: 3 dim: 12 dim: 3 dim: 4",
      R"(layer { name: 'f' type: 'InnerProduct' bottom: 'x' top: 'f' inner_product_param { num_output: 7 }
             quantization_param { bw_layer_in: 8 scale_in: 16 is_negative_input: true } })");
  // The plans for one sample and for several have the rounded weights in different formats.
  try_ways(
      "inputs that are not rounded", "dim: 1 dim: 16 dim: 5 dim: 6",
      R"(layer { name: 'f' type: 'InnerProduct' bottom: 'x' top: 'f' inner_product_param { num_output: 20 }
             quantization_param { bw_params: 8 scale_params: 64 } })");
  std::string convolutions;
  for (const char* const bits : {"8", "4", "6"}) {
    convolutions += cat("layer { name: 'c", bits, "' type: 'Convolution' bottom: 'x' top: 'c", bits,
                        "' convolution_param { num_output: 16 kernel_size: 1 bias_term: false } ",
                        "quantization_param { bw_layer_in: 8 scale_in: 16 bw_params: ", bits,
                        " scale_params: 64 } param { name: 'w' } }");
  }
  try_ways("shared weights as different integers", "dim: 2 dim: 16 dim: 5 dim: 6", convolutions);
}

TEST(QuantizedNets, AllPlansLeadToTheSameBits) {
  const uint64_t seed = setting("CREMA_FUZZ_SEED", 1), first = setting("CREMA_FUZZ_FIRST", 0),
                 nets = setting("CREMA_QUANTIZED_NETS", 25);
  Counts counts;
  int failed = 0;
  for (uint64_t number = first; number < first + nets && failed < 10; ++number) {
    Trial trial({seed, number}, Dice({seed, mix(number, 1)}), &counts);
    const int before = failures();
    try {
      trial.run();
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
    if (failures() == before) continue;
    ++failed;
    ADD_FAILURE() << "seed " << seed << ", net " << number << "\n" << trial.text();
  }
  std::cout << counts.nets << " nets, " << counts.with_edges
            << " with integers that are passed on, " << counts.edges << " times, "
            << counts.unwritten << " of them alone, " << counts.micro_batches
            << " plans with micro-batches\n";
}

}  // namespace quantized_nets_test
}  // namespace crema::tests
