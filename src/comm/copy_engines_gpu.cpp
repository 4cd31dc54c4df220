#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "base/error.h"
#include "base/strings.h"
#include "base/system.h"
#include "comm/add_parts.h"
#include "comm/copy_engines.h"
#include "comm/engine.h"
#include "device/gpu.h"

namespace crema {
namespace {

constexpr const char* kCopying = "copying between GPUs";

// Identifies this boot of this machine; containers may share its name.
std::string machine() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return cat(host_name(), "/", boot);
}

// NCCL's own switch for machines on which GPUs read each other's memory wrongly.
bool forbidden() {
  const char* const text = std::getenv("NCCL_P2P_DISABLE");
  return text && std::string_view(text) != "0";
}

// What a rank tells the others about its memory, as bytes.
struct Exposure {
  std::array<char, 160> machine{};
  std::array<char, 32> bus_id{};
  cudaIpcMemHandle_t handle{};
  void* memory = nullptr;
  size_t bytes = 0;
  bool offered = false;  // `handle` is there
};

template <size_t N>
void write(std::array<char, N>& to, std::string_view text) {
  std::copy_n(text.data(), std::min(text.size(), N - 1), to.data());
}

// Whether CUDA can, without leaving an error for later calls.
bool succeeds(cudaError_t status) {
  if (status == cudaSuccess) return true;
  cudaGetLastError();
  return false;
}

}  // namespace

CopyEngines::CopyEngines(Context& context, int rank, int ranks, Gather gather)
    : context_(context),
      rank_(rank),
      ranks_(ranks),
      gather_(std::move(gather)),
      barrier_(rank, ranks) {}

CopyEngines::~CopyEngines() {
  for (const Region& region : regions_) close(region);
}

void CopyEngines::close(const Region& region) const {
  for (void* const memory : region.opened) cudaIpcCloseMemHandle(memory);
}

// Through NVLink, the only link between GPUs with native atomic operations.
bool CopyEngines::reaches(std::string_view host, std::string_view bus_id) const {
  int peer = 0, can = 0, atomics = 0;
  if (host != machine()) return false;
  if (!succeeds(cudaDeviceGetByPCIBusId(&peer, std::string(bus_id).c_str()))) return false;
  if (!succeeds(cudaDeviceCanAccessPeer(&can, context_.ordinal(), peer)) || !can) return false;
  return succeeds(cudaDeviceGetP2PAttribute(&atomics, cudaDevP2PAttrNativeAtomicSupported,
                                            context_.ordinal(), peer)) &&
         atomics;
}

// A multiple of 16 elements, so that each part is aligned.
int64_t CopyEngines::part_of(int64_t count) const {
  return ((count + ranks_ - 1) / ranks_ + 15) / 16 * 16;
}

bool CopyEngines::expose(void* memory, size_t bytes, size_t most) {
  Exposure own;
  write(own.machine, machine());
  own.offered =
      !forbidden() &&
      succeeds(cudaDeviceGetPCIBusId(own.bus_id.data(), own.bus_id.size(), context_.ordinal())) &&
      succeeds(cudaIpcGetMemHandle(&own.handle, memory));
  own.memory = memory;
  own.bytes = bytes;
  const std::vector<std::string> told =
      gather_(std::string(reinterpret_cast<const char*>(&own), sizeof own));
  Region region{static_cast<char*>(memory), bytes, {}, {}};
  // The earlier allocation there has been freed, and the others' memory of that time with it.
  std::erase_if(regions_, [&](const Region& old) {
    const bool gone = old.memory < region.memory + bytes && region.memory < old.memory + old.bytes;
    if (gone) close(old);
    return gone;
  });
  const auto agreed = [&](bool good) {
    const std::vector<std::string> all = gather_(good ? "yes" : "no");
    return std::count(all.begin(), all.end(), "yes") == ranks_;
  };
  const bool opened = open(region, told);
  if (!agreed(opened)) {
    close(region);
    return false;
  }
  regions_.push_back(std::move(region));
  if (!tried_) met_ = agreed(barrier_.open(gather_));
  tried_ = true;
  // At least four bytes an element: a sum of 16-bit types needs no more.
  const auto staged = static_cast<size_t>((ranks_ - 1) * part_of(std::min(most, bytes) / 4) * 4);
  if (met_ && staged > (stage_ ? stage_->bytes() : 0))
    stage_ = std::make_unique<Buffer>(context_, staged);
  return met_;
}

