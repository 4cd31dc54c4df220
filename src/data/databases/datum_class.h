// The class of a stored Datum, found without reading the image, which comes before it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace crema {

// `size`: of the stored bytes; `read` copies bytes from an offset on. None for a record with
// several labels or a real one; 0, as always, if none is stored. Error gives only the reason.
std::optional<int64_t> class_of_datum(
    uint64_t size, const std::function<void(uint64_t offset, void* bytes, size_t count)>& read);

}  // namespace crema
