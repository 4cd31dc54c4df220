// Messages whose blobs are written directly from their memory: the same bytes as protobuf's.
#include "net/weights/wire_writer.h"

#include <gtest/gtest.h>

#include "proto/net.pb.h"
#include "proto/solver.pb.h"
#include "support.h"
#include "tensor/tensor.h"

namespace crema::tests {
namespace wire_writer_test {

Context& host() {
  static Context context(Device::cpu);
  return context;
}

Tensor tensor_of(const Shape& shape, DType dtype, float start, Format format = {}) {
  const Tensor tensor(host(), shape, dtype, std::move(format));
  std::vector<float> values(shape.count());
  for (size_t i = 0; i < values.size(); ++i) values[i] = start + static_cast<float>(i) / 8;
  from_floats(host(), values.data(), tensor);
  return tensor;
}

// As the values come out in row-major order.
void add_to(BlobProto* blob, const Tensor& data, const Tensor& diff) {
  blob->mutable_shape();
  for (const int64_t extent : data.shape().dims()) blob->mutable_shape()->add_dim(extent);
  const auto add = [&](const Tensor& tensor, auto* floats, auto* doubles) {
    if (!tensor) return;
    for (const double value : to_doubles(host(), tensor)) {
      tensor.dtype() == DType::f64 ? doubles->Add(value) : floats->Add(static_cast<float>(value));
    }
  };
  add(data, blob->mutable_data(), blob->mutable_double_data());
  add(diff, blob->mutable_diff(), blob->mutable_double_diff());
}

std::string bytes_of(const WireMessage& message) {
  std::string bytes;
  message.write(host(), [&](const void* at, size_t count) {
    bytes.append(static_cast<const char*>(at), count);
  });
  EXPECT_EQ(bytes.size(), message.size());
  return bytes;
}

TEST(WireWriter, WritesWhatProtobufWrites) {
  struct Row {
    const char* name;
    Shape shape;
    DType dtype;
    bool diff;
    Format format;
  };
  const Row rows[] = {
      {"floats", Shape{3, 5}, DType::f32, false, {}},
      {"a scalar", Shape{}, DType::f32, false, {}},
      {"gradients", Shape{3, 5}, DType::f32, true, {}},
      {"doubles", Shape{2, 70}, DType::f64, true, {}},
      {"channels last", Shape{4, 3, 2, 2}, DType::f32, true, Format::channels_last()},
      {"long", Shape{300, 70}, DType::f32, false, {}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const Tensor data = tensor_of(row.shape, row.dtype, 1, row.format),
                 diff = row.diff ? tensor_of(row.shape, row.dtype, -2, row.format) : Tensor();
    LayerParameter layer;
    layer.set_name("ip");
    layer.set_type("InnerProduct");
    layer.mutable_inner_product_param()->set_num_output(3);  // comes behind the blobs
    WireMessage message(layer.SerializeAsString());
    for (int i = 0; i < 2; ++i) {
      message.add_blob(LayerParameter::kBlobsFieldNumber, data, diff);
      add_to(layer.add_blobs(), data, diff);
    }
    EXPECT_EQ(bytes_of(message), layer.SerializeAsString());
  }
}

TEST(WireWriter, SeveralFieldsOfBlobs) {
  const Tensor one = tensor_of(Shape{7}, DType::f32, 1),
               two = tensor_of(Shape{2, 2}, DType::f32, 5);
  SolverState state;
  state.set_iter(4);
  state.set_learned_net("a.caffemodel");
  state.set_current_step(3);
  state.set_seed(9);
  state.set_rollback_scale(0.5f);
  WireMessage message(state.SerializeAsString());
  message.add_blob(SolverState::kHistoryFieldNumber, one);
  message.add_blob(SolverState::kHistoryFieldNumber, two);
  message.add_blob(SolverState::kAverageFieldNumber, two);
  message.add_blob(SolverState::kSlowFieldNumber, one);
  add_to(state.add_history(), one, {});
  add_to(state.add_history(), two, {});
  add_to(state.add_average(), two, {});
  add_to(state.add_slow(), one, {});
  EXPECT_EQ(bytes_of(message), state.SerializeAsString());
}

TEST(WireWriter, WithoutBlobs) {
  EXPECT_EQ(bytes_of(WireMessage("as it is")), "as it is");
  EXPECT_EQ(bytes_of(WireMessage()), "");
}

}  // namespace wire_writer_test
}  // namespace crema::tests
