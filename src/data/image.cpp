#include "data/image.h"

#include <dlfcn.h>

#include "base/error.h"
#include "base/files.h"
#include "data/image_module.h"

namespace crema {
namespace {

const ImageModule& load_module() {
#ifdef CREMA_OPENCV
  // Beside this library. By its whole path: a search would depend on who intercepts dlopen.
  Dl_info self{};
  dladdr(reinterpret_cast<void*>(&load_module), &self);
  const std::string path = folder_of(self.dli_fname) + "/libcrema_images.so";
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) fail("the part of this program that handles image files is missing: ", dlerror());
  using Entry = const ImageModule* (*)();
  return *reinterpret_cast<Entry>(dlsym(library, "crema_image_module"))();
#else
  fail(
      "this program was built without OpenCV and cannot handle image files; build with "
      "-DCREMA_OPENCV=ON");
#endif
}

const ImageModule& images() {
  static const ImageModule& loaded = load_module();
  return loaded;
}

}  // namespace

void decode_image(std::string_view file, Color color, Image& image) {
  images().decode(file, color, image);
}

void resize_image(int64_t height, int64_t width, Image& image) {
  images().resize(height, width, image);
}

std::string encode_image(const Image& image, const std::string& kind) {
  return images().encode(image, kind);
}

}  // namespace crema
