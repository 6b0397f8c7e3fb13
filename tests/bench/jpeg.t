# The loader of JPEG is measured

needs: jpeg

  $ bench --tiny --seconds 0 --repetitions 1 --filter '^loader_jpeg$'
  loader_jpeg\t[0-9.]+\timages/s (re)
