// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "io/hdf5/hdf5_state.h"

int main() { std::puts(weft::describe_hdf5().c_str()); }
