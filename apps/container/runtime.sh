#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Usage: apps/container/runtime.sh PREFIX
# What both images do last: installs the packages that build.sh found the programs to need, and shows that they start.
set -euo pipefail
prefix=${1:?usage: apps/container/runtime.sh PREFIX}
export DEBIAN_FRONTEND=noninteractive
apt-get update
xargs apt-get install -y --no-install-recommends < "$prefix/share/weft/runtime_packages"
rm -rf /var/lib/apt/lists/*
"$prefix/bin/train_image" --data shapes --device cpu --model resnet8 --max-steps 1 --out /tmp/starts
rm -r /tmp/starts
