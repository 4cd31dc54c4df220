// Temporary files and folders: their names cannot be guessed, and leftovers of killed processes are
// removed later.
#include "base/temporary.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "support.h"

namespace crema::tests {
namespace temporary_test {

using Kind = TemporaryEntry::Kind;

class TemporaryTest : public testing::Test {
 protected:
  ~TemporaryTest() override {
    for (const int descriptor : held_) close(descriptor);
  }
  std::string path(const std::string& name) const { return folder_.file(name); }
  // Alive as long as the test.
  std::string make(const std::string& goal, Kind kind) {
    const TemporaryEntry entry = make_temporary(goal, kind);
    held_.push_back(entry.descriptor);
    return entry.path;
  }
  // Leaves what a process leaves of `name` when it is killed between two writes.
  std::string left_by_a_kill(const std::string& name, Kind kind) const {
    int told[2];
    EXPECT_EQ(pipe(told), 0);
    const pid_t child = fork();
    if (child == 0) {
      const std::string made = make_temporary(path(name), kind).path;
      [[maybe_unused]] const ssize_t count = write(told[1], made.data(), made.size());
      pause();
      _exit(1);
    }
    char text[4096];
    const ssize_t count = read(told[0], text, sizeof text);
    EXPECT_TRUE(remove_leftovers(folder_.path(), kind, name).empty()) << "it lives still";
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    close(told[0]);
    close(told[1]);
    return std::string(text, static_cast<size_t>(std::max<ssize_t>(count, 0)));
  }
  static void make_old(const std::string& path, int seconds) {
    const timespec now{time(nullptr) - seconds, 0}, times[] = {now, now};
    ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }

  Folder folder_;
  std::vector<int> held_;
};

TEST_F(TemporaryTest, NamesAreNewAndPermissionsTheUmasks) {
  const mode_t before = umask(0027);
  const std::string file = make(path("a"), Kind::file), other = make(path("a"), Kind::file),
                    entries = make(path("a"), Kind::folder);
  umask(before);
  EXPECT_NE(file, other);
  EXPECT_EQ(file.find(path("a") + ".tmp."), 0u);
  struct stat info;
  ASSERT_EQ(stat(file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
  ASSERT_EQ(stat(entries.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0750u);
  const std::string longest(255, 'n');
  EXPECT_TRUE(file_exists(make(path(longest), Kind::file)));
}

// The name that was used before there was chance in it.
TEST_F(TemporaryTest, LinksThatWaitAreNotFollowed) {
  folder_.write("victim", "precious");
  std::filesystem::create_symlink("victim", path(cat("a.tmp.", getpid())));
  std::filesystem::create_symlink("victim", path("a.tmp"));
  write_file_atomically(path("a"), "new");
  EXPECT_EQ(folder_.read("victim"), "precious");
  EXPECT_EQ(folder_.read("a"), "new");
  EXPECT_FALSE(std::filesystem::is_symlink(path("a")));
}

TEST_F(TemporaryTest, WhatAKillLeavesIsRemoved) {
  for (const Kind kind : {Kind::file, Kind::folder}) {
    const std::string left = left_by_a_kill("a", kind), other = left_by_a_kill("b", kind);
    const std::string alive = make(path("a"), kind);
    ASSERT_TRUE(file_exists(left) && file_exists(other));
    if (kind == Kind::folder) write_file_atomically(left + "/data.mdb", "half a database");
    const Kind another = kind == Kind::file ? Kind::folder : Kind::file;
    EXPECT_TRUE(remove_leftovers(folder_.path(), another).empty());
    EXPECT_EQ(remove_leftovers(folder_.path(), kind, "a"), std::vector<std::string>{left});
    EXPECT_EQ(remove_leftovers(folder_.path(), kind), std::vector<std::string>{other});
    EXPECT_TRUE(file_exists(alive));
    std::filesystem::remove_all(alive);
  }
}

TEST_F(TemporaryTest, WhatIsNotOursStays) {
  const std::vector<std::string> names = {"a.tmp", "a.tmp.123", "a.tmp.0123abcd-0123456789abcdeX",
                                          "a.tmp.0123abcd-0123456789abcdef.bak",
                                          "0123abcd-0123456789abcdef"};
  for (const std::string& name : names) {
    folder_.write(name, "precious");
    make_old(path(name), 100000);
  }
  const std::string link = "link.tmp.0123abcd-0123456789abcdef";
  std::filesystem::create_symlink("a.tmp", path(link));
  EXPECT_TRUE(remove_leftovers(folder_.path(), Kind::file).empty());
  EXPECT_EQ(folder_.names().size(), names.size() + 1);
  EXPECT_TRUE(remove_leftovers(path("nowhere"), Kind::file).empty());
}

// Locks do not reach every machine: what another one has made must be old.
TEST_F(TemporaryTest, OfAnotherMachineOnlyOldOnesAreRemoved) {
  const std::string fresh = "a.tmp.0123abcd-0123456789abcdef",
                    old = "a.tmp.0123abcd-0123456789abcde0";
  folder_.write(fresh, "x");
  folder_.write(old, "x");
  make_old(path(old), 4000);
  EXPECT_EQ(remove_leftovers(folder_.path(), Kind::file), std::vector<std::string>{path(old)});
  EXPECT_TRUE(folder_.has(fresh));
  const std::string written = "db.tmp.0123abcd-0123456789abcdef";
  folder_.write(written + "/data.mdb", "x");
  make_old(path(written), 4000);
  EXPECT_TRUE(remove_leftovers(folder_.path(), Kind::folder).empty()) << "what is in it is new";
  make_old(path(written + "/data.mdb"), 4000);
  EXPECT_EQ(remove_leftovers(folder_.path(), Kind::folder).size(), 1u);
}

}  // namespace temporary_test
}  // namespace crema::tests
