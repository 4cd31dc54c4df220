#include "solver/readers/tensorboard_file.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/system.h"

namespace crema {
namespace {

// The checksum CRC-32C (Castagnoli), in the disguise that TensorFlow gives to checksums of data that
// may hold checksums.
uint32_t masked_crc(const std::string& bytes) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> made{};
    for (uint32_t i = 0; i < 256; ++i) {
      made[i] = i;
      for (int bit = 0; bit < 8; ++bit) made[i] = made[i] >> 1 ^ (made[i] & 1 ? 0x82f63b78u : 0u);
    }
    return made;
  }();
  uint32_t crc = ~0u;
  for (const char byte : bytes) crc = table[(crc ^ static_cast<uint8_t>(byte)) & 255] ^ crc >> 8;
  crc = ~crc;
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

std::string little_endian(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 255);
  return text;
}

// Seconds since 1970, but later than those in the names of the folder's files: the clock may have
// been put back, and two trainings may begin in one second.
int64_t time_for_name(const std::string& folder, const std::string& begin) {
  auto seconds = static_cast<int64_t>(std::time(nullptr));
  for (const std::string& name : list_folder(folder)) {
    if (name.rfind(begin, 0) != 0) continue;
    const int64_t other = std::strtoll(name.c_str() + begin.size(), nullptr, 10);
    if (other < 9'999'999'999) seconds = std::max(seconds, other + 1);  // ten digits in a name
  }
  return seconds;
}

}  // namespace

std::string new_tensorboard_file(const std::string& folder) {
  const std::string begin = "events.out.tfevents.";
  std::error_code reason;
  std::filesystem::create_directories(folder, reason);
  require(!reason, "cannot make the folder ", folder, ": ", reason.message());
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%010lld",
                static_cast<long long>(time_for_name(folder, begin)));
  return cat(folder, "/", begin, seconds, ".", host_name(), ".", getpid());
}

tensorboard::Event tensorboard_version() {
  tensorboard::Event version;
  version.set_file_version("brain.Event:2");
  return version;
}

std::string tensorboard_record(tensorboard::Event event) {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  event.set_wall_time(now.count());
  const std::string content = event.SerializeAsString();
  const std::string length = little_endian(content.size(), 8);
  return cat(length, little_endian(masked_crc(length), 4), content,
             little_endian(masked_crc(content), 4));
}

}  // namespace crema
