// Files of torch.save: tensors of every supported type and layout, and messages about damaged and
// hostile ones.
#include "net/weights/torch_file.h"

#include <cstring>

#include "net/weights/zip_file.h"
#include "support.h"

namespace crema::tests {
namespace torch_file_test {

std::string golden_file(const char* name) { return cat(CREMA_TEST_DATA, "/goldens/torch/", name); }

#define NEEDS_LIBZIP() \
  if (!ZipFile::available()) GTEST_SKIP() << "this build has no libzip"

// The content of state_dict.pth and legacy.pth, from tests/goldens/README.md.
void expect_tensors(const std::string& path) {
  const struct {
    const char *name, *dtype;
    Shape shape;
    std::vector<float> values;
  } rows[] = {{"float", "F32", {2}, {1.5f, -2}},
              {"half", "F16", {2}, {1.5f, -2}},
              {"brain", "BF16", {2}, {1.5f, -2}},
              {"double", "F64", {2}, {1.5f, -2}},
              {"long", "I64", {}, {7}},
              {"turned", "F32", {6, 4}, {0, 6, 12, 18, 1, 7,  13, 19, 2, 8,  14, 20,
                                         3, 9, 15, 21, 4, 10, 16, 22, 5, 11, 17, 23}},
              {"part", "F32", {2, 3}, {8, 9, 10, 14, 15, 16}},
              {"strided", "F32", {2, 2}, {0, 3, 12, 15}},
              {"empty", "F32", {0, 3}, {}},
              {"parameter", "F32", {2}, {3, 4}}};
  const std::unique_ptr<TensorFile> file = open_tensor_file(path);
  EXPECT_EQ(file->entries().size(), std::size(rows));
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    ASSERT_EQ(file->entries().count(row.name), 1u);
    EXPECT_EQ(file->entries().at(row.name).dtype, row.dtype);
    EXPECT_EQ(file->entries().at(row.name).shape, row.shape);
    EXPECT_EQ(file->values(row.name), row.values);
  }
}

TEST(TorchFile, ReadsEveryTypeAndLayout) {
  NEEDS_LIBZIP();
  expect_tensors(golden_file("state_dict.pth"));
}

TEST(TorchFile, ReadsTheFormBefore16) { expect_tensors(golden_file("legacy.pth")); }

TEST(TorchFile, FindsTheStateDictOfACheckpoint) {
  NEEDS_LIBZIP();
  const TorchFile file(golden_file("checkpoint.pth"));
  EXPECT_EQ(file.entries().size(), 9u);  // without "module." of DataParallel, and the optimizer's
  EXPECT_EQ(file.values("fc.bias"), (std::vector<float>{1, 2}));
}

std::string number(uint64_t value, int bytes = 8) {
  std::string text = bytes == 8 ? "\x8a\x08" : "";
  for (int i = 0; i < bytes; ++i) text.push_back(static_cast<char>(value >> (8 * i)));
  return text;
}

std::string word(const std::string& text) { return "X" + number(text.size(), 4) + text; }

std::string tuple(const std::vector<uint64_t>& numbers) {
  std::string text = "(";
  for (const uint64_t value : numbers) text += number(value);
  return text + "t";
}

// One tensor "a", unless a row says otherwise 2x3 floats of a storage of six, in the form before 1.6.
struct Written {
  std::string type = "FloatStorage", call = "ctorch._utils\n_rebuild_tensor_v2\n", view, root;
  uint64_t claimed = 6, offset = 0, written = 6, bytes = 24;
  std::vector<uint64_t> dims = {2, 3}, strides = {3, 1};
  std::string machine = "}" + word("little_endian") + "\x88s", version = "M\xe9\x03";
  std::string key = "0";

