#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# flash_attention.sh CUTLASS FLASH-ATTENTION: builds FlashAttention-2's forward without PyTorch, for f16 and heads of 64, and runs it.
# For version 3 add -DHOPPER, the include folder FLASH-ATTENTION/hopper, and compute_90a.
set -euo pipefail
[[ $# == 2 ]] || { sed -n '3,4s/^# //p' "$0"; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)/flash_attention
off=()
for o in DROPOUT ALIBI LOCAL SOFTCAP VARLEN PAGEDKV SPLIT APPENDKV PACKGQA; do off+=("-DFLASHATTENTION_DISABLE_$o"); done
nvcc -O2 -std=c++17 -cudart shared --expt-relaxed-constexpr --expt-extended-lambda -gencode arch=compute_80,code=compute_80 \
  "${off[@]}" -I "$here" -I "$1/include" -I "$2/csrc/flash_attn/src" -DELEMENT=half_t -DHEAD=64 "$here/flash_attention.cu" -o attention -lcuda
weft-emulate ./attention
