# Which points a Bayesian search chooses

needs: optuna

It goes on from a grid, hears of what is stopped early (`steps` rests after its third step, unless x is 2), and chooses no point twice.

  $ PATH=$WEFT/tests/weft_sweep:$PATH
  $ weft-sweep --grid x=2 --metric val_loss --out sweep -- steps --x={x} --out={run} > log
  $ weft-sweep --bayes x=2,1,3 --trials 5 --min-iter 3 --metric val_loss --out sweep -- steps --x={x} --out={run} | grep -E '^(1 of|.1|there)'
  1 of 5 points are done already
  [1/4] x=…: stopped early, …
  there are no more than 3 points
  $ wc -l < sweep/starts; jq -c '.runs | .[0].values.x, .[2].state' sweep/ranking.json
  3
  "2"
  "stopped early"

A failed point is no value; it is tried again.

  $ mkdir failed; touch failed/fail_1
  $ search() { weft-sweep --bayes x=1,2 --trials 2 --jobs 2 --metric val_loss --out failed -- train --x={x} --out={run}; }
  $ search | grep -E "points failed|failed \("; wc -l < failed/starts
  weft-sweep: error: 1 of 2 points failed; their logs are in failed
     -  x=1    failed (exit code 3: it cannot be done)
  2
  $ rm failed/fail_1; search > log && wc -l < failed/starts
  3

Tasks of a job array start in any order, and choose for those before them.

  $ weft-sweep --slurm --bayes x=int:1..9 --trials 3 --metric val_loss --out array -- train --x={x} --out={run} > log; grep array= array/sweep.sbatch
  #SBATCH --array=0-2%1
  $ weft-sweep --out array --point 2 > log & weft-sweep --out array --point 0 > log2 && wait $!
  $ wc -l < array/starts; jq '.points | length' array/sweep.json
  2
  3
