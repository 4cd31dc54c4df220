// Type "Python" with objects that this test creates instead of an interpreter's: memory that such
// an object can access directly (float32 on a CPU), and memory of which it gets copies (float64, a
// GPU).
#include <gtest/gtest.h>

#include "base/error.h"
#include "layers/hand_row.h"
#include "layers/python_hook.h"

namespace crema {
namespace python_layer_test {

// y = param_str * x + p; like most such classes it does not know where its blobs are.
class Line : public PythonObject {
 public:
  explicit Line(const PythonClass& wanted)
      : factor_(std::stof(wanted.param_str)),
        shift_(std::make_shared<HostBlob>(wanted.host, Shape{1})) {
    *shift_->data().data<float>() = 3;
  }
  void setup(const HostBlobs&, const HostBlobs&) override {}
  void reshape(const HostBlobs& bottom, const HostBlobs& top) override {
    if (top[0] != bottom[0]) top[0]->reshape(bottom[0]->shape());
  }
  void forward(uint64_t, const HostBlobs& bottom, const HostBlobs& top) override {
    const Tensor x = bottom[0]->data(), y = top[0]->data();
    for (int64_t i = 0; i < x.count(); ++i)
      y.data<float>()[i] = factor_ * x.data<float>()[i] + *shift_->data().data<float>();
  }
  void backward(const HostBlobs& top, const std::vector<bool>& propagate_down,
                const HostBlobs& bottom) override {
    const Tensor dy = top[0]->diff(), dx = bottom[0]->diff();
    for (int64_t i = 0; i < dy.count(); ++i) *shift_->diff().data<float>() += dy.data<float>()[i];
    for (int64_t i = 0; i < dy.count() && propagate_down[0]; ++i)
      dx.data<float>()[i] = factor_ * dy.data<float>()[i];
  }
  HostBlobs blobs() override { return {shift_}; }

 private:
  float factor_;
  std::shared_ptr<HostBlob> shift_;
};

std::unique_ptr<PythonObject> make_line(const PythonClass& wanted) {
  EXPECT_EQ(wanted.module, "lines");
  EXPECT_EQ(wanted.layer, "Line");
  return std::make_unique<Line>(wanted);
}

class PythonLayers : public testing::Test {
 protected:
  PythonLayers() { set_python_maker(make_line); }
  ~PythonLayers() override { set_python_maker(nullptr); }
};

const char* const kFields =
    "type: \"Python\" bottom: \"x\" top: \"y\" python_param { module: \"lines\" layer: \"Line\" "
    "param_str: \"2\" }";

void check(const std::string& text, const Setting& setting) {
  SCOPED_TRACE(setting.str());
  const Row row = row_of(text, {{{2, 3}}});
  LayerRun layer_run(row, setting);
  ASSERT_EQ(layer_run.layer().given_parameter(0).count(), 1);
  EXPECT_EQ(*layer_run.layer().given_parameter(0).data<float>(), 3);
  Start start = layer_run.make_start();
  start.bottom[0] = {1, 2, 3, 4, 5, 6};
  start.top_diff[0] = {1, 0, 2, 0, 0, 4};
  start.parameter[0] = {10};
  const Outcome once = layer_run.backward(start);
  expect_values({12, 14, 16, 18, 20, 22}, once.top[0]);
  expect_values({2, 0, 4, 0, 0, 8}, once.bottom_diff[0]);
  expect_values({7}, once.parameter_diff[0]);
  const Outcome twice = layer_run.backward(start, 2);
  expect_values({2, 0, 4, 0, 0, 8}, twice.bottom_diff[0]);
  expect_values({14}, twice.parameter_diff[0]);
  EXPECT_EQ(layer_run.broken_guard(), "");
}

TEST_F(PythonLayers, ComputeInEachMemory) {
  std::vector<Device> devices = {Device::cpu};
  if (gpu_count() > 0) devices.push_back(Device::gpu);
  for (const Device device : devices) {
    for (const DType dtype : {DType::f64, DType::f32}) {
      Setting setting;
      setting.device = device;
      setting.dtype = dtype;
      check(kFields, setting);
      std::string in_place = kFields;
      in_place.replace(in_place.find("\"y\""), 3, "\"x\"");
      check(in_place, setting);
    }
  }
}

TEST(HostBlob, KeepsWhatFits) {
  const auto host = std::make_shared<Context>(Device::cpu);
  HostBlob blob(host, {2, 3});
  EXPECT_FALSE(blob.has_data());
  const Tensor before = blob.data();
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(before.data<float>()[i], 0);
    before.data<float>()[i] = static_cast<float>(i + 1);
  }
  blob.reshape({2});
  EXPECT_EQ(blob.data().raw(), before.raw());
  EXPECT_EQ(blob.data().shape(), Shape({2}));
  blob.reshape({3, 2});
  EXPECT_EQ(blob.data().data<float>()[5], 6);
  blob.reshape({7});
  EXPECT_EQ(blob.data().data<float>()[0], 0);
  EXPECT_EQ(before.data<float>()[5], 6);  // who holds it keeps it
  blob.reshape({0, 3});
  EXPECT_EQ(blob.data().count(), 0);
}

}  // namespace python_layer_test
}  // namespace crema
