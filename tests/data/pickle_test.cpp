#include "data/convert/pickle.h"

#include "fixtures.h"
#include "pickles.h"

namespace crema::tests {
namespace pickle_test {

// Pickled by Python 3 and NumPy; those of protocols 2 and 3 have keys of bytes.
TEST(Pickle, ReadsWhatPythonWrites) {
  for (const int protocol : {2, 3, 4, 5}) {
    SCOPED_TRACE(protocol);
    const Pickle pickle(cat(CREMA_TEST_DATA, "/goldens/pickles/protocol_", protocol));
    EXPECT_EQ(pickle.integers("labels"), (std::vector<int64_t>{3, 0, 9}));
    const Pickle::Bytes data = pickle.bytes("data");
    EXPECT_EQ(data.shape, (Shape{3, 3072}));
    int wrong = 0;
    for (int i = 0; i < 3 * 3072; ++i) {
      const int k = i % 3072, value = (7 * (i / 3072) + k * k) % 251;
      wrong += static_cast<unsigned char>(data.values[static_cast<size_t>(i)]) != value;
    }
    EXPECT_EQ(wrong, 0);
  }
}

std::string small() {
  return python2_dict({{"batch_label", python2_text("testing batch 1 of 1")},
                       {"labels", python2_list({6, 0})},
                       {"data", python2_array(2, 3,
                                              std::string("\x00\x80\xff"
                                                          "abc",
                                                          6))}});
}

TEST(Pickle, ReadsWhatPython2Writes) {
  const Folder folder;
  folder.write("p", small());
  const Pickle pickle(folder.file("p"));
  EXPECT_EQ(pickle.integers("labels"), (std::vector<int64_t>{6, 0}));
  const Pickle::Bytes data = pickle.bytes("data");
  EXPECT_EQ(data.shape, (Shape{2, 3}));
  EXPECT_EQ(data.values, std::string("\x00\x80\xff"
                                     "abc",
                                     6));
}

struct Wrong {
  const char* name;
  std::string content;
  const char* key;  // of the array that is asked for
  const char* message;
};

TEST(Pickle, SaysWhatIsWrong) {
  const std::string array = python2_array(2, 3, "abcdef");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = array;
    changed.replace(changed.find(from), from.size(), to);
    return python2_dict({{"data", changed}});
  };
  const auto data = [](const std::string& value) { return python2_dict({{"data", value}}); };
  const std::string start = "\x80\x02";
  std::string many = start + "}(";
  for (int i = 0; i < (1 << 22); ++i) many.push_back('N');
  const std::vector<Wrong> rows = {
      {"empty", "", "data", "p: byte 0: a pickle of protocol 2 or newer begins with 0x80"},
      {"text", "(dp0\nS'data'\n", "data", "begins with 0x80"},
      {"old", "\x80\x01}.", "data", "its protocol is 1, but 2 to 5 are read"},
      {"code", start + "}P.", "data", "p: byte 3: the instruction 0x50 is none"},
      {"cut",
       start + "}(U\x09"
               "dat",
       "data", "the file ends after 3 of 9 bytes"},
      {"no_end", start + "}", "data", "the file ends after 0 of 1 bytes"},
      {"stack", start + ".", "data", "a value is missing"},
      {"mark", start + "}u.", "data", "the beginning of a list is missing"},
      {"odd", start + "}(Nu.", "data", "a key has no value"},
      {"memo", start + "h\x05.", "data", "no value has the number 5"},
      {"call", start + "})R.", "data", "a call needs a function and a tuple"},
      {"set_state", start + "}Nb.", "data", "no called function's result to extend"},
      {"many", many, "data", "there are more than 4194304 values"},
      {"list", start + "].", "data", "the pickle is no dict"},
      {"key", small(), "dta", "has no \"dta\"; its keys are \"batch_label\", \"labels\", \"data\""},
      {"no_array", small(), "labels", "\"labels\" is no NumPy array"},
      {"other_call", data("cos\nsystem\n" + python2_text("rm") + "\x85R"), "data",
       "\"data\" is no NumPy array"},
      {"type", with("u1", "f4"), "data", "is an array of another type than uint8"},
      {"order", with("\x89", "\x88"), "data", "is stored column by column"},
      {"shape", with("M\x03", "M\x04"), "data", "\"data\" is 2x4 but has 6 bytes"},
      {"values", data(array.substr(0, array.size() - 8 - 2) + "Ntb"), "data", "are no bytes"},
  };
  const Folder folder;
  for (const Wrong& row : rows) {
    SCOPED_TRACE(row.name);
    folder.write("p", row.content);
    expect_part(error_of([&] { Pickle(folder.file("p")).bytes(row.key); }), row.message);
  }
  folder.write("p", small());
  expect_part(error_of([&] { Pickle(folder.file("p")).integers("data"); }), "\"data\" is no list");
  folder.write("p", data("](K\x01Ne"));
  expect_part(error_of([&] { Pickle(folder.file("p")).integers("data"); }),
              "item 1 of \"data\" is no integer");
}

// Cut anywhere, it is an Error; with any byte changed, an Error or something else that can be read.
TEST(Pickle, DamageIsAnErrorAtMost) {
  const Folder folder;
  const std::string whole = small();
  const auto read = [&](const std::string& content) {
    folder.write("p", content);
    try {
      const Pickle pickle(folder.file("p"));
      pickle.bytes("data");
      pickle.integers("labels");
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  for (size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(read(whole.substr(0, size)));
  int readable = 0;
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const int change : {1, 2, 4, 8, 16, 32, 64, 128, 255}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ change);
      readable += read(damaged);
    }
  }
  EXPECT_GT(readable, 0);
}

}  // namespace pickle_test
}  // namespace crema::tests