  std::string tensor() const {
    return call + "((" + word("storage") + "ctorch\n" + type + "\n" + word("0") + word("cpu") +
           number(claimed) + view + "tQ" + number(offset) + tuple(dims) + tuple(strides) +
           "\x89"
           "ccollections\nOrderedDict\n)RtR";
  }
  std::string text() const {
    const std::string begin = "\x80\x02",
                      object = root.empty() ? "}" + word("a") + tensor() + "s" : root;
    const std::string keys = key.empty() ? "]" : "](" + word(key) + "e";
    std::string file(kLegacyMagic);
    for (const std::string& pickle : {version, machine, object, keys}) file += begin + pickle + ".";
    file += number(written, 8).substr(2);
    for (uint64_t i = 0; i < bytes; ++i) file.push_back(static_cast<char>(i));
    return file;
  }
};

template <typename Change>
std::string written(Change change) {
  Written file;
  change(file);
  return file.text();
}

// As PyTorch named them in 2017, when vgg16-397923af.pth was saved.
TEST(TorchFile, ReadsOldCalls) {
  const Folder folder;
  Written old;
  old.call = "ctorch._utils\n_rebuild_tensor\n";
  Written parameter;
  parameter.root = "}" + word("a") + "ctorch.nn.parameter\nParameter\n(" + old.tensor() + "\x88tRs";
  for (const Written& file : {old, parameter}) {
    folder.write("w.pth", file.text());
    const std::vector<float> values = open_tensor_file(folder.file("w.pth"))->values("a");
    ASSERT_EQ(values.size(), 6u);
    EXPECT_EQ(std::memcmp(values.data(), file.text().data() + file.text().size() - 24, 24), 0);
  }
}

TEST(TorchFile, SaysWhatIsDamaged) {
  using W = Written;
  const uint64_t huge = uint64_t{1} << 62;
  const struct {
    const char* message;
    std::string content;
  } rows[] = {
      {"the pickle names os.system, which a dict of tensors",
       written([](W& w) { w.root = "cos\nsystem\n(" + word("true") + "tR"; })},
      {"the pickle names torch.nn.modules.linear.Linear, which",
       written([](W& w) { w.root = "ctorch.nn.modules.linear\nLinear\n)\x81"; })},
      {"the pickle names builtins.\\033[2J, which",
       written([](W& w) { w.call = "cbuiltins\n\033[2J\n"; })},
      {"w.pth: holds no dict with names", written([](W& w) { w.root = "]", w.key = ""; })},
      {"w.pth: holds no dict with names", written([](W& w) { w.root = "}K\1K\2s", w.key = ""; })},
      {"w.pth: \"epoch\" is no tensor, and there is no \"state_dict\"",
       written([](W& w) { w.root = "}" + word("epoch") + "K\1s", w.key = ""; })},
      {"tensor \"b\": is no tensor", written([](W& w) {
         w.root = "}" + word("model") + "}" + word("b") + "K\1ss" + word("c") + w.tensor() + "s";
       })},
      {"tensor \"a\": of shape 2x4 has more values than its storage, which has 6",
       written([](W& w) {
         w.dims = {2, 4};
       })},
      {"tensor \"a\": of shape 1000x1000 has more values", written([](W& w) {
         w.dims = {1000, 1000}, w.strides = {0, 0};
       })},
      {"tensor \"a\": of shape 4294967296x4294967296 has more values", written([&](W& w) {
         w.dims = {huge >> 30, huge >> 30};
       })},
      {"tensor \"a\": with offset 1 leaves its storage of 6", written([](W& w) { w.offset = 1; })},
      {"tensor \"a\": with offset 0 leaves its storage of 6", written([&](W& w) {
         w.strides = {huge, huge};
       })},
      {"expected an offset, a shape of at most 32 axes and as many strides",
       written([](W& w) { w.strides = {1}; })},
      {"expected an offset, a shape of at most 32 axes",
       written([](W& w) { w.dims = w.strides = std::vector<uint64_t>(33, 1); })},
      {"expected an offset, a shape", written([](W& w) {
         w.dims = {2, uint64_t(-3)};
       })},
      {"its storage 0 has 6 values; expected 7", written([](W& w) { w.claimed = 7; })},
      {"its storage has 4611686018427387904 values", written([&](W& w) { w.claimed = huge; })},
      {"expected a storage of numbers, got Size", written([](W& w) { w.type = "Size"; })},
      {"its storage is a part of another one", written([](W& w) { w.view = "K\1"; })},
      {"storage 0: has 7 values at byte", written([](W& w) { w.written = 7; })},
      {"storage 0: has 18446744073709551615 values at byte",
       written([](W& w) { w.written = uint64_t(-1); })},
      {"storage 0: has 6 values at byte", written([](W& w) { w.bytes = 23; })},
      {"w.pth: storage 1: no tensor has it", written([](W& w) { w.key = "1"; })},
      {"its version is not 1001", written([](W& w) { w.version = "K\1"; })},
      {"highest byte first", written([](W& w) { w.machine = "}"; })},
      {"w.pth: byte 54: the file ends inside a name", Written().text().substr(0, 60)},
  };
  const Folder folder;
  for (const auto& row : rows) {
    folder.write("w.pth", row.content);
    expect_part(error_of([&] { open_tensor_file(folder.file("w.pth")); }), row.message);
  }
  folder.write("w.pth", Written().text());
  EXPECT_EQ(open_tensor_file(folder.file("w.pth"))->entries().at("a").shape, (Shape{2, 3}));
  folder.write("w.pth", written([](W& w) { w.type = "IntStorage"; }));
  expect_part(error_of([&] { open_tensor_file(folder.file("w.pth"))->values("a"); }),
              "tensor \"a\": dtype I32; expected F32");
}

// The central directory of the fixture, changed.
TEST(TorchFile, SaysWhatIsDamagedInTheZip) {
  NEEDS_LIBZIP();
  const Folder folder;
  const std::string whole = read_file(golden_file("state_dict.pth"));
  const std::string pickle = "state_dict/data.pkl", storage = "state_dict/data/0";
  // The fields of an entry are before its name, the first time in front of its bytes, the second
  // time in the directory: method at 36, sizes at 26 and 22, position of the bytes at 4.
  const auto directory = [&](const std::string& name, size_t before, const std::string& bytes) {
    std::string changed = whole;
    const size_t at = changed.find(name, changed.find("PK\x01\x02"));
    return changed.replace(at - before, bytes.size(), bytes);
  };
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string changed = whole;
    for (size_t at = 0; (at = changed.find(from, at)) != std::string::npos; at += to.size())
      changed.replace(at, from.size(), to);
    return changed;
  };
  const std::string ends = "\xff\xff\xff\x7f";
  const struct {
    const char* message;
    std::string content;
  } rows[] = {
      {"w.pth: not a whole zip file", whole.substr(0, whole.size() - 30)},
      {"w.pth: not a whole zip file", whole.substr(0, 200)},
      {"w.pth: a zip file without a data.pkl", replaced("data.pkl", "data.plk")},
      {"state_dict/data/0: is compressed", directory(storage, 36, std::string("\x08\0", 2))},
      {"state_dict/data/0 would have 2147483647 bytes", directory(storage, 26, ends + ends)},
      {"tensor \"float\": state_dict/data/0 has 4 bytes, but 2 values of F32 take 8",
       directory(storage, 26, number(4, 4) + number(4, 4))},
      {"state_dict/data/0: ", directory(storage, 4, ends)},
      {"the file has no state_dict/data/0", replaced(storage, "state_dict/data/x")},
      {"byteorder: cannot be read whole", replaced("little", "litt1e")},
      {"data.pkl: cannot be read whole", replaced("_rebuild_tensor_v2", "_rebuild_tensor_v3")},
  };
  for (const auto& row : rows) {
    folder.write("w.pth", row.content);
    expect_part(error_of([&] {
                  const std::unique_ptr<TensorFile> file = open_tensor_file(folder.file("w.pth"));
                  for (const auto& entry : file->entries()) file->values(entry.first);
                }),
                row.message);
  }
}

}  // namespace torch_file_test
}  // namespace crema::tests
