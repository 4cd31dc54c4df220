// Descriptions of a file or folder that was given instead of something else.
#include "data/databases/given_file.h"

#include "data/databases/database_writer.h"
#include "fixtures.h"

namespace crema::tests {
namespace given_file_test {

using namespace std::string_literals;

struct Row {
  std::string bytes;
  const char* kind;
};

const Row kRows[] = {
    {"", "an empty file"},
    {"\xff\xd8\xff\xe0 JFIF", "a JPEG picture"},
    {"\x89PNG\r\n\x1a\n\0"s, "a PNG picture"},
    {"P5\n3 2\n255\n", "a picture (PGM)"},
    {"PK\x03\x04 archive/data.pkl \0"s, "a PyTorch file (.pth)"},
    {"PK\x03\x04 weight.npy \0"s, "a NumPy archive (.npz)"},
    {"\x93NUMPY\x01\0"s, "a NumPy array (.npy)"},
    {"\x10\0\0\0\0\0\0\0{\"a\":{}"s, "a safetensors file"},
    {"\x1c\0\0\0TFL3\0"s, "a TensorFlow Lite model"},
    {"\x80\x02}q\0"s, "a pickle of Python"},
    {"\x1f\x8b\x08\0"s, "a file packed by gzip"},
    {"\0\0\x08\x03\0\0\0\x06"s, "images in MNIST's IDX format"},
    // Messages: the numbers of their first fields tell.
    {"\x0a\x03net\xa2\x06\x02\x0a\0"s, "weights (.caffemodel)"},
    {"\x0a\x03net\x12\x02\x22\0"s, "weights (.caffemodel)"},
    {"\x08\x05\x12\x01w\x1a\0"s, "a solver state (.solverstate)"},
    {"\x08\x01\x10\x03\x18\x01\x20\x01\x2a\x04\0\0\0\0"s,
     "an array of Caffe (.binaryproto), such as a mean"},
    {"\x08\x07\x12\x07pytorch\x3a\x02\x0a\0"s, "an ONNX model"},
    {"\x01\xff\xff\x07"s, "a file of unknown format"},
    {"name: \"net\"\nlayer { name: \"base_lr:\" }", "a net"},
    {"# net: \"x\"\nlayers {\n  type: DATA }", "a net"},
    {"# made of table.csv 1\nlayer { type: \"ReLU\" }", "a net"},
    {"net: \"train_val.prototxt\"\nbase_lr: 0.1", "a solver"},
    {"item { name: \"cat\" label: 1 }", "a label map"},
    {"<!DOCTYPE html>\n<html>", "a web page"},
    {"version https://git-lfs.github.com/spec/v1", "a pointer of Git LFS"},
    {"cat/a.jpg 0\ndog/b.jpg 1", "a list of files"},
    {"[1].jpg 0\n", "a list of files"},
    {"/data/train_0.h5\n", "a list of HDF5 files"},
    {"{\"iteration\":0,\"kind\":\"start\"}", "the metrics of a training run"},
    {"{\"images\": []}", "a JSON file"},
    {"5.1,3.5,setosa", "a table"},
    {"I1128 12:40:10.5 12088 main.cpp:82] Using CPU", "the log of a training run"},
    {"cat\ndog\n", "a text"},
};

TEST(GivenFile, IsRecognizedByItsFirstBytes) {
  const Folder folder;
  for (const Row& row : kRows) {
    folder.write("file", row.bytes);
    EXPECT_EQ(kind_of(folder.file("file")).what, row.kind) << row.bytes;
  }
  EXPECT_EQ(what_it_is(folder.file("gone")), "");
}

TEST(GivenFile, NamesTheLayerOfADatabase) {
  const Folder folder;
  AnnotatedDatum annotated;
  annotated.mutable_datum()->set_data("abc");
  const auto boxes = create_lmdb(folder.file("boxes"));
  boxes->put("0", annotated);
  boxes->finish();
  expect_part(what_it_is(folder.file("boxes")),
              "; it is an LMDB: a layer of type AnnotatedData reads its records");
  SparseDatum sparse;
  sparse.set_size(4);
  sparse.add_indices(1);
  sparse.add_data(2);
  const auto vectors = create_lmdb(folder.file("vectors"));
  vectors->put("0", sparse);
  vectors->finish();
  expect_part(what_it_is(folder.file("vectors")), "a layer of type SparseData reads");
  folder.write("pictures/cat/a.jpg", "x");
  expect_part(what_it_is(folder.file("pictures")), "; it is a folder of folders: convert_imageset");
  folder.write("run/run.json", "{}");
  expect_part(what_it_is(folder.file("run")), "; it is the folder of a training run");
  std::filesystem::create_directory(folder.file("nothing"));
  EXPECT_EQ(what_it_is(folder.file("nothing")), "; it is an empty folder");
}

}  // namespace given_file_test
}  // namespace crema::tests
