// The state that recurrent layers keep from one forward pass to the next.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "net/net.h"
#include "proto/net.pb.h"
#include "support.h"

namespace crema::tests {
namespace recurrent_state_test {

constexpr int kSequences = 2, kInputs = 3;

std::unique_ptr<Net> make_net(Context& context, const std::string& type, int steps) {
  NetParameter text;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      cat("layer { name: 'in' type: 'Input' top: 'x' top: 'cont' input_param { shape { dim: ",
          steps, " dim: ", kSequences, " dim: ", kInputs, " } shape { dim: ", steps,
          " dim: ", kSequences, " } } } layer { name: 'layer' type: '", type,
          "' bottom: 'x' bottom: 'cont' top: 'y' recurrent_param { num_output: 4 weight_filler { "
          "type: 'gaussian' std: 0.5 } } }"),
      &text));
  NetOptions options;
  options.state.set_phase(TEST);
  return std::make_unique<Net>(context, text, options);
}

// Steps `from` to `to` of sequences that all continue, except that the second ones begin at step 3.
std::vector<float> run(Context& context, Net& net, int from, int to, uint64_t pass) {
  std::vector<float> x, cont;
  for (int t = from; t < to; ++t) {
    for (int n = 0; n < kSequences; ++n) {
      cont.push_back(n == 1 && t == 3 ? 0.f : 1.f);
      for (int i = 0; i < kInputs; ++i)
        x.push_back(0.25f * static_cast<float>((t + 2 * n + i) % 5));
    }
  }
  from_floats(context, x.data(), net.input("x"));
  from_floats(context, cont.data(), net.input("cont"));
  net.forward(pass);
  return to_floats(context, net.outputs().at(0).value);
}

void expect_carried(const std::string& type, Device device) {
  Context context(device);
  const auto whole = make_net(context, type, 6), halves = make_net(context, type, 3),
             other = make_net(context, type, 3);
  const std::vector<float> wanted = run(context, *whole, 0, 6, 0);
  std::vector<float> got = run(context, *halves, 0, 3, 0);
  const std::vector<float> fresh = run(context, *other, 0, 3, 0);
  const std::vector<float> second = run(context, *halves, 3, 6, 1);
  EXPECT_EQ(fresh, got) << "a net of its own begins at zero";
  got.insert(got.end(), second.begin(), second.end());
  ASSERT_EQ(wanted.size(), got.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(wanted[i], got[i], 1e-6) << "value " << i;
}

TEST(RecurrentStateTest, GoesOnInTheNextPass) {
  for (const char* type : {"LSTM", "RNN"}) {
    SCOPED_TRACE(type);
    expect_carried(type, Device::cpu);
    if (gpu_count() > 0) expect_carried(type, Device::gpu);
  }
}

}  // namespace recurrent_state_test
}  // namespace crema::tests
