#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gpu_twins.sh TESTS: every test file that names the emulated GPU must name the real one too, or leave the choice to
# support/devices.h; the emulator's own tests (simt) are exempt. Prints the files that do not, and exits 1.
set -euo pipefail
cd "$1"
bad=0
while read -r file; do
  if ! grep -qE 'DeviceKind::cuda|test_devices\(|runs_on\(|"cuda"' "$file"; then
    echo "gpu_twins: $file runs on simt and never on cuda: take its devices from tests/support/devices.h"
    bad=1
  fi
done < <(grep -rlE 'DeviceKind::simt|"simt"|--device simt' --include='*.cpp' --include='*.h' . | grep -v '^\./simt/' | sort)
exit $bad