bool CopyEngines::open(Region& region, const std::vector<std::string>& told) const {
  for (int rank = 0; rank < ranks_; ++rank) {
    Exposure other;
    require(told[rank].size() == sizeof other, "rank ", rank, " has sent ", told[rank].size(),
            " bytes about its memory, but ", sizeof other,
            " were expected: the ranks run different builds");
    std::memcpy(&other, told[rank].data(), sizeof other);
    if (!other.offered || other.bytes != region.bytes) return false;
    void* seen = other.memory;
    if (rank != rank_) {
      if (!reaches(other.machine.data(), other.bus_id.data())) return false;
      // Refused where ranks are threads of one process.
      if (!succeeds(cudaIpcOpenMemHandle(&seen, other.handle, cudaIpcMemLazyEnablePeerAccess)))
        return false;
      region.opened.push_back(seen);
    }
    region.of_ranks.push_back(static_cast<char*>(seen));
  }
  return true;
}

const CopyEngines::Region* CopyEngines::region_of(const void* values, size_t bytes) const {
  const char* const first = static_cast<const char*>(values);
  for (const Region& region : regions_) {
    if (first >= region.memory && first + bytes <= region.memory + region.bytes) return &region;
  }
  return nullptr;
}

bool CopyEngines::take(const void* values, int64_t count, Element element) const {
  const int64_t bytes = count * bytes_of(element);
  return met_ && element != Element::f64 && bytes >= kLeastBytes &&
         (ranks_ - 1) * part_of(count) * bytes_of(element) <=
             (stage_ ? static_cast<int64_t>(stage_->bytes()) : 0) &&
         reinterpret_cast<uintptr_t>(values) % 64 == 0 &&
         region_of(values, static_cast<size_t>(bytes));
}

void CopyEngines::sum(void* values, int64_t count, Element element) {
  const int64_t size = bytes_of(element), part = part_of(count);
  const Region& region = *region_of(values, static_cast<size_t>(count * size));
  const ptrdiff_t place = static_cast<char*>(values) - region.memory;
  const auto first_of = [&](int rank) { return std::min(rank * part, count); };
  const auto count_of = [&](int rank) { return std::min(part, count - first_of(rank)); };
  // The part of `rank`'s memory that `of_rank` sums.
  const auto at = [&](int rank, int of_rank) {
    return region.of_ranks[rank] + place + first_of(of_rank) * size;
  };
  const auto copy = [&](void* to, const void* from, int64_t elements) {
    if (elements == 0) return;
    check_cuda(cudaMemcpyAsync(to, from, static_cast<size_t>(elements * size),
                               cudaMemcpyDeviceToDevice, context_.gpu().stream),
               kCopying);
  };
  char* const staged = stage_ ? static_cast<char*>(stage_->data()) : nullptr;

  barrier_.queue(context_, 0);
  // At any time each rank reads from another one.
  for (int i = 1; i < ranks_; ++i)
    copy(staged + (i - 1) * part * size, at((rank_ + i) % ranks_, rank_), count_of(rank_));
  add_parts(context_, at(rank_, rank_), staged, count_of(rank_), part, ranks_ - 1, element);
  barrier_.queue(context_, 1);
  for (int i = 1; i < ranks_; ++i) {
    const int other = (rank_ + i) % ranks_;
    copy(at(rank_, other), at(other, other), count_of(other));
  }
}

void CopyEngines::finish() {
  for (const int round : {0, 1}) barrier_.queue(context_, round);
}

}  // namespace crema
