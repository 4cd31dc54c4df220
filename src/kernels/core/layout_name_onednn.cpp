#include "base/strings.h"
#include "kernels/core/onednn.h"

namespace crema::onednn {
namespace {

std::string list(const dnnl::memory::dims& numbers) {
  std::string text = ",";
  for (const auto number : numbers) text += cat(" ", number);
  return text;
}

}  // namespace

#if DNNL_VERSION_MAJOR >= 3

std::string name_of_layout(const Desc& desc) {
  return cat(list(desc.get_padded_dims()), list(desc.get_strides()), list(desc.get_inner_blks()),
             list(desc.get_inner_idxs()), ", ", desc.get_size());
}

#else

std::string name_of_layout(const Desc& desc) {
  const dnnl_memory_desc_t& data = desc.data;
  const dnnl_blocking_desc_t& blocking = data.format_desc.blocking;
  const auto some = [](const dnnl_dims_t& numbers, int count) {
    return list({numbers, numbers + count});
  };
  // Extra: the sums that follow the weights, and a factor of theirs.
  return cat(some(data.padded_dims, data.ndims), some(blocking.strides, data.ndims),
             some(blocking.inner_blks, blocking.inner_nblks),
             some(blocking.inner_idxs, blocking.inner_nblks), ", ", desc.get_size(), " ",
             data.extra.flags, " ", data.extra.compensation_mask, " ", data.extra.scale_adjust);
}

#endif

}  // namespace crema::onednn
