#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Writes multi_config.yaml, which weft-run (and accelerate launch) read, for NNODES machines.
set -euo pipefail
new=$(mktemp multi_config.yaml.XXXXXX)
cat > "$new" <<YAML
compute_environment: LOCAL_MACHINE
distributed_type: MULTI_GPU
num_machines: ${NNODES:?is not set}
mixed_precision: "${MIXED_PRECISION:-no}"
dynamo_backend: "no"
YAML
mv "$new" multi_config.yaml  # in one go: other nodes may be looking
