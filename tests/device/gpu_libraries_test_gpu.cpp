// Where GPU libraries are searched. Two libraries of one name say which of them was loaded; this
// program's DT_RPATH leads to number 1. A loaded library stays, so each case is a process.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "device/gpu_libraries.h"
#include "support.h"

#define CREMA_FAKE_NAMES(F) F(crema_fake_number)
CREMA_FAKE_NAMES(CREMA_JUMP)
extern "C" int crema_fake_number();

namespace crema::tests {
namespace gpu_libraries_test {

constexpr GpuFunction kNames[] = {CREMA_FAKE_NAMES(CREMA_FUNCTION)};

// The number of the library that is loaded with this LD_LIBRARY_PATH; null: without the variable.
int number_with(const char* folders) {
  if (folders) {
    setenv("LD_LIBRARY_PATH", folders, 1);
  } else {
    unsetenv("LD_LIBRARY_PATH");
  }
  load_gpu_library("libcrema_fake.so", 7, kNames);
  return crema_fake_number();
}

const std::string kFolder = CREMA_FAKES;

TEST(GpuLibraries, LdLibraryPathWins) {
  using Code = testing::ExitedWithCode;
  EXPECT_EXIT(std::exit(number_with(nullptr)), Code(1), "");
  EXPECT_EXIT(std::exit(number_with("")), Code(1), "");
  EXPECT_EXIT(std::exit(number_with((kFolder + "/2").c_str())), Code(2), "");
  EXPECT_EXIT(std::exit(number_with(("/none::" + kFolder + "/2:" + kFolder + "/1").c_str())),
              Code(2), "");
}

TEST(GpuLibraries, FilesThatAreNoLibraryArePassedOver) {
  const std::string folder = testing::TempDir() + "crema_no_library";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/libcrema_fake.so.7") << "text";
  EXPECT_EXIT(std::exit(number_with((folder + ":" + kFolder + "/2").c_str())),
              testing::ExitedWithCode(2), "");
  EXPECT_EXIT(std::exit(number_with(folder.c_str())), testing::ExitedWithCode(1), "");
  std::filesystem::remove_all(folder);
}

TEST(GpuLibraries, OneThatIsLoadedAlreadyIsUsed) {
  EXPECT_EXIT(
      {
        number_with((kFolder + "/2").c_str());
        std::exit(number_with((kFolder + "/1").c_str()));
      },
      testing::ExitedWithCode(2), "");
}

TEST(GpuLibraries, AMissingOneIsAnErrorThatSaysWhatToDo) {
  const std::string message =
      error_of([] { load_gpu_library("libcrema_absent.so", 7, kNames, "this test"); });
  expect_part(message, "this test needs libcrema_absent.so.7, which cannot be loaded: ");
  expect_part(message, "name their folder in LD_LIBRARY_PATH");
}

TEST(GpuLibraries, AnotherVersionLacksAFunction) {
  static void* at = nullptr;
  const GpuFunction names[] = {{"crema_fake_later", &at}};
  expect_part(error_of([&] { load_gpu_library("libcrema_fake.so", 7, names); }),
              cat("a GPU needs another version of libcrema_fake.so.7: ", kFolder,
                  "/1/libcrema_fake.so.7 has no crema_fake_later"));
}

}  // namespace gpu_libraries_test
}  // namespace crema::tests
