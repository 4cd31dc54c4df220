#include "tools/runs/loaded_libraries.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <google/protobuf/stubs/common.h>
#include <link.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>

#include "base/strings.h"

namespace crema {
namespace {

template <typename Function>
Function* function_in(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

// As cuDNN, CUDA and NCCL count: 91400 is 9.14.0 with 10000 and 100.
std::string in_parts(int version, int major, int minor) {
  return cat(version / major, ".", version % major / minor, ".", version % minor);
}

std::string of_onednn(void* library) {
  struct Version {
    int major, minor, patch;
  };
  const auto version = function_in<const Version*()>(library, "dnnl_version");
  return version ? cat(version()->major, ".", version()->minor, ".", version()->patch) : "";
}

std::string of_hdf5(void* library) {
  unsigned major = 0, minor = 0, patch = 0;
  const auto version =
      function_in<int(unsigned*, unsigned*, unsigned*)>(library, "H5get_libversion");
  if (!version || version(&major, &minor, &patch) < 0) return "";
  return cat(major, ".", minor, ".", patch);
}

std::string of_lmdb(void* library) {
  int major = 0, minor = 0, patch = 0;
  const auto version = function_in<const char*(int*, int*, int*)>(library, "mdb_version");
  if (!version) return "";
  version(&major, &minor, &patch);
  return cat(major, ".", minor, ".", patch);
}

std::string of_cuda(void* library) {
  int number = 0;
  const auto version = function_in<int(int*)>(library, "cudaRuntimeGetVersion");
  return version && version(&number) == 0 ? cat(number / 1000, ".", number % 1000 / 10) : "";
}

std::string of_cudnn(void* library) {
  const auto version = function_in<size_t()>(library, "cudnnGetVersion");
  return version ? in_parts(static_cast<int>(version()), 10000, 100) : "";
}

std::string of_cublas(void* library) {
  const auto part = function_in<int(int, int*)>(library, "cublasGetProperty");
  int parts[3] = {};
  for (int i = 0; i < 3; ++i) {
    if (!part || part(i, &parts[i]) != 0) return "";
  }
  return cat(parts[0], ".", parts[1], ".", parts[2]);
}

std::string of_nccl(void* library) {
  int number = 0;
  const auto version = function_in<int(int*)>(library, "ncclGetVersion");
  return version && version(&number) == 0 ? in_parts(number, 10000, 100) : "";
}

// "4.6.0" of libopencv_core.so.4.6.0: of the file that the name in the loader's list leads to.
std::string of_file(const std::string& path) {
  std::error_code none;
  const std::string name = std::filesystem::canonical(path, none).filename().string();
  const size_t suffix = name.find(".so.");
  return suffix == std::string::npos ? name : name.substr(suffix + 4);
}

struct Library {
  const char *name, *file;
  std::function<std::string(void*)> version;  // none: the file's name says it
};

const std::vector<Library>& known_libraries() {
  static const std::vector<Library> all = {
      {"oneDNN", "libdnnl.so", of_onednn},   {"OpenBLAS", "libopenblas", {}},
      {"MKL", "libmkl_rt.so", {}},           {"OpenMP", "libgomp.so", {}},
      {"OpenCV", "libopencv_core.so", {}},   {"TurboJPEG", "libturbojpeg.so", {}},
      {"LMDB", "liblmdb.so", of_lmdb},       {"LevelDB", "libleveldb.so", {}},
      {"HDF5", "libhdf5", of_hdf5},          {"CUDA", "libcudart.so", of_cuda},
      {"cuBLAS", "libcublas.so", of_cublas}, {"cuDNN", "libcudnn.so", of_cudnn},
      {"NCCL", "libnccl.so", of_nccl}};
  return all;
}

int add_path(dl_phdr_info* info, size_t, void* paths) {
  if (info->dlpi_name && *info->dlpi_name)
    static_cast<std::vector<std::string>*>(paths)->emplace_back(info->dlpi_name);
  return 0;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> loaded_libraries() {
  std::vector<std::string> paths;
  dl_iterate_phdr(add_path, &paths);
  std::vector<std::pair<std::string, std::string>> found = {
      {"glibc", gnu_get_libc_version()},
      {"protobuf", google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION)}};
  for (const Library& library : known_libraries()) {
    const auto path = std::find_if(paths.begin(), paths.end(), [&](const std::string& one) {
      return starts_with(one.substr(one.rfind('/') + 1), library.file);
    });
    if (path == paths.end()) continue;
    std::string version;
    if (void* const open = dlopen(path->c_str(), RTLD_LAZY | RTLD_NOLOAD)) {
      if (library.version) version = library.version(open);
      dlclose(open);
    }
    found.emplace_back(library.name, version.empty() ? of_file(*path) : version);
  }
  return found;
}

std::string gpu_driver() {
  // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul 27 ..."
  std::ifstream file("/proc/driver/nvidia/version");
  for (std::string word; file >> word && word != "GCC";) {
    if (word.find('.') != std::string::npos &&
        word.find_first_not_of("0123456789.") == std::string::npos)
      return word;
  }
  int number = 0;
  const auto version = function_in<int(int*)>(RTLD_DEFAULT, "cudaDriverGetVersion");
  if (!version || version(&number) != 0 || number == 0) return "";
  return cat("of CUDA ", number / 1000, ".", number % 1000 / 10);
}

}  // namespace crema
