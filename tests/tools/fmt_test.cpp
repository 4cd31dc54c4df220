// `crema fmt`: which files it changes, and what it says of those that it cannot read.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"
#include "tools/program.h"

namespace crema::tests {
namespace fmt_test {

const std::string kLoose = "layer{name:\"a\"\n}\n", kForm = "layer {\n  name: \"a\"\n}\n";

TEST(Fmt, ChangesTheFilesOfAFolder) {
  const Folder folder;
  std::filesystem::create_directories(folder.file("nets/deep/.hidden"));
  for (const char* name :
       {"nets/a.prototxt", "nets/deep/b.pbtxt", "nets/deep/c.txt", "nets/deep/.hidden/d.prototxt"})
    write_file_atomically(folder.file(name), kLoose);
  write_file_atomically(folder.file("nets/e.prototxt"), kForm);
  const Outcome checked = run(folder, "crema fmt -check nets");
  EXPECT_EQ(checked.code, 1);
  EXPECT_EQ(checked.out, "nets/a.prototxt\nnets/deep/b.pbtxt\n");
  EXPECT_EQ(read_text(folder.file("nets/a.prototxt")), kLoose);
  const Outcome changed = run(folder, "crema fmt nets");
  EXPECT_EQ(changed.code, 0) << changed.err;
  EXPECT_EQ(changed.messages(),
            (std::vector<std::string>{"Formatted nets/a.prototxt", "Formatted nets/deep/b.pbtxt"}));
  EXPECT_EQ(read_text(folder.file("nets/a.prototxt")), kForm);
  EXPECT_EQ(read_text(folder.file("nets/deep/b.pbtxt")), kForm);
  EXPECT_EQ(read_text(folder.file("nets/deep/c.txt")), kLoose);
  EXPECT_EQ(read_text(folder.file("nets/deep/.hidden/d.prototxt")), kLoose);
  EXPECT_EQ(run(folder, "crema fmt -check nets").code, 0);
}

TEST(Fmt, KeepsPermissions) {
  const Folder folder;
  const std::filesystem::path file = folder.file("a.prototxt");
  write_file_atomically(file, kLoose);
  const auto mode = std::filesystem::perms::owner_all | std::filesystem::perms::others_read;
  std::filesystem::permissions(file, mode);
  EXPECT_EQ(run(folder, "crema fmt a.prototxt").code, 0);
  EXPECT_EQ(read_text(file), kForm);
  EXPECT_EQ(std::filesystem::status(file).permissions(), mode);
}

TEST(Fmt, WritesThroughLinks) {
  const Folder folder;
  std::filesystem::create_directories(folder.file("nets"));
  write_file_atomically(folder.file("a.prototxt"), kLoose);
  std::filesystem::create_symlink("../a.prototxt", folder.file("nets/link.prototxt"));
  std::filesystem::create_directory_symlink("../nets", folder.file("nets/circle"));
  EXPECT_EQ(run(folder, "crema fmt nets").code, 0);
  EXPECT_EQ(read_text(folder.file("a.prototxt")), kForm);
  EXPECT_TRUE(std::filesystem::is_symlink(folder.file("nets/link.prototxt")));
}

TEST(Fmt, ReadsTheStandardInput) {
  const Folder folder;
  const Outcome result = run_shell(folder, "printf 'layer{name:\"a\"\\n}' | $TOOLS/crema fmt -");
  EXPECT_EQ(result.out, kForm) << result.err;
  EXPECT_EQ(run_shell(folder, "printf 'a:1' | $TOOLS/crema fmt -check -").code, 1);
  EXPECT_EQ(run_shell(folder, "printf 'a: 1\\n' | $TOOLS/crema fmt -check -").code, 0);
}

TEST(Fmt, LeavesFilesWithMistakes) {
  const Folder folder;
  write_file_atomically(folder.file("bad.prototxt"), "layer {\n  name:\n}\n");
  write_file_atomically(folder.file("good.prototxt"), kLoose);
  std::filesystem::create_directory(folder.file("empty"));
  const Outcome result = run(folder, "crema fmt bad.prototxt absent.prototxt good.prototxt");
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.errors(),
            (std::vector<std::string>{"bad.prototxt:2:7: expected a value after \":\"",
                                      "absent.prototxt: cannot open: No such file or directory"}));
  EXPECT_EQ(read_text(folder.file("bad.prototxt")), "layer {\n  name:\n}\n");
  EXPECT_EQ(read_text(folder.file("good.prototxt")), kForm);
  EXPECT_EQ(
      run(folder, "crema fmt empty").errors(),
      std::vector<std::string>{"empty: no .prototxt or .pbtxt is in this folder or below it"});
}

}  // namespace fmt_test
}  // namespace crema::tests
