# Several launchers, which play the nodes of a job on this host.

needs: crypto

They agree on their numbers at the endpoint. One port and one secret are for all.

  $ export HOME=$PWD; endpoint=127.0.0.1:$(free_port)
  $ node() { weft-run --nnodes=3 --nproc_per_node 2 --rdzv_backend=c10d --rdzv_endpoint $endpoint --rdzv_id=7 bash -c 'echo "$RANK of $WORLD_SIZE: \
  > local $LOCAL_RANK of $LOCAL_WORLD_SIZE, group $GROUP_RANK of $GROUP_WORLD_SIZE, $MASTER_ADDR:$MASTER_PORT $WEFT_JOB_SECRET"'; }
  $ node > a & node > b & node > c & wait %1 && wait %2 && wait %3; sort a b c
  0 of 6: local 0 of 2, group 0 of 3, 127.0.0.1:…
  1 of 6: local 1 of 2, group 0 of 3, 127.0.0.1:…
  2 of 6: local 0 of 2, group 1 of 3, 127.0.0.1:…
  3 of 6: local 1 of 2, group 1 of 3, 127.0.0.1:…
  4 of 6: local 0 of 2, group 2 of 3, 127.0.0.1:…
  5 of 6: local 1 of 2, group 2 of 3, 127.0.0.1:…
  $ grep -ohE '127.0.0.1:[0-9]+ [0-9a-f]{64}$' a b c | sort | uniq -c | grep -o '^ *6'
  6

Numbers may be fixed, and ranks uneven.

  $ port=$(free_port); node() { weft-run --nnodes=2 --node_rank $1 --nproc_per_node $2 --master_addr=127.0.0.1 --master_port $port \
  >   bash -c 'echo "$RANK/$WORLD_SIZE in $GROUP_RANK at $MASTER_ADDR:$([ $MASTER_PORT = '$port' ] && echo port)"'; }
  $ node 1 1 > one & node 0 3 > zero && wait $!; sort zero one
  0/4 in 0 at 127.0.0.1:port
  1/4 in 0 at 127.0.0.1:port
  2/4 in 0 at 127.0.0.1:port
  3/4 in 1 at 127.0.0.1:port

A failure on one node ends and restarts all.

  $ endpoint=127.0.0.1:$(free_port); node() { weft-run --nnodes=2 --nproc_per_node=1 --max_restarts=1 --rdzv_endpoint $endpoint bash -c "$1"; }
  $ fails='echo begin $RANK.$TORCHELASTIC_RESTART_COUNT; [ $RANK = 1 ] && exit 9; sleep 600'; node "$fails" &> a & node "$fails" &> b; echo $?; wait $!; echo $?
  9
  9
  $ cat a b | grep 'begin 1' | sort; grep -c 'rank 1 ended with exit code 9' a b
  begin 1.0
  begin 1.1
  a:2
  b:2

A node that ended well waits for the others.

  $ endpoint=127.0.0.1:$(free_port); waits='echo begin $RANK.$TORCHELASTIC_RESTART_COUNT; if [ $RANK = 0 ]; then touch ended; exit 0; fi
  >   until [ -e ended ]; do sleep 0.02; done; exit $((1 - TORCHELASTIC_RESTART_COUNT))'
  $ node "$waits" &> a & node "$waits" &> b && wait $!; cat a b | grep begin | sort
  begin 0.0
  begin 0.1
  begin 1.0
  begin 1.1

A rank that is stopped when those of the other node have ended is lost.

  $ endpoint=127.0.0.1:$(free_port); node() { WEFT_TIMEOUT=2 weft-run --nnodes=2 --node_rank $1 --max_restarts=1 --grace=1 --rdzv_endpoint $endpoint bash -c '
  >   echo round $TORCHELASTIC_RESTART_COUNT; if [ $RANK$TORCHELASTIC_RESTART_COUNT = 10 ]; then kill -STOP $$; fi'; }
  $ node 1 &> one & node 0 &> zero && wait $!; for said in zero one; do grep -E 'is stopped|round 1' $said | sort; done
  round 1
  weft-run: rank 1 is stopped, and others have ended 2 s ago or more
  round 1
  weft-run: rank 1 is stopped, and others have ended 2 s ago or more

A killed launcher ends the job.

  $ endpoint=127.0.0.1:$(free_port); node() { exec weft-run --nnodes=2 --max_restarts=3 --rdzv_endpoint $endpoint bash -c 'echo "group $GROUP_RANK"; sleep 600'; }
  $ node &> a & a=$!; node &> b & b=$!; until_true 'grep group a && grep group b'
  $ if grep -q 'group 0' a; then left=$a killed=$b said=a; else left=$b killed=$a said=b; fi; kill -KILL $killed; wait $left 2> killed
  [1]
  $ grep -o "the launcher.*process $killed" $said | sed "s/$killed/KILLED/"
  the launcher of a node has ended: node 1 (process KILLED

The least of the nodes' --max_restarts counts.

  $ endpoint=127.0.0.1:$(free_port); node() { weft-run --nnodes=2 --max_restarts $1 --rdzv_endpoint $endpoint $2; }
  $ node 1 false &> a & node 0 true &> b; echo $?; wait $!; echo $?; grep -c restarting a b
  1
  1
  a:0
  b:0
  [1]

A node that is asked to end while it stops its ranks takes the others along.

  $ endpoint=127.0.0.1:$(free_port); node() { exec weft-run --nnodes=2 --max_restarts=1 --grace=2 --rdzv_endpoint $endpoint bash -c "$1"; }
  $ node 'trap "touch told" TERM; touch here; while true; do sleep 0.05; done' &> a & a=$!; node 'until [ -e here ]; do sleep 0.02; done; exit 1' &> b & b=$!
  $ until_true [ -e told ]; kill -TERM $a; wait $a; echo $?; wait $b; echo $?; grep -c restarting a b
  75
  1
  a:0
  b:0
  [1]

So does a node that is asked to end while it waits for the other's ranks.

  $ rm told here; endpoint=127.0.0.1:$(free_port); node() { exec weft-run --nnodes=2 --max_restarts=1 --grace=10 --rdzv_endpoint $endpoint bash -c "$1"; }
  $ node 'trap "touch told" TERM; touch here; until [ -e go ]; do sleep 0.05; done' &> a & a=$!; node 'until [ -e here ]; do sleep 0.02; done; exit 1' &> b & b=$!
  $ until_true [ -e told ]; kill -TERM $b; until_true 'grep "ended by" b'; touch go; wait $b; echo $?; wait $a; echo $?; grep -c restarting a b
  75
  1
  a:0
  b:0
  [1]
