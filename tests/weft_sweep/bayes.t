# A Bayesian search

needs: optuna

The least value is at x = 2, in one five-hundredth of the range. After ten random points Optuna's choices are nearer.

  $ PATH=$WEFT/tests/weft_sweep:$PATH
  $ valley() { weft-sweep --bayes x=int:-500..500 --metric val_loss --seed 5 --trials "$1" --out "$2" -- train --x={x} --out={run}; }
  $ points() { jq -c '[.points[].x | tonumber]' "$1"/sweep.json; }
  $ valley 12 sweep | tail -n +12 | sed -n 1p
  [12/12] x=…: done, …
  $ valley 18 sweep | sed -n 1,2p
  12 of 18 points are done already
  [1/6] x=…: done, …
  $ points sweep | jq 'def distance: map(. - 2 | fabs) | add / length; length, (.[10:] | distance) < 0.6 * (.[:10] | distance)'
  18
  true

The same seed chooses the same points, and a continued search equals a longer search.

  $ valley 11 again > log && [ "$(points again)" = "$(points sweep | jq -c '.[:11]')" ]
