# weft-watch follows runs until they end

It draws again when a run has new lines.

  $ . "$WEFT"/tests/weft_watch/runs.sh
  $ run a 1; weft-watch a --follow --interval 0.1 > drawn & watch=$!
  $ shows() { for i in {1..2400}; do grep -q "$1" drawn && return; sleep 0.05; done; false; }
  $ shows 'step 20'; echo '{"step":21,"val_loss":0.001}' >> a/metrics.jsonl
  $ shows 'step 21'; end a; wait $watch
  $ grep -oE 'step 2[01]|0\.001 |finished' drawn | uniq
  step 20
  …
  step 21
  0.001
  …
  finished
  0.001

It waits for a run that has not begun.

  $ mkdir runs; weft-watch runs --follow --interval 0.1 > waits & watch=$!
  $ for i in {1..2400}; do [ -s waits ] && break; sleep 0.05; done; grep -o 'run *state' waits | sed -n 1p
  run  state
  $ ended runs/first 1; wait $watch; grep -o finished waits
  finished
