#include "data/databases/hdf5/hdf5_structure.h"

#include <gtest/gtest.h>
#include <hdf5.h>

#include <cstring>

#include "data/databases/hdf5/hdf5_file.h"
#include "fixtures.h"

namespace crema::tests {
namespace hdf5_structure_test {

using Extents = std::vector<hsize_t>;

void write_numbers(hid_t at, const std::string& name, const Extents& extents, hid_t made,
                   hid_t type = H5T_IEEE_F32LE) {
  const hid_t space = H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr);
  const hid_t data = H5Dcreate2(at, name.c_str(), type, space, H5P_DEFAULT, made, H5P_DEFAULT);
  ASSERT_GE(data, 0) << name;
  const std::vector<double> values(static_cast<size_t>(H5Sget_simple_extent_npoints(space)), 1.5);
  ASSERT_GE(H5Dwrite(data, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
  H5Dclose(data);
  H5Sclose(space);
}

hid_t created(const Extents& chunk, bool filters) {
  const hid_t made = H5Pcreate(H5P_DATASET_CREATE);
  if (!chunk.empty()) H5Pset_chunk(made, static_cast<int>(chunk.size()), chunk.data());
  if (filters) {
    H5Pset_shuffle(made);
    H5Pset_deflate(made, 4);
    H5Pset_fletcher32(made);
  }
  return made;
}

hid_t text_of(size_t size) {
  const hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, size);
  return type;
}

void write_attribute(hid_t at, const char* name, hid_t type, hid_t space) {
  const hid_t attribute = H5Acreate2(at, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
  ASSERT_GE(attribute, 0) << name;
  const std::vector<char> zeros(4096);
  ASSERT_GE(H5Awrite(attribute, type, zeros.data()), 0) << name;
  H5Aclose(attribute);
}

hid_t pair_type() {
  const hid_t pair = H5Tcreate(H5T_COMPOUND, 24);
  const hsize_t two[] = {2};
  H5Tinsert(pair, "first", 0, H5T_NATIVE_DOUBLE);
  H5Tinsert(pair, "others", 8, H5Tarray_create2(H5T_NATIVE_DOUBLE, 1, two));
  return pair;
}

hid_t flag_type() {
  const hid_t type = H5Tenum_create(H5T_NATIVE_INT8);
  int8_t value = 0;
  H5Tenum_insert(type, "FALSE", &value);
  value = 1;
  H5Tenum_insert(type, "TRUE", &value);
  return type;
}

// Everything that other programs put into such files.
void write_everything(const std::string& path, H5F_libver_t oldest, hsize_t user_block,
                      bool ordered) {
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS), made = H5Pcreate(H5P_FILE_CREATE);
  H5Pset_libver_bounds(access, oldest, H5F_LIBVER_LATEST);
  H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);  // identifiers are left to it
  H5Pset_userblock(made, user_block);
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, made, access);
  ASSERT_GE(file, 0);
  const hid_t group_made = H5Pcreate(H5P_GROUP_CREATE);
  if (ordered) H5Pset_link_creation_order(group_made, H5P_CRT_ORDER_TRACKED);
  const hid_t many = H5Gcreate2(file, "many", H5P_DEFAULT, group_made, H5P_DEFAULT);
  for (int i = 0; i < 700; ++i) write_numbers(many, cat("layer", i), {1}, H5P_DEFAULT);
  for (int i = 0; i < 600; i += 7) H5Ldelete(many, cat("layer", i).c_str(), H5P_DEFAULT);
  write_numbers(file, "plain", {3, 4}, H5P_DEFAULT);
  write_numbers(file, "chunks", {50, 50, 3}, created({4, 4, 3}, false));
  write_numbers(file, "packed", {90, 40}, created({8, 16}, true));
  write_numbers(file, "none", {0, 4}, created({8, 4}, false));
  write_numbers(file, "half", {5}, H5P_DEFAULT, H5T_STD_I16BE);
  write_numbers(file, "long", {5}, H5P_DEFAULT, H5T_NATIVE_LDOUBLE);
  const hid_t compact = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_layout(compact, H5D_COMPACT);
  const float fill = 7;
  H5Pset_fill_value(compact, H5T_NATIVE_FLOAT, &fill);
  write_numbers(file, "compact", {6}, compact);
  const hid_t named = flag_type();
  H5Tcommit2(file, "named", named, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t scalar = H5Screate(H5S_SCALAR), null = H5Screate(H5S_NULL);
  const Extents three = {3};
  const hid_t list = H5Screate_simple(1, three.data(), nullptr);
  H5Dclose(H5Dcreate2(file, "flags", named, list, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  H5Dclose(H5Dcreate2(file, "pairs", pair_type(), list, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  write_attribute(many, "names", text_of(20), list);
  write_attribute(many, "flag", named, scalar);
  write_attribute(many, "empty", H5T_NATIVE_INT, null);
  write_attribute(file, "pair", pair_type(), scalar);
  write_attribute(file, "words", text_of(H5T_VARIABLE), list);
  H5Oset_comment(many, "of layers");
  H5Lcreate_soft("/many/layer1", file, "soft", H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_hard(file, "/", file, "itself", H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_external("other.h5", "/x", file, "outside", H5P_DEFAULT, H5P_DEFAULT);
  H5Fclose(file);
}

TEST(Hdf5Structure, AcceptsWhatTheLibraryWrites) {
  const Folder folder;
  const std::string path = folder.file("a.h5");
  for (const H5F_libver_t oldest : {H5F_LIBVER_EARLIEST, H5F_LIBVER_V18, H5F_LIBVER_LATEST})
    for (const hsize_t user_block : {0, 2048})
      for (const bool ordered : {false, true}) {
        SCOPED_TRACE(cat(oldest, " ", user_block, " ", ordered));
        write_everything(path, oldest, user_block, ordered);
        EXPECT_NO_THROW(check_hdf5_structure(path));
        const Hdf5File file(path);
        EXPECT_EQ(file.children("many").size(), 614u);
        for (const char* name : {"plain", "chunks", "packed", "half", "long", "compact", "soft"})
          for (const float value : file.floats(name))
            EXPECT_EQ(value, std::strcmp(name, "half") == 0 ? 1 : 1.5f) << name;
      }
}

// Each of these kills the library, or keeps it busy for ever.
TEST(Hdf5Structure, RefusesWhatTheLibraryBelieves) {
  const Folder folder;
  const std::string path = folder.file("a.h5");
  write_everything(path, H5F_LIBVER_EARLIEST, 0, false);
  const std::string whole = read_file(path);
  const struct {
    const char* structure;
    size_t at;
    std::string bytes;
    const char* message;
  } rows[] = {
      {"HEAP", 8, std::string(8, '\0'), "is empty"},
      {"HEAP", 8, std::string(8, '\xff'), "the file ends at byte"},
      {"HEAP", 16, std::string("\x08\0\0\xff\0\0\0\0", 8), "has free space from byte"},
      {"HEAP", 24, std::string(8, '\xff'), "without an address"},
      {"TREE", 4, "\x02", "is of kind 2"},
      {"TREE", 5, "\x07", "does not begin with TREE"},
      {"TREE", 6, "\xff\xff", "with 65535 entries"},
      {"TREE", 32, std::string(8, '\xff'), "without an address"},
      {"SNOD", 6, "\xff\xff", "has 65535 names"},
      {"SNOD", 8, "\xff\xff", "has a name at byte 65535"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(cat(row.structure, " ", row.at));
    std::string damaged = whole;
    damaged.replace(damaged.find(row.structure) + row.at, row.bytes.size(), row.bytes);
    folder.write("a.h5", damaged);
    expect_part(error_of([&] { Hdf5File file(path); }), path + ": is not an HDF5 file, or it is");
    expect_part(error_of([&] { Hdf5File file(path); }), row.message);
  }
}

TEST(Hdf5Structure, NoSingleByteKillsTheLibrary) {
  const Folder folder;
  const std::string path = folder.file("a.h5");
  {
    const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t group = H5Gcreate2(file, "layer", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    write_numbers(group, "0", {2, 3}, H5P_DEFAULT);
    write_numbers(group, "1", {4, 4}, created({2, 2}, true));
    H5Gclose(group);
    H5Fclose(file);
  }
  const std::string whole = read_file(path);
  int read = 0, refused = 0;
  for (size_t at = 0; at < whole.size(); ++at) {
    if (whole[at] == '\0' && at % 31 != 0) continue;
    for (const char change : {'\x01', '\xff'}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ change);
      folder.write("a.h5", damaged);
      try {
        const Hdf5File file(path);
        for (const auto& child : file.children("layer")) file.floats("layer/" + child.name);
        ++read;
      } catch (const Error&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(read, 100);
  EXPECT_GT(refused, 500);
}

}  // namespace hdf5_structure_test
}  // namespace crema::tests
