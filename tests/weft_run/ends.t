# How a job of weft-run ends, and when it is started again.

needs: crypto

The first failure ends the others, and is the exit code. They end well before the grace of 100 s.

  $ timeout --foreground 60 weft-run --nproc_per_node=3 --grace=100 bash -c '
  >   if [ $RANK = 1 ]; then until [ -e ready0 -a -e ready2 ]; do sleep 0.02; done; exit 7; fi
  >   trap "echo rank $RANK ends; exit 1" TERM; touch ready$RANK; sleep 120 & wait' 2>&1 | sort
  rank 0 ends
  rank 2 ends
  weft-run: rank 1 ended with exit code 7
  [7]

A signal is named, and ranks that do not hear SIGTERM are killed after the grace of a second.

  $ start=$EPOCHREALTIME; timeout --foreground 60 weft-run --nproc_per_node=2 --grace=1 bash -c '
  >   if [ $RANK = 1 ]; then until [ -e deaf ]; do sleep 0.02; done; kill -SEGV $$; fi; trap "" TERM; touch deaf; sleep 120'
  weft-run: rank 1 was ended by signal 11 (Segmentation fault)
  [139]
  $ jq -n "$EPOCHREALTIME - $start > 1"
  true

All are started again, as often as is allowed.

  $ job='echo begin $RANK.$TORCHELASTIC_RESTART_COUNT; if [ $TORCHELASTIC_RESTART_COUNT -lt 2 ]; then [ $RANK = 0 ] && exit 5; sleep 600; fi'
  $ weft-run --nproc_per_node=2 --max_restarts=2 bash -c "$job" &> out && grep -E 'begin (0|1.2)|restarting' out | sort
  begin 0.0
  begin 0.1
  begin 0.2
  begin 1.2
  weft-run: restarting all ranks, restart 1 of 2
  weft-run: restarting all ranks, restart 2 of 2
  $ weft-run --nproc_per_node=2 --max_restarts=1 bash -c "$job" &> out
  [5]
  $ grep -c 'begin 0' out
  2

A restart needs nobody who reads of it.

  $ weft-run --nproc_per_node=1 --max_restarts=1 bash -c 'echo start >> starts; sleep 0.5; exit 3' 2>&1 | true
  [3]
  $ cat starts
  start
  start

A rank that asks for a requeue is not started again. The first that ends may stop the other one before that prints anything.

  $ weft-run --nproc_per_node=2 --max_restarts=3 bash -c 'echo begin $RANK; exit 75' &> out
  [75]
  $ grep begin out | sort | uniq -d; grep -q begin out && ! grep restarting out

A rank that is stopped when the others have ended is lost: no collective waits for it, so no rank could tell.

  $ WEFT_TIMEOUT=2 weft-run --nproc_per_node=3 --max_restarts=1 --grace=1 bash -c '
  >   echo round $TORCHELASTIC_RESTART_COUNT; if [ $RANK$TORCHELASTIC_RESTART_COUNT = 10 ]; then kill -STOP $$; fi' &> out && grep -v 'round 0' out | sort
  round 1
  round 1
  round 1
  weft-run: rank 1 is stopped, and others have ended 2 s ago or more
  weft-run: restarting all ranks, restart 1 of 1

The rank that gives a stopped one up ends first, and is not the cause: both are named.

  $ weft-run --nproc_per_node=2 --grace=1 bash -c 'if [ $RANK = 0 ]; then echo $$ > process; kill -STOP $$; fi
  >   until grep -qs "T (stopped)" /proc/$(cat process 2> /dev/null)/status; do sleep 0.02; done; sleep 2; exit 3'
  weft-run: rank 1 ended with exit code 3; rank 0 has been stopped for [0-9]+ s (re)
  [3]

Nothing is left behind by a rank.

  $ child=$(weft-run --nproc_per_node=1 bash -c 'sleep 600 > /dev/null 2>&1 & echo $!'); until_true ! kill -0 $child
