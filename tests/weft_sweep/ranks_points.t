# A grid is run, ranked and shown

`train` is a program whose loss at its second step is (x - 2)^2 + y. `{run}` is a folder of each point's own, in which it writes metrics.jsonl.

  $ PATH=$WEFT/tests/weft_sweep:$PATH; unset CUDA_VISIBLE_DEVICES
  $ weft-sweep --grid x=1,2 y=5,7 --metric val_loss --goal min --out sweep -- train --out={run}
  [1/4] x=1,y=5: done, …
  [2/4] x=1,y=7: done, …
  [3/4] x=2,y=5: done, …
  [4/4] x=2,y=7: done, …
  rank  point    last val_loss          best   at step      time
     1  x=2,y=5             5           0.5         1      …
     2  x=1,y=5             6           0.5         1      …
     3  x=2,y=7             7           0.5         1      …
     4  x=1,y=7             8           0.5         1      …
  wrote sweep/sweep.html
  $ jq -c '.metric, (.runs[0] | del(.seconds))' sweep/ranking.json
  "val_loss"
  {"point":2,"values":{"x":"2","y":"5"},"state":"done","last":5,"best":0.5,"best_step":1,"count":2,"folder":"sweep/x=2,y=5"}
  $ grep -oE '[0-9]+ done. Best: .*, val_loss [0-9]+<|<figcaption>[^<]*</|<title>x=1,y=7:[^<]* at y 7<|<a href="x=2,y=5/log.txt">|<script' sweep/sweep.html | sort -u
  4 done. Best: x=2,y=5, val_loss 5<
  <a href="x=2,y=5/log.txt">
  <figcaption>best val_loss so far</
  <figcaption>val_loss over x</
  <figcaption>val_loss over y</
  <figcaption>val_loss</
  <title>x=1,y=7: 8 at y 7<

Points that are done are not run again: the grid may grow. The folder stores the rest.

  $ usual() { weft-sweep --grid x=$1 --metric val_loss "${@:2}" -- train --out={run} > log; }
  $ usual 1,2 --out x && usual 1,2,3 --out x && sed -n 1,2p log
  2 of 3 points are done already
  [1/1] x=3: done, …
  $ weft-sweep --out x | sed -n 1p && wc -l < x/starts
  3 of 3 points are done already
  3

The largest may win, or the best so far.

  $ usual 1,2,3,4 --goal max --out max && jq .runs[0].values.x max/ranking.json
  "4"
  $ weft-sweep --out max --rank --metric val_loss --by best > log && jq -c '.by, (.runs[0] | .values.x, .last)' max/ranking.json; wc -l < max/starts
  "best"
  "2"
  0
  4

A run that diverged is behind those that did not, unless what it reached counts.

  $ mkdir d; touch d/diverge_2; usual 1,2,3,4 --out d && grep -v : log
  rank  point  last val_loss          best   at step      time
     -  x=2    done (its last 'val_loss' is no number)
  wrote d/sweep.html
  $ jq -c '.runs | map(.values.x), .[3].last' d/ranking.json
  ["1","3","4","2"]
  null
  $ weft-sweep --out d --rank --metric val_loss --by best > log && jq -c '.runs | map(.values.x), .[0].best' d/ranking.json
  ["1","2","3","4"]
  0.5

A metric that nobody wrote is an error.

  $ weft-sweep --grid x=1,2 --metric accuracy --out m -- train --out={run} | grep accuracy
  weft-sweep: error: 2 of 2 points have no value of 'accuracy'
  rank  point  last accuracy          best   at step      time
     -  x=1    done (no 'accuracy' among val_loss)
     -  x=2    done (no 'accuracy' among val_loss)
  [1]

Nobody may read the lines.

  $ weft-sweep --grid x=1,2,3 --metric val_loss --out pipe -- train --out={run} | true; wc -l < pipe/starts; jq '.runs | length' pipe/ranking.json; ls pipe/sweep.html
  3
  3
  pipe/sweep.html

Several points at a time share the GPUs.

  $ weft-sweep --grid x=1,2,3,4 --jobs 2 --gpus 4,5,6,7 --out gpus -- train --out={run} > log; cut -d' ' -f4- gpus/starts | sort -u
  gpus 4,5
  gpus 6,7

Links that another user of the folder may have put there are not followed.

  $ link() { rm -rf links; mkdir -p links/x=1; ln -s "$PWD"/outside links/x=1/$1; weft-sweep --grid x=1 --metric val_loss --out links -- train --out={run}; }
  $ fails link log.txt; fails link .lock; ls outside
  weft-sweep: error: cannot start train: Too many levels of symbolic links [1]
  weft-sweep: error: expected to write into links/x=1, got 'Too many levels of symbolic links' [1]
  ls: cannot access 'outside': No such file or directory
  [2]
