#include "base/files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "write_failures.h"

namespace crema::tests {
namespace files_test {

class FilesTest : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.file(name); }
  size_t entries() const { return folder_.names().size(); }

  Folder folder_;
};

TEST_F(FilesTest, WritesWholeFiles) {
  const std::string content("a\0b\n", 4);
  write_file_atomically(path("f"), content);
  EXPECT_EQ(read_file(path("f")), content);
  write_file_atomically(path("f"), "");
  EXPECT_EQ(read_file(path("f")), "");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(FilesTest, ReadNamesFileAndReason) {
  const std::string message = error_of([&] { read_file(path("none")); });
  expect_part(message, "none");
  expect_part(message, "No such file");
  EXPECT_THROW(read_file(folder_.path()), Error);
}

TEST_F(FilesTest, ReadsRegularFilesOnly) {
  ASSERT_EQ(mkfifo(path("fifo").c_str(), 0600), 0);
  expect_part(error_of([&] { read_file(path("fifo")); }), "fifo: is a FIFO, not a regular file");
  expect_part(error_of([&] { read_file("/dev/urandom"); }), "is a device, not a regular file");
  expect_part(error_of([&] { read_file(folder_.path()); }), "is a folder, not a regular file");
  expect_part(error_of([&] { require_regular(path("fifo")); }), "is a FIFO");
  require_regular(path("none"));  // opening it reports the error
  // Its size is 0 for the system.
  EXPECT_NE(read_file("/proc/self/status"), "");
}

TEST_F(FilesTest, OnlyWhatIsAbsentDoesNotExist) {
  folder_.write("closed/file", "x");
  EXPECT_TRUE(file_exists(path("closed/file")));
  EXPECT_FALSE(file_exists(path("none")));
  EXPECT_FALSE(file_exists(path("closed/file/below")));
  EXPECT_FALSE(folder_exists(path("closed/file")));
  EXPECT_EQ(list_folder(path("closed")), std::vector<std::string>{"file"});
  EXPECT_TRUE(list_folder_if_exists(path("none")).empty());
  expect_part(error_of([&] { list_folder(path("none")); }),
              "none: cannot list this folder: No such");
  expect_part(error_of([&] { file_exists(path(std::string(5000, 'x'))); }),
              ": cannot tell whether it exists: File name too long");
  chmod(folder_.path().c_str(), 0755);
  const OtherUser other;
  for (const mode_t mode : {0000, 0333}) {  // neither; names can be reached, but not listed
    as_other_user(false);
    chmod(path("closed").c_str(), mode);
    as_other_user(true);
    if (mode == 0) {
      EXPECT_THROW(file_exists(path("closed/file")), FileError);
    } else {
      EXPECT_TRUE(file_exists(path("closed/file")));
    }
    EXPECT_THROW(list_folder_if_exists(path("closed")), FileError);
    if (mode == 0) {
      EXPECT_THROW(find_file("file", path("closed")), FileError);
    }
  }
  as_other_user(false);
  chmod(path("closed").c_str(), 0755);
}

TEST_F(FilesTest, NamesTheLimitOfSize) {
  folder_.write("large", std::string(3000, 'x'));
  EXPECT_EQ(read_file(path("large"), 3000).size(), 3000u);
  expect_part(error_of([&] { read_file(path("large"), 2048); }), "large: is larger than 2.0 KiB");
  // A file without a size before it is read.
  expect_part(error_of([&] { read_file("/proc/self/status", 10); }), "larger than 10 bytes");
  // A hole of 4 GiB takes no memory before it is refused.
  std::filesystem::resize_file(path("large"), uint64_t{1} << 32);
  expect_part(error_of([&] { read_file(path("large")); }), "larger than 2.0 GiB");
}

// As the shell hands over <(command).
TEST_F(FilesTest, ReadsPipesByTheirDescriptor) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write(ends[1], "net", 3), 3);
  close(ends[1]);
  EXPECT_EQ(read_file(cat("/dev/fd/", ends[0])), "net");
  close(ends[0]);
}

TEST_F(FilesTest, TextsBeginBehindTheirByteOrderMark) {
  folder_.write("utf8", "\xEF\xBB\xBFnet");
  folder_.write("utf16", std::string("\xFF\xFEn\0", 4));
  folder_.write("plain", "net\xEF\xBB\xBF");
  EXPECT_EQ(read_text(path("utf8")), "net");
  EXPECT_EQ(read_text(path("plain")), "net\xEF\xBB\xBF");
  expect_part(error_of([&] { read_text(path("utf16")); }), "utf16: is text in UTF-16");
}

TEST_F(FilesTest, WithoutCommitNothingChanges) {
  write_file_atomically(path("f"), "old");
  {
    AtomicFile file(path("f"));
    file.write("new", 3);
    EXPECT_EQ(read_file(path("f")), "old");
    EXPECT_EQ(entries(), 2u);
  }
  EXPECT_EQ(read_file(path("f")), "old");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(FilesTest, CommitReplacesAtOnce) {
  write_file_atomically(path("f"), "old");
  AtomicFile file(path("f"));
  file.write("ne", 2);
  file.write("w", 1);
  file.commit();
  EXPECT_EQ(read_file(path("f")), "new");
  EXPECT_EQ(entries(), 1u);
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
      error_of([&] { write_file_atomically(path("f"), std::string(5000, 'x')); });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  expect_part(message, path("f") + ": cannot write: ");
  EXPECT_EQ(read_file(path("f")), "old");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(FilesTest, FolderThatIsNotThere) {
  expect_part(error_of([&] { write_file_atomically(path("no/f"), "x"); }),
              "no/f: cannot write: No such file");
}

TEST_F(FilesTest, GoalThatIsAFolder) {
  std::filesystem::create_directory(path("goal"));
  expect_part(error_of([&] { write_file_atomically(path("goal"), "x"); }), "goal: cannot write");
  EXPECT_EQ(entries(), 1u);
  // A file in its place would be the end of it.
  expect_part(error_of([] { write_file_atomically("/dev/null", "x"); }), "not a regular file");
}

TEST_F(FilesTest, KindsAndFolders) {
  write_file_atomically(path("f"), "x");
  EXPECT_TRUE(file_exists(path("f")));
  EXPECT_FALSE(file_exists(path("g")));
  EXPECT_TRUE(folder_exists(folder_.path()));
  EXPECT_FALSE(folder_exists(path("f")));
  EXPECT_EQ(folder_of("a/b/c.txt"), "a/b");
  EXPECT_EQ(folder_of("c.txt"), ".");
}

TEST_F(FilesTest, FindsFilesBesideTheNamingOne) {
  write_file_atomically(path("list.txt"), "x");
  EXPECT_EQ(find_file("list.txt", folder_.path()), path("list.txt"));
  EXPECT_EQ(find_file("not_there.txt", folder_.path()), "not_there.txt");
  EXPECT_EQ(find_file("list.txt", path("nets/lenet")), path("list.txt"));
  EXPECT_EQ(find_file(path("list.txt"), "/nowhere"), path("list.txt"));
  EXPECT_EQ(find_file("", folder_.path()), "");
}

}  // namespace files_test
}  // namespace crema::tests
