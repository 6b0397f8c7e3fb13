#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Gives `tools/sass_report` ($1) a cuobjdump that prints a kernel written here: its loops, what a turn of them holds, the stalls of the
# control codes, each limit that is passed, zeroes that are read too early, and a machine without cuobjdump.
# shellcheck disable=SC2016  # backquotes are the table's
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# A loop, 2 of whose instructions a branch skips, that holds a loop that reads shared memory and one that waits for an mbarrier; the retry lies
# after the end. The second word's bits 41 to 44 are the stall.
cat > code << 'CODE'
0000 S2R R0, SR_TID.X
0010 SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R2], R3
0020 @!P0 BRA 0xe0
0030 WARPGROUP.ARRIVE
0040 HGMMA.64x128x16.F32.BF16 R24, gdesc[UR4], R24, gsb0
0050 @P1 BRA 0x80
0060 MEMBAR.ALL.GPU
0070 MUFU.EX2 R1, R1
0080 LDS.64 R4, [R6]
0090 FADD R7, R5, R1
00a0 @P3 BRA 0x80
00b0 WARPGROUP.DEPBAR.LE gsb0, 0x0
00c0 @P2 BRA 0x10
00d0 EXIT
00e0 SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R2], R3
00f0 @!P0 BRA 0xe0
0100 BRA 0x30
CODE
cat > cuobjdump << 'DUMP'
#!/bin/bash
printf 'arch = sm_90a\n Function add_kernel:\n  REG:40 STACK:0 SHARED:64 LOCAL:0\n\t\tFunction : add_kernel\n'
while read -r at code; do
  printf '        /*%s*/   %s ;   /* 0x0000000000000000 */\n              /* 0x%016x */\n' "$at" "$code" $((3 << 41))
done < code
DUMP
chmod +x cuobjdump
export CUOBJDUMP=$work/cuobjdump

run() {  # run STATUS TEXT ARGUMENTS…: the tool's exit status, and a piece of what it prints
  local status=0 report
  report=$("$tool" "${@:3}" 2>&1) || status=$?
  if [[ $status -ne $1 || $report != *"$2"* ]]; then
    echo "sass_report ${*:3}: expected status $1 and '$2', got $status and: $report"
    exit 1
  fi
}
tool=$1

run 0 '| `add_kernel` | 40 | products | 13 (10) | 30 | HGMMA 1, FFMA 1, MUFU 1, LDS 1, SYNCS 1, MEMBAR 1,' add.o
run 0 'issue 13, tensor 64, MUFU 8, shared memory 8 | tensor |' add.o
limit() { echo "add add_kernel $1" > limits; }
limit 'products MEMBAR.ALL.GPU 0' && run 1 'limits:1: 1 MEMBAR.ALL.GPU in a loop of products, at most 0: add_kernel' --limits limits add.o
limit 'products MEMBAR.ALL.GPU 1' && run 0 'add: 1 loops of products' --limits limits add.o
limit 'products instructions/HGMMA 9' && run 1 '13 instructions/HGMMA' --limits limits add.o
limit 'products after-wait:MUFU.EX2 0' && run 0 '' --limits limits add.o
limit 'kernel SYNCS 1' && run 1 '2 SYNCS in a loop of kernel' --limits limits add.o
limit 'products looped:LDS 0' && run 1 '1 looped:LDS in a loop of products, at most 0' --limits limits add.o
limit 'products looped:MUFU 0' && run 0 '' --limits limits add.o
limit 'products alone:LDS 0' && run 1 '1 alone:LDS' --limits limits add.o
limit 'products alone:LDS 1' && run 0 '' --limits limits add.o
limit 'products fewest:instructions 9' && run 1 '10 fewest:instructions in a loop of products' --limits limits add.o
limit 'products fewest:MEMBAR 0' && run 0 '' --limits limits add.o
limit 'products least:LDS 0' && run 1 '1 least:LDS in a loop of products' --limits limits add.o
limit 'outside instructions 1' && run 1 '2 instructions in a loop of outside' --limits limits add.o
limit 'outside instructions/EXIT 2' && run 0 '' --limits limits add.o
limit 'loads CCTL 0' && run 1 'no kernel of add that matches add_kernel has a loop of loads' --limits limits add.o
limit 'products CCTL 0' && run 1 'no line for other' --limits limits other.o
limit 'products CCTL' && run 1 'expected NAME KERNEL LOOP WHAT MOST' --limits limits add.o
run 1 'has no machine code of such kernels for sm_80' --arch sm_80 add.o
# Two loops, of which one multiplies by twice as many instructions.
printf '%s\n' '0000 HMMA.16816.F32 R4, R8, R12, R4' '0010 @P0 BRA 0x0' '0020 HMMA.16816.F32 R4, R8, R12, R4' '0030 IADD3 R1, R1, 0x1, RZ' \
  '0040 @P0 BRA 0x20' '0050 EXIT' > code
