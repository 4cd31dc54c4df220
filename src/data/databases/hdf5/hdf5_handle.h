// Code shared by the reader and the writer of HDF5 files. Only their .cpp files include this, to
// keep <hdf5.h> out of other files.
#pragma once

#include <mutex>

#include "data/databases/hdf5/hdf5_functions.h"

namespace crema {

// An identifier of the library and the function that releases it.
class Hdf5Handle {
 public:
  Hdf5Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  ~Hdf5Handle() {
    if (id_ >= 0) close_(id_);
  }
  Hdf5Handle(const Hdf5Handle&) = delete;
  Hdf5Handle& operator=(const Hdf5Handle&) = delete;
  operator hid_t() const { return id_; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

// Held during library calls: a snapshot is written while the training thread reads its data, and
// the library has global state that only some builds protect.
using Hdf5Turn = std::unique_lock<std::recursive_mutex>;
Hdf5Turn hdf5_turn();

// For calls of the library: one thread's turn, in which it does not print its errors, which become
// exceptions here.
class Hdf5Quiet {
 public:
  Hdf5Quiet() {
    H5Eget_auto2(H5E_DEFAULT, &print_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  ~Hdf5Quiet() { H5Eset_auto2(H5E_DEFAULT, print_, data_); }
  Hdf5Quiet(const Hdf5Quiet&) = delete;
  Hdf5Quiet& operator=(const Hdf5Quiet&) = delete;

 private:
  Hdf5Turn turn_ = hdf5_turn();
  H5E_auto2_t print_ = nullptr;
  void* data_ = nullptr;
};

}  // namespace crema
