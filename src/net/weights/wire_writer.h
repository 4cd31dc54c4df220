// WireMessage: a binary message whose blobs are written from where their values are. Through
// protobuf's classes each would be copied three times, which takes longer than the disk.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace crema {

using WireSink = std::function<void(const void* bytes, size_t count)>;

class WireMessage {
 public:
  WireMessage() = default;
  // `bytes`: the message without the blobs that are added, as protobuf serializes it.
  explicit WireMessage(std::string bytes) : rest_(std::move(bytes)) {}

  // One element of a repeated BlobProto field, placed where protobuf would. Call it with growing
  // numbers. The tensors must be there when the message is written.
  void add_blob(int field, const Tensor& data, const Tensor& diff = {});
  uint64_t size() const;
  void write(Context& context, const WireSink& sink) const;

 private:
  struct Part {
    std::string bytes;
    Tensor values;  // after the bytes; may be empty
  };
  void add(std::string bytes, const Tensor& values = {});
  std::vector<Part> parts_;
  std::string rest_;  // behind the parts
};

// The header of a length-delimited field.
std::string wire_header(int field, uint64_t length);

// Calls `visit` with the values in row-major order, as floats or, in a tensor of doubles, as
// doubles; they are copied only if they are in another order or on a GPU.
void visit_values(Context& context, const Tensor& tensor, const WireSink& visit);

}  // namespace crema
