// Libraries that are loaded with the first use of a function.
#include "base/late_library.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "support.h"

namespace crema::tests {
namespace late_library_test {

TEST(LateLibrary, FindsFunctions) {
  LateLibrary library("libcrema_hdf5.so");
  using Version = int(unsigned*, unsigned*, unsigned*);
  const LateFunction<Version> version(library, "H5get_libversion");
  unsigned major = 0, minor = 0, patch = 0;
  EXPECT_EQ(version(&major, &minor, &patch), 0);
  EXPECT_GE(100 * major + minor, 108u);
  EXPECT_EQ(version(&major, &minor, &patch), 0);  // found before
  const LateValue<int64_t> missing(library, "crema_late_nothing");
  const auto read = [&] { return static_cast<int64_t>(missing); };
  EXPECT_THROW(read(), FileError);
  expect_part(error_of(read), "libcrema_hdf5.so: has no crema_late_nothing: ");
}

TEST(LateLibrary, SaysWhichIsMissing) {
  LateLibrary library("libcrema_gone.so");
  const auto find = [&] { library.symbol("H5open"); };
  EXPECT_THROW(find(), FileError);
  expect_part(error_of(find), "/libcrema_gone.so: cannot be loaded: ");
}

}  // namespace late_library_test
}  // namespace crema::tests
