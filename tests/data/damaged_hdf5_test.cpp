#include <gtest/gtest.h>
#include <hdf5.h>

#include <functional>

#include "data/databases/hdf5/hdf5_file.h"
#include "data/databases/hdf5/hdf5_source.h"
#include "data/databases/hdf5/hdf5_writer.h"
#include "fixtures.h"
#include "net/weights/weights_hdf5.h"
#include "solver/snapshot/state_file.h"

namespace crema::tests {
namespace damaged_hdf5_test {

using Extents = std::vector<hsize_t>;

hid_t text_type(size_t size) {
  const hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, size);
  return type;
}

hid_t pair_type() {
  const hid_t type = H5Tcreate(H5T_COMPOUND, 16);
  H5Tinsert(type, "a", 0, H5T_NATIVE_DOUBLE);
  H5Tinsert(type, "b", 8, H5T_NATIVE_DOUBLE);
  return type;
}

hid_t long_number() {
  const hid_t type = H5Tcopy(H5T_NATIVE_INT64);
  H5Tset_size(type, 4096);
  return type;
}

hid_t space_of(const Extents& extents) {
  return extents.empty()
             ? H5Screate(H5S_SCALAR)
             : H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr);
}

hid_t chunked(const Extents& chunk, bool deflate) {
  const hid_t made = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(made, static_cast<int>(chunk.size()), chunk.data());
  if (deflate) H5Pset_deflate(made, 9);
  return made;
}

hid_t in_another_file(const std::string& path) {
  const hid_t made = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_external(made, path.c_str(), 0, 64);
  return made;
}

// Written by the library itself, with all identifiers left to the end of the file.
struct Hostile {
  const char* name;
  hid_t type;
  Extents extents;
  const char* as_numbers;  // parts of the messages; empty: it can be read
  const char* as_text;
  hid_t made = H5P_DEFAULT;
};

std::vector<Hostile> hostile_datasets(const Folder& folder) {
  const hid_t number = H5T_NATIVE_FLOAT;
  const hsize_t huge = hsize_t{1} << 44;
  return {
      {"texts", text_type(8), {100}, "holds no numbers, but texts", "is 100 texts"},
      {"table", text_type(8), {10, 10}, "holds no numbers, but texts", "is 10x10 texts"},
      {"variable",
       text_type(H5T_VARIABLE),
       {},
       "holds no numbers, but texts",
       "texts of variable length"},
      {"long_text", text_type(size_t{1} << 31), {}, "holds no numbers", "claims to have"},
      {"huge_texts", text_type(8), {huge}, "holds no numbers", "texts; it should be one"},
      {"pairs", pair_type(), {3}, "but compounds", "but holds compounds"},
      {"lists", H5Tvlen_create(number), {3}, "but lists of variable length", "but holds lists"},
      {"numbers", number, {3}, "", "but holds numbers"},
      {"long_numbers", long_number(), {3}, "numbers of 4096 bytes", "but holds numbers"},
      {"huge", number, {huge}, "claims to have 17592186044416 values", "but holds numbers"},
      {"overflow", number, {huge, hsize_t{1} << 20}, "claims to have", "but holds numbers"},
      {"huge_chunk",
       number,
       {4},
       "claims to have",
       "but holds numbers",
       chunked({hsize_t{1} << 29}, true)},
      {"huge_chunks",
       number,
       {huge, 1024},
       "claims to have",
       "but holds numbers",
       chunked({1024, 1024}, true)},
      {"outside",
       number,
       {16},
       "keeps its values in other files",
       "but holds numbers",
       in_another_file(folder.file("raw"))},
  };
}

void write_dataset(hid_t file, const Hostile& of, const std::string& name) {
  const hid_t links = H5Pcreate(H5P_LINK_CREATE);
  H5Pset_create_intermediate_group(links, 1);
  const hid_t extendible = of.made != H5P_DEFAULT && H5Pget_layout(of.made) == H5D_CHUNKED;
  Extents maximum = of.extents;
  if (extendible) maximum[0] = H5S_UNLIMITED;
  const hid_t space = extendible ? H5Screate_simple(static_cast<int>(maximum.size()),
                                                    of.extents.data(), maximum.data())
                                 : space_of(of.extents);
  const hid_t made = H5Dcreate2(file, name.c_str(), of.type, space, links, of.made, H5P_DEFAULT);
  EXPECT_GE(made, 0) << name;
  H5Dclose(made);
  H5Sclose(space);
  H5Pclose(links);
}

class Made {
 public:
  explicit Made(const std::string& path)
      : id(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)) {}
  ~Made() { H5Fclose(id); }
  const hid_t id;
};

