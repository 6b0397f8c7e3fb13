#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Plants a test without its GPU twin, and one with, and expects gpu_twins.sh ($1) to find just the first.
set -euo pipefail
check=$1
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree"/{nn,simt}
echo 'for (const DeviceKind kind : test_devices()) run(kind, DeviceKind::simt);' > "$tree/nn/good.cpp"
echo 'run(DeviceKind::simt);' > "$tree/simt/emulator.cpp"
"$check" "$tree"
echo 'run(DeviceKind::simt);' > "$tree/nn/bad.cpp"
status=0
report=$("$check" "$tree") || status=$?
expected='gpu_twins: ./nn/bad.cpp runs on simt and never on cuda: take its devices from tests/support/devices.h'
if [[ $status -ne 1 || $report != "$expected" ]]; then
  echo "expected status 1 and '$expected', got $status and '$report'"
  exit 1
fi
