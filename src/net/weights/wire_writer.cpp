#include "net/weights/wire_writer.h"

#include <bit>

#include "net/weights/wire_reader_cursor.h"
#include "proto/blob.pb.h"

namespace crema {
namespace {

static_assert(std::endian::native == std::endian::little, "packed numbers are little-endian");

void append_varint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

uint64_t bytes_of_values(const Tensor& tensor) {
  if (!tensor) return 0;
  const size_t each = tensor.dtype() == DType::f64 ? sizeof(double) : sizeof(float);
  return static_cast<uint64_t>(tensor.count()) * each;
}

// Where the first field with a larger number begins.
size_t place_of(int field, const std::string& bytes) {
  static const std::string name = "a message";
  for (WireCursor in(name, "message", bytes.data(), bytes.size()); !in.done();) {
    const size_t at = bytes.size() - in.left();
    const WireCursor::Tag tag = in.tag();
    if (tag.field > static_cast<uint32_t>(field)) return at;
    in.skip(tag);
  }
  return bytes.size();
}

std::string shape_field(const Shape& shape) {
  BlobProto blob;
  blob.mutable_shape();  // a scalar has a shape too, with no extents
  for (const int64_t extent : shape.dims()) blob.mutable_shape()->add_dim(extent);
  return blob.SerializeAsString();
}

}  // namespace

std::string wire_header(int field, uint64_t length) {
  std::string header;
  append_varint(static_cast<uint64_t>(field) << 3 | WireCursor::kBytes, &header);
  append_varint(length, &header);
  return header;
}

void visit_values(Context& context, const Tensor& tensor, const WireSink& visit) {
  const bool doubles = tensor.dtype() == DType::f64;
  const bool as_they_are = (doubles || tensor.dtype() == DType::f32) &&
                           tensor.device() == Device::cpu &&
                           same_layout(tensor.format(), Format::row_major(), tensor.shape());
  if (as_they_are) return visit(tensor.raw(), bytes_of_values(tensor));
  if (doubles) return visit(to_doubles(context, tensor).data(), bytes_of_values(tensor));
  visit(to_floats(context, tensor).data(), bytes_of_values(tensor));
}

void WireMessage::add(std::string bytes, const Tensor& values) {
  parts_.push_back({std::move(bytes), values});
}

void WireMessage::add_blob(int field, const Tensor& data, const Tensor& diff) {
  const bool doubles = data.dtype() == DType::f64;
  const int data_field = doubles ? BlobProto::kDoubleDataFieldNumber : BlobProto::kDataFieldNumber,
            diff_field = doubles ? BlobProto::kDoubleDiffFieldNumber : BlobProto::kDiffFieldNumber;
  const std::string shape = shape_field(data.shape()),
                    of_data = wire_header(data_field, bytes_of_values(data)),
                    of_diff = diff ? wire_header(diff_field, bytes_of_values(diff)) : "";
  const uint64_t size = shape.size() + of_data.size() + bytes_of_values(data) + of_diff.size() +
                        bytes_of_values(diff);
  const size_t place = place_of(field, rest_);
  // The shape's number is between those of floats and of doubles.
  add(rest_.substr(0, place) + wire_header(field, size) + (doubles ? shape : "") + of_data, data);
  if (diff) add(of_diff, diff);
  if (!doubles) add(shape);
  rest_.erase(0, place);
}

uint64_t WireMessage::size() const {
  uint64_t size = rest_.size();
  for (const Part& part : parts_) size += part.bytes.size() + bytes_of_values(part.values);
  return size;
}

void WireMessage::write(Context& context, const WireSink& sink) const {
  for (const Part& part : parts_) {
    sink(part.bytes.data(), part.bytes.size());
    if (part.values) visit_values(context, part.values, sink);
  }
  sink(rest_.data(), rest_.size());
}

}  // namespace crema