limit 'products IADD 0' && run 1 '1 IADD in a loop of products, at most 0' --limits limits add.o
limit 'products least:IADD 0' && run 0 'add: 2 loops of products' --limits limits add.o
# A loop of wgmma, and beside it an epilogue's with mma.sync.
printf '%s\n' '0000 HGMMA.64x128x16.F32.BF16 R24, gdesc[UR4], R24, gsb0' '0010 @P0 BRA 0x0' '0020 MEMBAR.ALL.GPU' '0030 @P1 BRA 0x60' \
  '0040 HMMA.16816.F32 R4, R8, R12, R4' '0050 @P2 BRA 0x20' '0060 LDS.64 R4, [R6]' '0070 @P2 BRA 0x20' '0080 EXIT' > code
limit 'products MEMBAR 0' && run 0 'add: 1 loops of products' --limits limits add.o
limit 'products instructions/HGMMA 2' && run 0 'add: 1 loops of products' --limits limits add.o
limit 'warp-products MEMBAR 0' && run 1 '1 MEMBAR in a loop of warp-products, at most 0: add_kernel' --limits limits add.o
limit 'warp-products fewest:LDS 0' && run 0 'add: 1 loops of warp-products' --limits limits add.o
limit 'warp-products LDS 0' && run 1 '1 LDS in a loop of warp-products' --limits limits add.o
CUOBJDUMP=$work/nothing run 77 'skipped, cuobjdump was not found' add.o

# What ptxas 13.0.88 made of `cond ? pointer : nullptr` and a comparison: stalls of 1, 1, 2 and 1 between the CS2R and the ISETP, where other
# code has 7. Each line: the stall, then the instruction.
hazard() {  # hazard STATUS TEXT LINE…: the code that --hazards reads
  rm -f code
  local at=0
  for line in "${@:3}"; do
    printf '%04x %s\n' "$((at++ * 16))" "$line" >> code
  done
  run "$1" "$2" --hazards add.o
}
cat > cuobjdump << 'DUMP'
#!/bin/bash
printf 'arch = sm_90a\n Function add_kernel:\n  REG:40 STACK:0 SHARED:64 LOCAL:0\n\t\tFunction : add_kernel\n'
while read -r at stall code; do
  printf '        /*%s*/   %s ;   /* 0x0000000000000000 */\n              /* 0x%016x */\n' "$at" "$code" $((stall << 41))
done < code
DUMP
zero='1 CS2R R14, SRZ' over='2 @!P0 IMAD.WIDE R14, R5, 0x4, R26' compare='5 ISETP.NE.U32.AND P0, PT, R14, RZ, PT'
hazard 1 'ISETP.NE.U32.AND at 0x40 reads R14 5 cycles after the CS2R at 0x0, expected 7: add_kernel' \
  "$zero" '1 IADD3 R3, R3, 0x1, RZ' "$over" '1 IADD3 R4, R4, 0x1, RZ' "$compare"
hazard 0 '1 kernels for sm_90a, 1 CS2R of zeros, 0 read too early' "$zero" '3 IADD3 R3, R3, 0x1, RZ' "$over" '1 IADD3 R4, R4, 0x1, RZ' "$compare"
sed -i 's/sm_90a/sm_80/' cuobjdump  # one cycle less
hazard 0 '0 read too early' "$zero" '2 IADD3 R3, R3, 0x1, RZ' "$over" '1 IADD3 R4, R4, 0x1, RZ' "$compare"
hazard 1 'reads R14 5 cycles after the CS2R at 0x0, expected 6' "$zero" '1 IADD3 R3, R3, 0x1, RZ' "$over" '1 IADD3 R4, R4, 0x1, RZ' "$compare"
hazard 1 'LDG.E at 0x20 reads R15 3 cycles' "$zero" "$over" '4 LDG.E R20, desc[UR4][R14.64]'
hazard 1 'STG.E.64 at 0x10 reads R15 1 cycles' '1 CS2R R14, SRZ' '4 STG.E.64 desc[UR4][R2.64], R14'
hazard 1 'DADD at 0x10 reads R15' "$zero" '4 DADD R8, R14, R10'
hazard 1 'IMAD.WIDE at 0x10 reads R15' "$zero" '4 IMAD.WIDE R8, R2, 0x8, R14'
hazard 1 'at 0x20 reads R14 3 cycles' "$zero" '2 @P1 BRA 0x30' "$compare" '5 EXIT'
hazard 0 '0 read too early' "$zero" "$over" '4 @!P0 LDG.E R20, desc[UR4][R14.64]'     # reads what was written over the zero
hazard 1 'LDG.E at 0x30' "$zero" "$over" '1 ISETP.NE.AND P0, PT, R9, RZ, PT' '4 @!P0 LDG.E R20, desc[UR4][R14.64]'
hazard 0 '0 read too early' "$zero" '2 IMAD.WIDE R14, R5, 0x4, R26' "$compare"        # nothing of the zero is left
hazard 0 '0 read too early' "$zero" '2 IADD3 R14, R5, 0x4, R26' "$compare"
hazard 0 '0 read too early' "$zero" '2 BRA 0x30' "$compare" '5 EXIT'
hazard 0 '0 read too early' '1 CS2R R14, SR_CLOCKLO' "$compare"
hazard 0 '0 read too early' "$zero" '4 IADD3 R8, R13, UR14, R16'
echo 'loops, counts, stalls, each limit and zeroes read too early'
