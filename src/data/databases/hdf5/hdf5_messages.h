// Hdf5Messages: the messages in an object's header that describe a dataset, and the checks of each.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "data/databases/hdf5/hdf5_fields.h"

namespace crema {

// The contents of the messages of one object, or of those inside an attribute.
struct Hdf5Messages {
  struct Layout {
    enum class Kind { compact, contiguous, chunked, other } kind = Kind::other;
    uint64_t address = kHdf5Nowhere;  // address of the values, or of the tree of chunks
    // Size of the values. Versions 1 and 2 do not give it for contiguous ones.
    std::optional<uint64_t> size;
    std::vector<uint64_t> chunk;  // extents, the last one the bytes per value
    bool tree = false;            // tree of chunks, in the first form
  };
  std::optional<std::vector<uint64_t>> extents;
  std::optional<uint64_t> type_size;
  std::optional<uint64_t> fill_size;
  std::optional<Layout> layout;
  bool filtered = false;

  // Bytes of all values, at most 2^64 - 1; none when messages are missing.
  std::optional<uint64_t> bytes() const;
};

void read_dataspace(Hdf5Fields& fields, Hdf5Messages& into);
void read_datatype(Hdf5Fields& fields, Hdf5Messages& into);
void read_fill_value(Hdf5Fields& fields, Hdf5Messages& into);
void read_old_fill_value(Hdf5Fields& fields, Hdf5Messages& into);
void read_layout(Hdf5Fields& fields, Hdf5Messages& into);
void read_filters(Hdf5Fields& fields, Hdf5Messages& into);
void read_attribute(Hdf5Fields& fields);

}  // namespace crema
