// How ranks exchange gradients: -wire and -buckets.
#pragma once

#include "solver/ranks/gradient_exchange.h"

namespace crema {

ExchangeOptions exchange_of_flags();

}  // namespace crema