TEST(DamagedHdf5, WhatIsReadIsHeldToWhatIsExpected) {
  const Folder folder;
  const std::string path = folder.file("hostile.h5");
  const std::vector<Hostile> datasets = hostile_datasets(folder);
  {
    const Made file(path);
    for (const Hostile& hostile : datasets) write_dataset(file.id, hostile, hostile.name);
  }
  const Hdf5File file(path);
  const auto expect = [&](const char* name, const char* message, const auto& read) {
    SCOPED_TRACE(name);
    if (*message == '\0') return read();
    const std::string error = error_of(read);
    expect_part(error, path + ": ");
    expect_part(error, cat("\"", name, "\""));
    expect_part(error, message);
  };
  for (const auto& of : datasets) {
    expect(of.name, of.as_numbers, [&] { file.shape(of.name); });
    expect(of.name, of.as_numbers, [&] { file.floats(of.name); });
    expect(of.name, of.as_numbers, [&] { file.integers(of.name); });
    expect(of.name, of.as_text, [&] { file.text(of.name); });
  }
  expect("numbers", "has 3 numbers; it should be one", [&] { file.real("numbers"); });
}

TEST(DamagedHdf5, AttributesAreHeldToWhatIsExpected) {
  const Folder folder;
  const std::string path = folder.file("hostile.h5");
  std::vector<Hostile> attributes = hostile_datasets(folder);
  std::erase_if(attributes, [](const Hostile& of) {
    hsize_t count = 1;
    for (hsize_t extent : of.extents) count *= std::min<hsize_t>(extent, 100000);
    return of.made != H5P_DEFAULT || count * std::min<size_t>(H5Tget_size(of.type), 100000) > 60000;
  });
  EXPECT_GE(attributes.size(), 5u);
  {
    const Made file(path);
    for (const Hostile& of : attributes) {
      const hid_t space = space_of(of.extents);
      const hid_t made = H5Acreate2(file.id, of.name, of.type, space, H5P_DEFAULT, H5P_DEFAULT);
      EXPECT_GE(made, 0) << of.name;
      // Attributes are stored when they are written to.
      const std::string zeros(60000, '\0');
      if (H5Tget_class(of.type) != H5T_VLEN && H5Tis_variable_str(of.type) <= 0)
        H5Awrite(made, of.type, zeros.data());
      H5Aclose(made);
      H5Sclose(space);
    }
  }
  const Hdf5File file(path);
  for (const Hostile& of : attributes) {
    SCOPED_TRACE(of.name);
    expect_part(error_of([&] { file.attribute(of.name, ""); }), cat("\"", of.name, "\""));
    expect_part(error_of([&] { file.attribute(of.name, 0.0); }), cat("\"", of.name, "\""));
  }
  EXPECT_EQ(file.attribute("none", 2.5), 2.5);
  EXPECT_EQ(file.attribute("none", "none"), "none");
}

// Every one of these was written over a solver state's texts and numbers.
TEST(DamagedHdf5, SolverStatesWithHostileDatasetsAreRefused) {
  const Folder folder;
  SolverState state;
  state.set_iter(7);
  state.set_learned_net("net.caffemodel.h5");
  state.set_loss_scale(2);
  BlobProto& blob = *state.add_history();
  blob.mutable_shape()->add_dim(3);
  blob.mutable_data()->Resize(3, 1);
  const std::string path = folder.file("net.solverstate.h5");
  const struct {
    const char* name;
    bool text;
  } fields[] = {
      {"learned_net", true}, {"iter", false}, {"loss_scale", false}, {"history/0", false}};
  for (const Hostile& of : hostile_datasets(folder)) {
    for (const auto& field : fields) {
      const char* message = field.text ? of.as_text : of.as_numbers;
      if (*message == '\0') continue;
      SCOPED_TRACE(cat(of.name, " as ", field.name));
      write_solver_state(state, path, true);
      {
        const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
        H5Ldelete(file, field.name, H5P_DEFAULT);
        write_dataset(file, of, field.name);
        H5Fclose(file);
      }
      const std::string error = error_of([&] { read_solver_state(path); });
      expect_part(error, cat(path, ": dataset \"", field.name, "\""));
    }
  }
  write_solver_state(state, path, true);
  EXPECT_EQ(read_solver_state(path).learned_net(), "net.caffemodel.h5");
}

TEST(DamagedHdf5, RowsThatAFileCannotHaveAreRefused) {
  const Folder folder;
  for (const Hostile& of : hostile_datasets(folder)) {
    if (*of.as_numbers == '\0') continue;
    SCOPED_TRACE(of.name);
    {
      const Made file(folder.file("a.h5"));
      write_dataset(file.id, of, "data");
    }
    folder.write("list.txt", "a.h5\n");
    const std::string error = error_of([&] { Hdf5Source(folder.file("list.txt"), {"data"}); });
    expect_part(error, folder.file("a.h5") + ": dataset \"data\"");
    expect_part(error, of.as_numbers);
  }
}

