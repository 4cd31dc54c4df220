#include "data/databases/hdf5/hdf5_messages.h"

namespace crema {
namespace {

constexpr uint64_t kMaxAxes = 32;
constexpr int kMaxNesting = 8;  // nesting depth of types

// Returns the bytes per value.
uint64_t read_type(Hdf5Fields& fields, int depth);

void read_integer(Hdf5Fields& fields, uint64_t size) {
  const uint64_t offset = fields.number(2), precision = fields.number(2);
  fields.expect(precision > 0 && offset + precision <= 8 * size, "has integers of ", precision,
                " bits from bit ", offset, " on in ", size, " bytes");
}

void read_float(Hdf5Fields& fields, uint64_t sign, uint64_t size) {
  const uint64_t offset = fields.number(2), precision = fields.number(2);
  const uint64_t exponent = fields.number(1), exponent_size = fields.number(1);
  const uint64_t mantissa = fields.number(1), mantissa_size = fields.number(1);
  fields.skip(4);  // the exponent's bias
  const uint64_t end = offset + precision;
  constexpr uint64_t kLongest = 63;  // exponents are computed in 64 bits
  fields.expect(precision > 0 && end <= 8 * size && sign < end && exponent_size > 0 &&
                    exponent_size <= kLongest && exponent + exponent_size <= end &&
                    mantissa_size > 0 && mantissa + mantissa_size <= end,
                "has floating-point numbers whose parts do not lie in ", size, " bytes");
}

void read_compound(Hdf5Fields& fields, int version, uint64_t members, uint64_t size, int depth) {
  for (; members > 0; --members) {
    const uint64_t name = fields.skip_text();
    if (version < 3) fields.skip((8 - name % 8) % 8);
    size_t width = 4;
    if (version == 3)
      for (width = 1; width < 4 && size >> (8 * width) != 0; ++width) {
      }
    const uint64_t at = fields.number(width);
    if (version == 1) fields.skip(28);  // an array's extents
    const uint64_t member = read_type(fields, depth + 1);
    fields.expect(at <= size && member <= size - at, "has a member of ", member, " bytes at byte ",
                  at, " of ", size);
  }
}

void read_enumeration(Hdf5Fields& fields, int version, uint64_t members, uint64_t size, int depth) {
  const uint64_t base = read_type(fields, depth + 1);
  fields.expect(base == size, "has an enumeration of ", size, " bytes on values of ", base);
  for (uint64_t member = 0; member < members; ++member) {
    const uint64_t name = fields.skip_text();
    if (version < 3) fields.skip((8 - name % 8) % 8);
  }
  fields.skip(members * size);
}

void read_array(Hdf5Fields& fields, int version, uint64_t size, int depth) {
  const uint64_t axes = fields.number(1);
  fields.expect(axes <= kMaxAxes, "has an array of ", axes, " axes");
  if (version == 2) fields.skip(3);
  uint64_t count = 1;
  bool fits = true;
  for (uint64_t axis = 0; axis < axes; ++axis)
    fits &= !__builtin_mul_overflow(count, fields.number(4), &count);
  if (version == 2) fields.skip(4 * axes);
  const uint64_t element = read_type(fields, depth + 1);
  fits &= !__builtin_mul_overflow(count, element, &count);
  fields.expect(fits && count == size, "has an array of other than ", size, " bytes");
}

uint64_t read_type(Hdf5Fields& fields, int depth) {
  enum Class { integer, real, time, text, bits, opaque, compound, reference, enumeration, list };
  const uint64_t head = fields.number(1), version = head >> 4, kind = head & 15;
  const uint64_t flags = fields.number(3), size = fields.number(4);
  fields.expect(depth < kMaxNesting, "has types in types without end");
  fields.expect(version >= 1 && version <= 4 && size > 0, "is of version ", version, " and ", size,
                " bytes");
  switch (kind) {
    case integer:
    case bits:
      read_integer(fields, size);
      break;
    case real:
      read_float(fields, flags >> 8 & 255, size);
      break;
    case time:
      fields.skip(2);
      break;
    case text:
    case reference:
      break;
    case opaque:
      fields.skip(flags & 255);
      break;
    case compound:
      read_compound(fields, static_cast<int>(version), flags & 65535, size, depth);
      break;
    case enumeration:
      read_enumeration(fields, static_cast<int>(version), flags & 65535, size, depth);
      break;
    case list:
      read_type(fields, depth + 1);
      break;
    default:
      fields.expect(kind == list + 1 && version >= 2, "is of class ", kind);
      read_array(fields, static_cast<int>(version), size, depth);
  }
  return size;
}

}  // namespace

std::optional<uint64_t> Hdf5Messages::bytes() const {
  if (!extents || !type_size) return std::nullopt;
  uint64_t bytes = *type_size;
  bool fits = true, none = false;
  for (const uint64_t extent : *extents) {
    none |= extent == 0;
    fits &= !__builtin_mul_overflow(bytes, extent, &bytes);
  }
  if (none) return 0;
  return fits ? bytes : UINT64_MAX;
}

void read_dataspace(Hdf5Fields& fields, Hdf5Messages& into) {
  const uint64_t version = fields.number(1), axes = fields.number(1), flags = fields.number(1);
  fields.expect((version == 1 || version == 2) && axes <= kMaxAxes, "is of version ", version,
                " and has ", axes, " axes");
  constexpr uint64_t kNull = 2;  // no values
  const bool none = version == 2 && fields.number(1) == kNull;
  if (version == 1) fields.skip(5);
  std::vector<uint64_t> extents;
  for (uint64_t axis = 0; axis < axes; ++axis) extents.push_back(fields.number(8));
  if ((flags & 1) != 0)
    for (const uint64_t extent : extents)
      fields.expect(fields.number(8) >= extent, "has an extent above its largest");
  if (none) extents.push_back(0);
  into.extents = extents;
}

void read_datatype(Hdf5Fields& fields, Hdf5Messages& into) {
  into.type_size = read_type(fields, 0);
}

void read_fill_value(Hdf5Fields& fields, Hdf5Messages& into) {
  const uint64_t version = fields.number(1);
  fields.expect(version >= 1 && version <= 3, "is of version ", version);
  bool given = false;
  if (version == 3) {
    given = (fields.number(1) & 0x20) != 0;
  } else {
    fields.skip(2);
    given = fields.number(1) != 0 || version == 1;
  }
  if (!given) return;
  // As a signed number: negative if there is none.
  const uint64_t size = fields.number(4);
  if (size == 0 || size > INT32_MAX) return;
  fields.skip(size);
  into.fill_size = size;
}

void read_old_fill_value(Hdf5Fields& fields, Hdf5Messages& into) {
  const uint64_t size = fields.number(4);
  fields.skip(size);
  if (size > 0) into.fill_size = size;
}

void read_layout(Hdf5Fields& fields, Hdf5Messages& into) {
  using Kind = Hdf5Messages::Layout::Kind;
  Hdf5Messages::Layout layout;
  const uint64_t version = fields.number(1);
  fields.expect(version >= 1 && version <= 4, "is of version ", version);
  uint64_t axes = version < 3 ? fields.number(1) : 0;
  const uint64_t kind = fields.number(1);
  if (version < 3) fields.skip(5);
  if (kind == 0) {
    layout.kind = Kind::compact;
    if (version < 3) fields.skip(4 * axes);
    layout.size = fields.number(version < 3 ? 4 : 2);
    fields.skip(*layout.size);
  } else if (kind == 1) {
    layout.kind = Kind::contiguous;
    layout.address = fields.address();
    if (version >= 3) layout.size = fields.number(8);
    if (version < 3) fields.skip(4 * axes);
  } else if (kind == 2) {
    layout.kind = Kind::chunked;
    uint64_t width = 4;
    if (version == 4) fields.skip(1);
    if (version >= 3) axes = fields.number(1);
    if (version < 4) layout.address = fields.address();
    if (version == 4) width = fields.number(1);
    fields.expect(axes >= 1 && axes <= kMaxAxes + 1 && width >= 1 && width <= 8, "has chunks of ",
                  axes, " axes");
    uint64_t bytes = 1;
    for (uint64_t axis = 0; axis < axes; ++axis) {
      layout.chunk.push_back(fields.number(width));
      fields.expect(layout.chunk.back() > 0 &&
                        !__builtin_mul_overflow(bytes, layout.chunk.back(), &bytes) &&
                        bytes <= UINT32_MAX,
                    "has chunks of no or of more than 2^32 bytes");
    }
    layout.tree = version < 4;
  } else {
    fields.expect(kind == 3 && version == 4, "is of class ", kind);
  }
  into.layout = layout;
}

void read_filters(Hdf5Fields& fields, Hdf5Messages& into) {
  const uint64_t version = fields.number(1), count = fields.number(1);
  constexpr uint64_t kMaxFilters = 32, kFirstNamed = 256;
  fields.expect((version == 1 || version == 2) && count <= kMaxFilters, "is of version ", version,
                " and has ", count, " filters");
  if (version == 1) fields.skip(6);
  for (uint64_t filter = 0; filter < count; ++filter) {
    const uint64_t id = fields.number(2);
    const uint64_t name = version == 1 || id >= kFirstNamed ? fields.number(2) : 0;
    fields.skip(2);  // flags
    const uint64_t numbers = fields.number(2);
    if (name > 0) {
      Hdf5Fields text = fields.part(name, "the name of a filter");
      text.skip_text();
    }
    fields.skip(4 * numbers);
    if (version == 1 && numbers % 2 != 0) fields.skip(4);
  }
  into.filtered = count > 0;
}

void read_attribute(Hdf5Fields& fields) {
  const uint64_t version = fields.number(1), flags = fields.number(1);
  fields.expect(version >= 1 && version <= 3, "is of version ", version);
  const uint64_t name = fields.number(2), type = fields.number(2), space = fields.number(2);
  if (version == 3) fields.skip(1);  // character set
  const uint64_t unit = version == 1 ? 8 : 1;
  const auto padded = [unit](uint64_t size) { return (size + unit - 1) / unit * unit; };
  fields.expect(name > 0, "has no name");
  fields.part(padded(name), "the name of an attribute").skip_text();
  Hdf5Messages messages;
  Hdf5Fields type_fields = fields.part(padded(type), "the type of an attribute");
  if (version == 1 || (flags & 1) == 0) read_datatype(type_fields, messages);
  Hdf5Fields space_fields = fields.part(padded(space), "the extents of an attribute");
  if (version == 1 || (flags & 2) == 0) read_dataspace(space_fields, messages);
  if (const auto bytes = messages.bytes()) fields.skip(*bytes);
}

}  // namespace crema
