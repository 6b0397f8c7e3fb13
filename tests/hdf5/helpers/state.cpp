// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "data/hdf5_state.h"

int main() { std::puts(weft::data::describe_hdf5().c_str()); }
