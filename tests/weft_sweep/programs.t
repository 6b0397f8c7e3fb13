# Sweeps of Weft's programs are ranked by their metrics

  $ weft-sweep --grid lr=1e-6,0.05 --metric train_loss --out sweep -- train_image --data random:64x8x8x3 --model resnet8 --batch-size 32 --epochs 3 --device cpu --workers 0 > log
  $ jq -c '.runs | .[0].values.lr, .[0].last < .[1].last' sweep/ranking.json
  "0.05"
  true

MNIST, of which 64 images train and 20 test.

  $ practice_data mnist data > log
  $ cut() { truncate -s $2 data/MNIST/raw/$1; printf "\\0\\0\\0\\$3" | dd of=data/MNIST/raw/$1 bs=1 seek=4 conv=notrunc status=none; }
  $ cut train-images-idx3-ubyte $((16 + 64 * 784)) 100; cut train-labels-idx1-ubyte $((8 + 64)) 100
  $ cut t10k-images-idx3-ubyte $((16 + 20 * 784)) 24; cut t10k-labels-idx1-ubyte $((8 + 20)) 24
  $ weft-sweep --grid lr=1e-9,1 --metric test_loss --out digits -- mnist --data-dir data --epochs 1 --batch-size 8 --device cpu > log
  $ jq '.runs[0].values.lr' digits/ranking.json
  "1"
