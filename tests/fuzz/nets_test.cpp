// Texts: nets and solvers.
#include <google/protobuf/text_format.h>

#include <functional>

#include "device/memory_account.h"
#include "fuzz/fuzz.h"
#include "layers/layer.h"
#include "net/deploy/deploy.h"
#include "net/graph/filter.h"
#include "net/net.h"
#include "net/plan/plan.h"
#include "net/plan/work.h"
#include "net/prototxt/prototxt.h"
#include "solver/fixtures.h"
#include "tools/inputs/assume.h"
#include "tools/inputs/random_inputs.h"

namespace crema::tests {
namespace nets_test {

constexpr size_t kNetMemory = size_t{64} << 20;
constexpr double kMaxWork = 1e8;  // operations, or bytes moved, of a pass that is worth its time

struct TooMuchWork {};

// One pass in each direction, if it is short.
void run_pass(Net& net) {
  fill_random_inputs(net);
  double work = 0;
  net.set_observer([&](const Net::StepInfo& step, bool begin) {
    if (!begin) return;
    const Work next = step.backward ? backward_work(*step.node) : forward_work(*step.node);
    work += next.operations + next.bytes;
    if (!(work < kMaxWork)) throw TooMuchWork();
  });
  try {
    net.forward(0);
    net.loss();
    net.check();
    if (net.training()) net.backward();
  } catch (const TooMuchWork&) {
  }
}

void read_net(const std::string& text) {
  const NetFile file = parse_net_text(text, "net.prototxt");
  Context context(Device::cpu);
  context.memory()->limit(kNetMemory, "the test");
  NetOptions options;
  options.state = net_state(text.size() % 2 == 0 ? TRAIN : TEST, file.net, {});
  std::vector<int> kept;
  const auto where = [&](int layer) { return file.where(layer); };
  NetParameter filtered = filter_net(file.net, options.state, silent_log(), &kept, where);
  options.where = [&](int layer) { return file.where(kept[layer]); };
  DeployOptions use;
  use.assume = text.size() % 3 == 0 ? "" : "default";
  use.where = options.where;
  try {
    text_of(deploy(filtered, use, silent_log()));
  } catch (const Error&) {  // the net itself may still be one
  }
  SourceReplacer sources(silent_log(), "default", 0);
  sources.replace(filtered, options.where);
  sources.finish();
  Net net(context, filtered, options);
  run_pass(net);
}

// The nets of tests/, small ones: they are many times built.
std::vector<std::string> net_texts() {
  std::vector<std::string> texts;
  for (const char* folder : {"tests/goldens", "tests/corpus", "models"}) {
    for (std::string& text : contents(folder, ".prototxt")) {
      if (text.size() < 20000 && text.find("base_lr") == std::string::npos)
        texts.push_back(std::move(text));
    }
  }
  // Older generations of the format.
  texts.push_back(
      "input: \"x\" input_dim: 2 input_dim: 3 input_dim: 4 input_dim: 4\n"
      "layers { bottom: \"x\" top: \"y\" name: \"c\" type: CONVOLUTION blobs_lr: 1 blobs_lr: 2 "
      "convolution_param { num_output: 2 kernel_size: 3 } }\n"
      "layers { bottom: \"y\" top: \"y\" name: \"r\" type: RELU }");
  texts.push_back(
      "input: \"x\" input_dim: 2 input_dim: 3 input_dim: 4 input_dim: 4\n"
      "layers { layer { name: \"p\" type: \"padding\" pad: 1 } bottom: \"x\" top: \"p\" }\n"
      "layers { layer { name: \"c\" type: \"conv\" num_output: 2 kernelsize: 3 weight_decay: 1 } "
      "bottom: \"p\" top: \"y\" }");
  return texts;
}

const std::vector<std::string>& net_words() {
  static const std::vector<std::string> words = [] {
    std::vector<std::string> all = words_of(NetParameter::descriptor());
    for (const std::string& type : LayerRegistry::names()) all.push_back(type);
    return all;
  }();
  return words;
}

// Half of them by their tokens, half by the fields that they mean.
template <typename Message>
void damage_prototxt(Dice& dice, std::string& text, const std::string& other,
                     const std::vector<std::string>& words) {
  Message message;
  google::protobuf::TextFormat::Parser parser;
  parser.AllowPartialMessage(true);
  if (dice.one_in(2) || !parser.ParseFromString(text, &message))
    return damage_text(dice, text, words, other);
  damage_message(dice, message, words);
  google::protobuf::TextFormat::PrintToString(message, &text);
}

std::vector<Files> one_each(const char* name, const std::vector<std::string>& texts) {
  std::vector<Files> corpus;
  for (const std::string& text : texts) corpus.push_back({{name, text}});
  return corpus;
}

TEST(Fuzz, Nets) {
  fuzz({"net", [] { return one_each("net", net_texts()); },
        [](Dice& dice, Files& files, const Files& other) {
          damage_prototxt<NetParameter>(dice, files["net"], other.at("net"), net_words());
        },
        [](const std::string&, const Files& files) { read_net(files.at("net")); }});
}

std::vector<std::string> solver_texts() {
  std::vector<std::string> texts;
  const std::string net = cat("net_param {", kNet, "} base_lr: 0.01 max_iter: 4 display: 1 ");
  for (const char* more :
       {"lr_policy: \"fixed\" momentum: 0.9 weight_decay: 0.0005 snapshot: 2",
        "lr_policy: \"step\" gamma: 0.1 stepsize: 2 type: \"Nesterov\" momentum: 0.9",
        "lr_policy: \"multistep\" gamma: 0.1 stepvalue: 1 stepvalue: 3 type: \"AdaGrad\"",
        "lr_policy: \"poly\" power: 0.5 type: \"Adam\" momentum: 0.9 momentum2: 0.99 delta: 1e-8",
        "lr_policy: \"sigmoid\" gamma: 0.1 stepsize: 2 type: \"RMSProp\" rms_decay: 0.9",
        "lr_policy: \"inv\" gamma: 0.1 power: 0.7 type: \"AdaDelta\" momentum: 0.9 iter_size: 2",
        "lr_policy: \"plateau\" gamma: 0.1 plateau_winsize: 2 test_iter: 1 test_interval: 2",
        "lr_policy: \"exp\" gamma: 0.9 ema_decay: 0.9 freeze: \"ip1.*\" clip_gradients: 1 "
        "average_loss: 3 test_iter: 2 test_interval: 1 test_initialization: false",
        "lr_policy: \"fixed\" solver_type: NESTEROV regularization_type: \"L1\" debug_info: true"})
    texts.push_back(net + more);
  return texts;
}

// Two iterations at most, with snapshots in the working directory.
void read_solver(const std::string& text) {
  SolverFile file = parse_solver_text(text, "solver.prototxt");
  SolverParameter& solver = file.solver;
  solver.set_snapshot_prefix("s");
  solver.set_iter_size(std::min(solver.iter_size(), 4));
  for (int& batches : *solver.mutable_test_iter()) batches = std::min(batches, 2);
  Context context(Device::cpu);
  context.memory()->limit(kNetMemory, "the test");
  Solver training(context, file);
  training.step(2);
}

TEST(Fuzz, Solvers) {
  static const std::vector<std::string> words = [] {
    std::vector<std::string> all = words_of(SolverParameter::descriptor());
    for (const char* name :
         {"fixed",    "step", "multistep", "poly",  "sigmoid", "inv",     "exp",
          "plateau",  "SGD",  "Adam",      "AdamW", "AdaGrad", "RMSProp", "AdaDelta",
          "Nesterov", "L1",   "L2",        "ip1",   "ip[12]",  "(.*)*"})
      all.emplace_back(name);
    return all;
  }();
  fuzz({"solver", [] { return one_each("solver", solver_texts()); },
        [](Dice& dice, Files& files, const Files& other) {
          damage_prototxt<SolverParameter>(dice, files["solver"], other.at("solver"), words);
        },
        [](const std::string&, const Files& files) { read_solver(files.at("solver")); }});
}

// Texts with variables, repeats and conditions; an include cannot be: files have these names only.
std::vector<std::string> expanded_texts() {
  return {
      "$width ?= 8 repeat $i = 1..3 { layer { name: \"conv$i\" type: \"Convolution\" bottom: "
      "\"data\" "
      "top: \"${i}_$width\" convolution_param { num_output: $width * 2 ** $i kernel_size: [3, $i] "
      "} } }",
      "$blocks = [2, 3] $s = 0 repeat $n, $k = [[1, 2], [3, 4]] { $s = $s + $n } name: \"$s\"",
      "repeat $n, $k = [[1, \"a\"], [3, \"b\"]] { if $n > 1 && $k == b { name: \"$k\" } else { "
      "force_backward: "
      "$n == 1 ? true : false } }",
      "$a = max(1, min(2.5, 3)) ** 2 // 1 % 7 state { level: $a stage: 'x${a + length(range(3))}' "
      "} "
      "include: \"net.prototxt\" { a: 1 }",
      "repeat 4 { layer < name: \"a\" loss_weight: -1.5e-3 > } error: \"no\""};
}

TEST(Fuzz, Expansions) {
  static const std::vector<std::string> words = {
      "$width", "$i", "$blocks", "repeat", "if", "else", "include:", "error:", "..", "**", "//",
      "?",      ":",  "[",       "]",      "{",  "}",    "(",        ")",      "=",  "?=", "&&",
      "||",     "!",  "max(",    "range(", "1",  "0",    "-",        "\"$i\"", "<",  ">"};
  fuzz({"expanded", [] { return one_each("net", expanded_texts()); },
        [](Dice& dice, Files& files, const Files& other) {
          damage_prototxt<NetParameter>(dice, files["net"], other.at("net"), words);
        },
        [](const std::string&, const Files& files) {
          parse_net_text(files.at("net"), "net.prototxt");
        }});
}

}  // namespace nets_test
}  // namespace crema::tests
