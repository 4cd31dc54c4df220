// What makes writing fail: a full disk, and a folder of another user.
#pragma once

#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include "support.h"

namespace crema::tests {

// Root may write everywhere, so this runs as another user.
inline void as_other_user(bool other) {
  if (getuid() == 0 && seteuid(other ? 65534 : 0) != 0) fail("this user may not become another");
}

// While it lives.
class OtherUser {
 public:
  OtherUser() { as_other_user(true); }
  ~OtherUser() { as_other_user(false); }
  OtherUser(const OtherUser&) = delete;
  OtherUser& operator=(const OtherUser&) = delete;
};

// A file system in memory of so many bytes. It is in no folder and vanishes with the object.
class SmallDisk {
 public:
  explicit SmallDisk(int64_t bytes) {
    const Folder folder;
    mounted_ = mount("tmpfs", folder.path().c_str(), "tmpfs", 0, cat("size=", bytes).c_str()) == 0;
    if (!mounted_) return;
    descriptor_ = open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    umount2(folder.path().c_str(), MNT_DETACH);
  }
  ~SmallDisk() {
    if (mounted_) close(descriptor_);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  bool mounted() const { return mounted_; }
  std::string path() const { return cat("/proc/self/fd/", descriptor_); }

 private:
  bool mounted_ = false;
  int descriptor_ = -1;
};

}  // namespace crema::tests
