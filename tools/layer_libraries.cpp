#include "tools/layer_libraries.h"

#include <dlfcn.h>

#include "base/error.h"
#include "base/strings.h"
#include "layers/custom_types.h"

namespace crema {

void load_layers(const std::string& files) {
  for (const std::string& file : split(files, ',')) {
    if (file.empty()) continue;
    const size_t before = custom_layer_types().size();
    // Without a slash it would be looked up among the system's libraries.
    const std::string path = file.find('/') == file.npos ? "./" + file : file;
    if (!dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) fail("-layers: ", dlerror());
    require(custom_layer_types().size() > before, "-layers: ", file,
            " registers no layers: call crema::register_layer() where a static object is made");
  }
}

}  // namespace crema