// Compressed values may take less room in the file than in memory, and values that were never
// written none at all.
TEST(DamagedHdf5, CompressedAndUnwrittenValuesAreRead) {
  const Folder folder;
  {
    const Made file(folder.file("a.h5"));
    const Extents extents{20000000};
    const hid_t space = space_of(extents), made = chunked({100000}, true);
    const hid_t data =
        H5Dcreate2(file.id, "compressed", H5T_NATIVE_FLOAT, space, H5P_DEFAULT, made, H5P_DEFAULT);
    const std::vector<float> values(extents[0], 3);
    H5Dwrite(data, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    H5Dclose(data);
    write_dataset(file.id, {"", H5T_NATIVE_FLOAT, {1000}, "", ""}, "unwritten");
  }
  ASSERT_LT(std::filesystem::file_size(folder.file("a.h5")), 1000000u);
  const Hdf5File file(folder.file("a.h5"));
  EXPECT_EQ(file.floats("compressed"), std::vector<float>(20000000, 3));
  EXPECT_EQ(file.floats("unwritten"), std::vector<float>(1000, 0));
}

struct Links {
  const char* name;
  std::function<void(hid_t)> make;
  const char* message;
};

TEST(DamagedHdf5, WeightsWhoseGroupsHaveNoEndAreRefused) {
  const Folder folder;
  const std::string path = folder.file("net.h5"), other = folder.file("other.h5");
  {
    const Made file(other);
    write_dataset(file.id, {"", H5T_NATIVE_FLOAT, {3}, "", ""}, "data/a/0");
  }
  const std::string deep = [] {
    std::string name = "data";
    for (int i = 0; i < 2000; ++i) name += "/g";
    return name;
  }();
  const Links all[] = {
      {"hard", [](hid_t file) { H5Lcreate_hard(file, "data", file, "data/a/b", 0, 0); },
       "has a second name"},
      {"of a group above",
       [](hid_t file) { H5Lcreate_hard(file, "data/a", file, "data/a/b", 0, 0); },
       "has a second name"},
      {"soft", [](hid_t file) { H5Lcreate_soft("/data", file, "data/a/b", 0, 0); },
       "has a second name"},
      {"of a dataset", [](hid_t file) { H5Lcreate_hard(file, "data/a/0", file, "data/a/1", 0, 0); },
       "has a second name"},
      {"to itself", [](hid_t file) { H5Lcreate_soft("/data/a/b", file, "data/a/b", 0, 0); }, ""},
      {"into itself by its path",
       [&](hid_t file) { H5Lcreate_external(path.c_str(), "/data", file, "data/a/b", 0, 0); },
       "\"data/a/b\" is a link into another file"},
      {"into another file",
       [&](hid_t file) { H5Lcreate_external(other.c_str(), "/data/a", file, "data/b", 0, 0); },
       "\"data/b\" is a link into another file"},
      {"a dataset of another file",
       [&](hid_t file) { H5Lcreate_external(other.c_str(), "/data/a/0", file, "data/a/1", 0, 0); },
       "\"data/a/1\" is a link into another file"},
      {"deep",
       [&](hid_t file) {
         const hid_t links = H5Pcreate(H5P_LINK_CREATE);
         H5Pset_create_intermediate_group(links, 1);
         H5Gclose(H5Gcreate2(file, deep.c_str(), links, 0, 0));
         H5Pclose(links);
       },
       "groups inside each other"},
  };
  for (const Links& links : all) {
    SCOPED_TRACE(links.name);
    {
      const Made file(path);
      write_dataset(file.id, {"", H5T_NATIVE_FLOAT, {3}, "", ""}, "data/a/0");
      links.make(file.id);
    }
    int layers = 0;
    const auto read = [&] { read_hdf5_weights(path, [&](const StoredLayer&) { ++layers; }); };
    if (*links.message == '\0') {
      read();
      EXPECT_EQ(layers, 1);
      continue;
    }
    const std::string error = error_of(read);
    expect_part(error, path + ": ");
    expect_part(error, links.message);
  }
  // A whole group "data" in another place.
  {
    const Made file(path);
    H5Lcreate_external(other.c_str(), "/data", file.id, "data", 0, 0);
  }
  expect_part(error_of([&] { read_hdf5_weights(path, [](const StoredLayer&) {}); }),
              "\"data\" is a link into another file");
}

TEST(Hdf5Writer, EqualContentIsEqualBytes) {
  const Folder folder;
  for (const std::string name : {"a.h5", "b.h5"}) {
    Hdf5Writer writer(folder.file(name));
    const float values[3] = {1, 2, 3};
    writer.floats("data/conv/0", {3}, values);
    writer.group("diff/conv");
    writer.integer("iter", 3);
    writer.integers("list", {1, 2});
    writer.text("learned_net", "some words");
    writer.commit();
  }
  EXPECT_EQ(folder.read("a.h5"), folder.read("b.h5"));
  // Times are in seconds, so equal bytes could be luck.
  const hid_t file = H5Fopen(folder.file("a.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  for (const char* name : {"/", "data", "data/conv", "data/conv/0", "diff", "diff/conv", "iter",
                           "list", "learned_net"}) {
    H5O_info_t info;
    ASSERT_GE(H5Oget_info_by_name(file, name, &info, H5P_DEFAULT), 0) << name;
    EXPECT_EQ(info.mtime, 0) << name;
    EXPECT_EQ(info.ctime, 0) << name;
  }
  H5Fclose(file);
}

}  // namespace damaged_hdf5_test
}  // namespace crema::tests
