// SPDX-License-Identifier: Apache-2.0
#include "apps/vista/regression.h"

int main(int argc, char** argv) { return weft::vista::train(argc, argv, /*several=*/false); }
