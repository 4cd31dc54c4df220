#include "data/databases/hdf5/hdf5_ranges.h"

#include <algorithm>

namespace crema {

Hdf5Ranges::Hdf5Ranges(const std::string& path) : file_(path) {
  constexpr char kSignature[] = "\x89HDF\r\n\x1a\n";
  constexpr uint64_t kFirstUserBlock = 512;
  for (;; base_ = base_ == 0 ? kFirstUserBlock : 2 * base_) {
    char start[8] = {};
    if (file_.read(base_, start, sizeof(start)) < sizeof(start))
      throw Hdf5Damage("no signature of an HDF5 file is in it");
    if (std::equal(start, start + 8, kSignature)) break;
  }
  end_ = file_.size() - base_;
}

void Hdf5Ranges::hold(const std::string& what, uint64_t address, uint64_t size) const {
  const Hdf5Fields none(what, address, {});
  none.expect(address <= end_ && size <= end_ - address, "is ", size,
              " bytes long; the file ends at byte ", end_);
}

Hdf5Fields Hdf5Ranges::look(const std::string& what, uint64_t address, uint64_t size) const {
  hold(what, address, size);
  std::vector<uint8_t> bytes(size);
  const size_t got = file_.read(base_ + address, bytes.data(), size);
  Hdf5Fields fields(what, address, std::move(bytes));
  fields.expect(got == size, "is cut short");
  return fields;
}

void Hdf5Ranges::claim(const std::string& what, uint64_t address, uint64_t size) {
  hold(what, address, size);
  if (size > 0) ranges_.push_back({address, size, what});
}

Hdf5Fields Hdf5Ranges::take(const std::string& what, uint64_t address, uint64_t size) {
  claim(what, address, size);
  return look(what, address, size);
}

void Hdf5Ranges::check() {
  std::sort(ranges_.begin(), ranges_.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < ranges_.size(); ++i) {
    const Range &before = ranges_[i - 1], &here = ranges_[i];
    const Hdf5Fields fields(here.what, here.begin, {});
    fields.expect(before.begin + before.size <= here.begin, "lies in ", before.what, " at byte ",
                  before.begin);
  }
}

}  // namespace crema
