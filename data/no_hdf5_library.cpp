// SPDX-License-Identifier: Apache-2.0
#include "data/hdf5_state.h"

namespace weft::data {

std::string describe_hdf5() { return "built without HDF5"; }

}  // namespace weft::data
