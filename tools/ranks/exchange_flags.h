// How ranks exchange gradients: -wire and -buckets.
#pragma once

#include "solver/gradient_exchange.h"

namespace crema {

ExchangeOptions exchange_of_flags();

}  // namespace crema
