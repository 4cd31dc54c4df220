// Safetensors files: values of every supported type, and messages about damaged ones.
#include "net/weights/safetensors.h"

#include <cstring>

#include "support.h"

namespace crema::tests {
namespace safetensors_test {

std::string file_of(const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + data;
}

template <typename T>
std::string bytes_of(std::initializer_list<T> values) {
  return {reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(T)};
}

TEST(Safetensors, ReadsEveryType) {
  const struct {
    const char* dtype;
    std::string data;
  } rows[] = {{"F32", bytes_of<float>({1.5f, -2})},
              {"F64", bytes_of<double>({1.5, -2})},
              {"F16", bytes_of<uint16_t>({0x3e00, 0xc000})},
              {"BF16", bytes_of<uint16_t>({0x3fc0, 0xc000})}};
  const Folder folder;
  for (const auto& row : rows) {
    folder.write("w",
                 file_of(cat("{\"__metadata__\":{\"format\":\"pt\"},\"a\":{\"dtype\":\"", row.dtype,
                             "\",\"shape\":[2,1],\"data_offsets\":[0,", row.data.size(), "]}}"),
                         row.data));
    const Safetensors file(folder.file("w"));
    ASSERT_EQ(file.entries().size(), 1u) << row.dtype;
    EXPECT_EQ(file.entries().at("a").shape, (Shape{2, 1})) << row.dtype;
    EXPECT_EQ(file.values("a"), (std::vector<float>{1.5f, -2})) << row.dtype;
  }
  folder.write("w", file_of(R"({"n":{"dtype":"I64","shape":[],"data_offsets":[0,8]}})",
                            bytes_of<int64_t>({7})));
  EXPECT_EQ(Safetensors(folder.file("w")).values("n"), std::vector<float>{7});
}

TEST(Safetensors, SaysWhatIsDamaged) {
  const std::string eight(8, '\1');
  const struct {
    std::string bytes, message;
  } rows[] = {
      {"short", "has 5 bytes, too few for a header"},
      {std::string(8, '\xff'), "the header would take 18446744073709551615 bytes"},
      {file_of("{}", "").substr(0, 9), "the header would take 2 bytes, but the file has 9"},
      {file_of("{\"a\":", eight), "the header is not JSON"},
      {file_of("[]", eight), "the header is not JSON"},
      {file_of(R"({"a":{"dtype":"F32","shape":[2]}})", eight),
       "tensor \"a\": expected dtype, shape and two data_offsets"},
      {file_of(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", eight),
       "tensor \"a\": expected dtype, shape and two data_offsets"},
      {file_of(R"({"a":{"dtype":"F31","shape":[2],"data_offsets":[0,8]}})", eight),
       "tensor \"a\": unknown dtype F31"},
      {file_of(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", eight),
       "tensor \"a\": data_offsets span 8 bytes, but F32 of shape 3 takes 12"},
      {file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", eight),
       "tensor \"a\": data_offsets 8 to 0 are no range"},
      {file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})", eight),
       "tensor \"a\": ends at byte"},
      {file_of(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})",
               eight),
       "tensor \"a\": its shape is too large"},
      {file_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
               R"("b":{"dtype":"F16","shape":[2],"data_offsets":[2,6]}})",
               eight),
       "tensor \"b\": begins at byte 2 of the data, inside \"a\""},
  };
  const Folder folder;
  for (const auto& row : rows) {
    folder.write("w", row.bytes);
    try {
      const Safetensors file(folder.file("w"));
      ADD_FAILURE() << "accepted; expected: " << row.message;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(row.message), std::string::npos) << error.what();
    }
  }
}

}  // namespace safetensors_test
}  // namespace crema::tests
