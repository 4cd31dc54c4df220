#include "base/files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "base/error.h"

namespace crema {
namespace {

class FilesTest : public testing::Test {
 protected:
  FilesTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "crema_files_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~FilesTest() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  int entries() const {
    return static_cast<int>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }
  template <typename Action>
  static std::string message_of(const Action& action) {
    try {
      action();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  std::string folder_;
};

TEST_F(FilesTest, WritesWholeFiles) {
  const std::string content("a\0b\n", 4);
  write_file_atomically(path("f"), content);
  EXPECT_EQ(read_file(path("f")), content);
  write_file_atomically(path("f"), "");
  EXPECT_EQ(read_file(path("f")), "");
  EXPECT_EQ(entries(), 1);
}

TEST_F(FilesTest, ReadNamesFileAndReason) {
  EXPECT_NE(message_of([&] { read_file(path("none")); }).find("none"), std::string::npos);
  EXPECT_NE(message_of([&] { read_file(path("none")); }).find("No such file"), std::string::npos);
  EXPECT_NE(message_of([&] { read_file(folder_); }), "no error");
}

TEST_F(FilesTest, WithoutCommitNothingChanges) {
  write_file_atomically(path("f"), "old");
  {
    AtomicFile file(path("f"));
    file.write("new", 3);
    EXPECT_EQ(read_file(path("f")), "old");
    EXPECT_EQ(entries(), 2);
  }
  EXPECT_EQ(read_file(path("f")), "old");
  EXPECT_EQ(entries(), 1);
}

TEST_F(FilesTest, CommitReplacesAtOnce) {
  write_file_atomically(path("f"), "old");
  AtomicFile file(path("f"));
  file.write("ne", 2);
  file.write("w", 1);
  file.commit();
  EXPECT_EQ(read_file(path("f")), "new");
  EXPECT_EQ(entries(), 1);
}

// A full disk, played by the process's limit on file sizes.
TEST_F(FilesTest, FailedWriteLeavesTheOldFile) {
  write_file_atomically(path("f"), "old");
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1000, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string message =
      message_of([&] { write_file_atomically(path("f"), std::string(5000, 'x')); });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_NE(message.find(path("f") + ": cannot write: "), std::string::npos) << message;
  EXPECT_EQ(read_file(path("f")), "old");
  EXPECT_EQ(entries(), 1);
}

TEST_F(FilesTest, FolderThatIsNotThere) {
  const std::string message = message_of([&] { write_file_atomically(path("no/f"), "x"); });
  EXPECT_NE(message.find("no/f: cannot write: No such file"), std::string::npos) << message;
}

TEST_F(FilesTest, GoalThatIsAFolder) {
  std::filesystem::create_directory(path("goal"));
  EXPECT_NE(
      message_of([&] { write_file_atomically(path("goal"), "x"); }).find("goal: cannot write"),
      std::string::npos);
  EXPECT_EQ(entries(), 1);
}

TEST_F(FilesTest, KindsAndFolders) {
  write_file_atomically(path("f"), "x");
  EXPECT_TRUE(file_exists(path("f")));
  EXPECT_FALSE(file_exists(path("g")));
  EXPECT_TRUE(folder_exists(folder_));
  EXPECT_FALSE(folder_exists(path("f")));
  EXPECT_EQ(folder_of("a/b/c.txt"), "a/b");
  EXPECT_EQ(folder_of("c.txt"), ".");
}

TEST_F(FilesTest, FindsFilesBesideTheNamingOne) {
  write_file_atomically(path("list.txt"), "x");
  EXPECT_EQ(find_file("list.txt", folder_), path("list.txt"));
  EXPECT_EQ(find_file("not_there.txt", folder_), "not_there.txt");
  EXPECT_EQ(find_file(path("list.txt"), "/nowhere"), path("list.txt"));
  EXPECT_EQ(find_file("", folder_), "");
}

}  // namespace
}  // namespace crema
