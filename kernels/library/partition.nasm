# Which of n elements a core computes. Each core takes one run of elements. Runs are equally long, a multiple of
# GROUP elements and at least SMALLEST_RUN bytes. The last core with work takes what is left; cores without work
# go to `done`. Cambricon's mlu-ops partitions this way on the host.
#
# In:  registers zero and group; n is the program's first parameter.
# Out: size, the index of the first element; store_left, the number of elements.
# Uses: t, u, bytes.

# This core's number. A memory core's number follows that of the last core; it has nothing to do.
# [library binary unary begin]
  arg t, 0
  arg u, 2
  bge t, u, done
  arg size, 1
  mul size, size, u             # this core's number on the card
  add size, size, t
  arg t, 3
  mul u, u, t                   # cores on the card

# My run: elements size*run .. min(size*run + run, n) - 1.
  arg store_left, 8
  add t, store_left, u
  addi t, t, -1
  div t, t, u
  addi t, t, GROUP - 1
  div t, t, group
  mul t, t, group
  li u, SMALLEST_RUN
  li bytes, $BYTES
  div u, u, bytes
  max t, t, u
  mul size, size, t
  sub store_left, store_left, size
  min store_left, store_left, t
  bge zero, store_left, done
# [library binary unary end]
