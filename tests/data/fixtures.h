// What the tests of data share: the reference files.
#pragma once

#include "support.h"

// At the start of a test that reads or writes image files.
#ifdef CREMA_OPENCV
#define NEEDS_IMAGES() static_cast<void>(0)
#else
#define NEEDS_IMAGES() GTEST_SKIP() << "built without OpenCV"
#endif

namespace crema::tests {

inline std::string formats() { return std::string(CREMA_TEST_DATA) + "/goldens/formats"; }

}  // namespace crema::tests
