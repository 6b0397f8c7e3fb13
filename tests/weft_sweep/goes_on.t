# Points that fail, are stopped, or are run by two

`train` has the loss (x - 2)^2; files beside its runs make it fail, wait or ask to be started again.

  $ PATH=$WEFT/tests/weft_sweep:$PATH
  $ sweep() { weft-sweep --grid x=1,2,3,4 --metric val_loss --out sweep -- train --out={run}; }
  $ mkdir sweep; touch sweep/fail_2; sweep
  [1/4] x=1: done, …
  [2/4] x=2: FAILED (exit code 3, see sweep/x=2/log.txt), …
  [3/4] x=3: done, …
  [4/4] x=4: done, …
  rank  point  last val_loss          best   at step      time
     1  x=1               1           0.5         1      …
     2  x=3               1           0.5         1      …
     3  x=4               4           0.5         1      …
     -  x=2    failed (exit code 3: it cannot be done)
  wrote sweep/sweep.html
  weft-sweep: error: 1 of 4 points failed; their logs are in sweep
  [1]
  $ jq -c '.runs[3] | .state, .last' sweep/ranking.json
  "failed"
  null

What has failed is tried again.

  $ rm sweep/fail_2; sweep | sed -n 1,2p && wc -l < sweep/starts
  3 of 4 points are done already
  [1/1] x=2: done, …
  5

A program that ends with exit code 75 has left a checkpoint: its point is not done.

  $ mkdir again; touch again/requeue_2; weft-sweep --grid x=1,2 --metric val_loss --out again -- train --out={run} | grep stopped
  [2/2] x=2: stopped, …
     -  x=2    stopped
  $ weft-sweep --out again --point 1
  [1/1] x=2: stopped, …
  [75]
  $ rm again/requeue_2; weft-sweep --out again --point 1 && wc -l < again/starts
  [1/1] x=2: done, …
  4

Slurm's SIGTERM, while the second point runs, stops it, too; the sweep goes on later.

  $ mkdir term; touch term/sleep_2; weft-sweep --grid x=1,2,3 --metric val_loss --out term -- train --out={run} > stopped & sweep=$!
  $ for i in {1..2400}; do [ -s term/pid ] && break; sleep 0.05; done; kill -TERM $sweep; wait $sweep; code=$?; sed -n 1,2p stopped; (exit $code)
  [1/3] x=1: done, …
  [2/3] x=2: stopped, …
  [75]
  $ kill -0 $(cat term/pid) 2> /dev/null
  [1]
  $ rm term/sleep_2; weft-sweep --out term | sed -n 1p && wc -l < term/starts
  1 of 3 points are done already
  4

Two sweeps of one folder share its points.

  $ mkdir two; touch two/sleep_1; weft-sweep --grid x=1,2 --out two -- train --out={run} > first & sweep=$!
  $ for i in {1..2400}; do [ -s two/pid ] && break; sleep 0.05; done; weft-sweep --out two | grep x=; kill -TERM $sweep; wait $sweep
  x=1: another weft-sweep is running it
  [1/2] x=2: done, …
     -  x=1    not run
     -  x=2    done
  [75]

# Worse points are stopped early

`steps` has nine steps; x = 2 is the best, and others rest after their third.

  $ early() { weft-sweep --grid x=$1 --min-iter 3 --metric val_loss --out early -- steps --x={x} --out={run}; }
  $ early 2,1,3
  [1/3] x=2: done, …
  [2/3] x=1: stopped early, …
  [3/3] x=3: stopped early, …
  rank  point  last val_loss          best   at step      time
     1  x=2              -9            -9         9      …
     2  x=1               7             7         3      …  stopped after 3
     3  x=3               7             7         3      …  stopped after 3
  wrote early/sweep.html
  $ grep -o '[0-9] done, .*, val_loss -9<' early/sweep.html
  1 done, 2 stopped early. Best: x=2, val_loss -9<

What was stopped early is over, and the folder keeps the rule.

  $ weft-sweep --out early | sed -n 1p; early 2,1,3,4 | grep '^\['; wc -l < early/starts
  3 of 3 points are done already
  [1/1] x=4: stopped early, …
  4

A task of a job array stops early by itself.

  $ weft-sweep --slurm --grid x=2,1 --min-iter 3 --metric val_loss --out array -- steps --x={x} --out={run} > log
  $ weft-sweep --out array --point 0 && weft-sweep --out array --point 1
  [1/1] x=2: done, …
  [1/1] x=1: stopped early, …
