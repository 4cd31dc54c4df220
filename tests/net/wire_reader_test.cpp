// Weight files of Caffe, of its older generations and of forks; and files that are damaged.
#include "net/weights/wire_reader.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/files.h"
#include "proto/net.pb.h"

namespace crema {
namespace wire_reader_test {

const std::string kFolder = CREMA_TEST_DATA "/goldens/legacy/";

StoredNet parse(const std::string& bytes) {
  return parse_caffemodel(bytes.data(), bytes.size(), "w");
}

std::string message_of(const std::string& bytes) {
  try {
    parse(bytes);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

// Building blocks of the wire format.
std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}
std::string number(int field, uint64_t value) { return varint(field << 3) + varint(value); }
std::string part(int field, const std::string& bytes) {
  return varint(field << 3 | 2) + varint(bytes.size()) + bytes;
}
template <typename T>
std::string raw(std::initializer_list<T> values) {
  std::string out(values.size() * sizeof(T), '\0');
  if (values.size() > 0) std::memcpy(out.data(), values.begin(), out.size());
  return out;
}
std::string shape(std::initializer_list<uint64_t> dims) {
  std::string out;
  for (const uint64_t dim : dims) out += varint(dim);
  return part(7, part(1, out));
}
// A net of one layer "a" with one blob.
std::string net_with(const std::string& blob) {
  return part(100, part(1, "a") + part(2, "T") + part(7, blob));
}

TEST(WireReader, ReadsAllGenerationsAlike) {
  const StoredNet today = read_caffemodel(kFolder + "v2.caffemodel");
  EXPECT_EQ(today.name, "v1_deploy");
  for (const char* old : {"v0", "v1", "v0.upgraded", "v1.upgraded"}) {
    SCOPED_TRACE(old);
    const StoredNet net = read_caffemodel(kFolder + old + ".caffemodel");
    size_t with_blobs = 0;
    for (const StoredLayer& layer : net.layers) {
      if (layer.blobs.empty()) continue;
      ++with_blobs;
      const StoredLayer* same = nullptr;
      for (const StoredLayer& other : today.layers) {
        if (other.name == layer.name) same = &other;
      }
      ASSERT_TRUE(same) << layer.name;
      EXPECT_EQ(layer.type, same->type);
      ASSERT_EQ(layer.blobs.size(), same->blobs.size());
      for (size_t i = 0; i < layer.blobs.size(); ++i) {
        EXPECT_TRUE(layer.blobs[i].legacy_axes);
        EXPECT_FALSE(same->blobs[i].legacy_axes);
        EXPECT_EQ(layer.blobs[i].shape.size(), 4u);
        EXPECT_EQ(layer.blobs[i].data, same->blobs[i].data);
      }
    }
    EXPECT_EQ(with_blobs, 2u);
  }
}

TEST(WireReader, ReadsWhatProtobufReads) {
  const std::string bytes = read_file(kFolder + "v2.caffemodel");
  NetParameter net;
  ASSERT_TRUE(net.ParseFromString(bytes));
  const StoredNet stored = parse(bytes);
  ASSERT_EQ(static_cast<int>(stored.layers.size()), net.layer_size());
  for (int i = 0; i < net.layer_size(); ++i) {
    EXPECT_EQ(stored.layers[i].name, net.layer(i).name());
    EXPECT_EQ(stored.layers[i].type, net.layer(i).type());
    ASSERT_EQ(static_cast<int>(stored.layers[i].blobs.size()), net.layer(i).blobs_size());
    for (int j = 0; j < net.layer(i).blobs_size(); ++j) {
      const BlobProto& blob = net.layer(i).blobs(j);
      const StoredBlob& ours = stored.layers[i].blobs[j];
      EXPECT_EQ(ours.data, std::vector<float>(blob.data().begin(), blob.data().end()));
      EXPECT_EQ(ours.shape,
                std::vector<int64_t>(blob.shape().dim().begin(), blob.shape().dim().end()));
    }
  }
}

TEST(WireReader, ReadsEveryFormOfNumbers) {
  const std::vector<float> expected = {1.5f, -2.0f};
  const std::string two = shape({2});
  const std::string single = varint(5 << 3 | 5) + raw({1.5f}) + varint(5 << 3 | 5) + raw({-2.0f});
  const std::string forms[] = {
      two + part(5, raw({1.5f, -2.0f})),                   // packed
      two + single,                                        // one by one
      two + part(5, raw({1.5f})) + part(5, raw({-2.0f})),  // in pieces
      two + part(8, raw({1.5, -2.0})),                     // double
      two + number(10, 1) + part(12, raw({1.5f, -2.0f})),  // a fork's raw bytes: float,
      two + number(10, 0) + part(12, raw({1.5, -2.0})),    // double
      two + number(10, 2) + part(12, raw<uint16_t>({0x3e00, 0xc000})),  // and half
      two + part(10, varint(0x3e00) + varint(0xc000)),  // halves as whole numbers, of another fork
      part(5, raw({1.5f, -2.0f})) + two + part(6, raw({9.0f})),  // gradients are passed over
      part(7, number(1, 1) + number(1, 2)) + part(5, raw({1.5f, -2.0f})),
  };
  for (const std::string& blob : forms) {
    EXPECT_EQ(parse(net_with(blob)).layers.at(0).blobs.at(0).data, expected);
  }
}

TEST(WireReader, ReadsHalfPrecisionExactly) {
  const StoredNet net =
      parse(net_with(shape({6}) + number(10, 2) +
                     part(12, raw<uint16_t>({0x0001, 0x8400, 0x7bff, 0xfc00, 0x8000, 0x3555}))));
  const std::vector<float>& data = net.layers[0].blobs[0].data;
  EXPECT_EQ(data[0], 1.0f / (1 << 24));
  EXPECT_EQ(data[1], -1.0f / (1 << 14));
  EXPECT_EQ(data[2], 65504.0f);
  EXPECT_EQ(data[3], -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::signbit(data[4]));
  EXPECT_EQ(data[5], 0.333251953125f);
}

TEST(WireReader, ReadsShapes) {
  const StoredBlob scalar = parse(net_with(part(7, "") + part(5, raw({3.0f})))).layers[0].blobs[0];
  EXPECT_TRUE(scalar.shape.empty());
  const StoredBlob legacy = parse(net_with(number(1, 1) + number(2, 1) + number(3, 1) +
                                           number(4, 2) + part(5, raw({3.0f, 4.0f}))))
                                .layers[0]
                                .blobs[0];
  EXPECT_TRUE(legacy.legacy_axes);
  EXPECT_EQ(legacy.shape, (std::vector<int64_t>{1, 1, 1, 2}));
  const StoredBlob bare = parse(net_with(part(5, raw({3.0f, 4.0f})))).layers[0].blobs[0];
  EXPECT_EQ(bare.shape, (std::vector<int64_t>{2}));
}

// num, channels, length, height, width, data, diff.
TEST(WireReader, ReadsTheFirstFilesOfC3D) {
  const std::string blob = number(1, 1) + number(2, 2) + number(3, 2) + number(4, 1) +
                           number(5, 1) + part(6, raw({1.0f, 2.0f, 3.0f, 4.0f})) +
                           part(7, raw({9.0f, 9.0f, 9.0f, 9.0f}));
  const StoredNet net =
      parse(part(2, part(4, "conv1a") + number(5, 30) + part(6, blob)) +
            part(2, part(4, "pool1") + number(5, 31)) + part(2, part(4, "relu1") + number(5, 18)));
  ASSERT_EQ(net.layers.size(), 3u);
  EXPECT_EQ(net.layers[0].type, "Convolution");
  EXPECT_EQ(net.layers[1].type, "Pooling");
  EXPECT_EQ(net.layers[2].type, "ReLU");
  const StoredBlob& stored = net.layers[0].blobs.at(0);
  EXPECT_EQ(stored.shape, (std::vector<int64_t>{1, 2, 2, 1, 1}));
  EXPECT_EQ(stored.data, (std::vector<float>{1, 2, 3, 4}));
  EXPECT_TRUE(stored.legacy_axes);
  EXPECT_NE(message_of(net_with(number(1, 3) + number(5, 1) + part(6, raw({1.0f}))))
                .find("a blob of shape 3x0x0x0x1 should hold 0 values, it holds 1"),
            std::string::npos);
}

TEST(WireReader, PassesOverWhatForksAdd) {
  const std::string group = varint(7 << 3 | 3) + number(1, 5) + varint(7 << 3 | 4);
  const std::string blob = part(5, raw({1.0f}));
  const std::string net =
      part(1, "n") + number(11, 2) + group + part(145, "??") + varint(20 << 3 | 1) + raw({1.0}) +
      part(100,
           part(1, "a") + number(145, 1) + part(149, "x") + group + number(2, 9) + part(7, blob));
  EXPECT_EQ(parse(net).layers.at(0).blobs.size(), 1u);
}

TEST(WireReader, NamesOldTypesAsToday) {
  const std::string net = part(2, part(4, "a") + number(5, 21)) +
                          part(2, part(4, "b") + number(5, 999999)) +
                          part(2, part(1, part(1, "c") + part(2, "innerproduct"))) +
                          part(2, part(1, part(1, "d") + part(2, "maxouts")));
  const StoredNet stored = parse(net);
  ASSERT_EQ(stored.layers.size(), 4u);
  EXPECT_EQ(stored.layers[0].type, "SoftmaxWithLoss");
  EXPECT_EQ(stored.layers[1].type, "V1 type 999999");
  EXPECT_EQ(stored.layers[2].type, "InnerProduct");
  EXPECT_EQ(stored.layers[2].name, "c");
  EXPECT_EQ(stored.layers[3].type, "maxouts");
}

TEST(WireReader, SaysWhatIsWrong) {
  const auto expect = [](const std::string& bytes, const std::string& what) {
    EXPECT_NE(message_of(bytes).find(what), std::string::npos) << message_of(bytes);
  };
  expect("", "w: is empty");
  expect("<!DOCTYPE html>", "w: is a web page");
  expect("version https://git-lfs.github.com/spec/v1\n", "w: is a Git LFS pointer");
  expect("\x89HDF\r\n", "w: is an HDF5 file");
  expect("name: \"lenet\"", "w: is a net description in text");
  expect(net_with(shape({3, 2}) + part(5, raw({1.0f}))),
         "w: layer \"a\": blob 0: byte 23: a blob of shape 3x2 should hold 6 values, it holds 1");
  expect(net_with(shape({1ull << 40, 1ull << 40}) + part(5, "")), "an impossible shape");
  expect(net_with(shape({1ull << 63, 2}) + part(5, raw({1.0f}))), "an impossible shape");
  expect(net_with(shape({1ull << 32, 1ull << 32}) + part(5, "")), "an impossible shape");
  expect(net_with(number(1, 65536) + number(2, 65536) + number(3, 65536) + number(4, 65536)),
         "an impossible shape");
  expect(net_with(shape({1ull << 40}) + part(5, raw({1.0f}))),
         "a blob of shape 1099511627776 should hold 1099511627776 values, it holds 1");
  expect(net_with(part(7, part(1, std::string(33, '\1'))) + part(5, raw({1.0f}))),
         "a blob has 33 axes, but may have 32");
  expect(net_with(shape({2}) + part(5, raw({1.0f, 2.0f})) + part(8, raw({1.0, 2.0}))),
         "a blob holds 2 floats and 2 doubles, but a blob has only one kind");
  expect(net_with(shape({static_cast<uint64_t>(-1)})), "an impossible shape");
  expect(net_with(shape({2}) + part(14, "abcdefgh")),
         "w: layer \"a\": blob 0: the values of a blob are in field 14, as only the program that");
  expect(net_with(part(5, "abc")), "a list of numbers is cut off");
  expect(net_with(number(10, 7) + part(12, "abcd")), "raw values of an unknown kind");
  expect(net_with(part(5, raw({1.0f}))).substr(0, 12),
         "byte 3: a part of 14 bytes starts here, 9 are left");
  expect(varint(1 << 3 | 2) + varint(~0ull) + "abc", "bytes starts here, 3 are left");
  expect(std::string(20, '\xFF'), "a number is longer than ten bytes");
  expect(number(0, 1), "this is not a field");
  expect(varint(9 << 3 | 4), "a group ends that did not begin");
  expect(std::string(500, static_cast<char>(9 << 3 | 3)), "groups are nested too deeply");
  EXPECT_THROW(read_caffemodel(kFolder + "no_such.caffemodel"), Error);
  EXPECT_THROW(read_caffemodel(kFolder), Error);
}

// A damaged file is an Error or other numbers, never a crash and never much memory.
TEST(WireReader, SurvivesDamage) {
  for (const char* name : {"v0.caffemodel", "v1.caffemodel", "v2.caffemodel"}) {
    const std::string bytes = read_file(kFolder + name);
    for (size_t i = 0; i < bytes.size(); i += i < 600 ? 1 : 97) {
      message_of(bytes.substr(0, i));
      for (int bit = 0; bit < 8; ++bit) {
        std::string damaged = bytes;
        damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
        message_of(damaged);
      }
    }
  }
}

}  // namespace wire_reader_test
}  // namespace crema
