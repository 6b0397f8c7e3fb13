# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Runs as a program of Weft leaves them, without a program.
unset COLUMNS

# end RUN: the events of a session that has ended well.
end() { base64 -d >"$1"/events.out.tfevents.1.host.1.0 <<<"GAAAAAAAAACjf0siCXcAPVU1w9pBGg1icmFpbi5FdmVudDoyLRDh2VEAAAAAAAAAnKHZvAnNpVdVNcPaQRAAKkQKQgoaX2hwYXJhbXNfL3Nlc3Npb25fZW5kX2luZm9CCAgBEgQSAggAShoKGAoHaHBhcmFtcxINIgsIARHDpVdVNcPaQQRRmBU="; }

# run RUN START [STEPS]: a run of 20 steps, which has not ended: losses that fall as START / step, and a gradient that is negative or 1.
run() {
  mkdir -p "$1"
  printf 'wandb_version: 1\n\nlr:\n  value: %s\n\nmodel:\n  value: cnn\n' "$2" >"$1"/config.yaml
  awk -v start="$2" -v steps="${3:-20}" 'BEGIN { for (step = 1; step <= steps; ++step)
    printf "{\"step\":%d,\"train_loss\":%.9g,\"val_loss\":%.9g,\"grad\":1}\n", step, start / step, 2 * start / step }' >"$1"/metrics.jsonl
}

# ended RUN START [STEPS]: such a run, which has ended.
ended() { run "$@" && end "$1"; }
