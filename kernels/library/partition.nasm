# A core's part of n elements. Every core takes one run of elements of equal length, a multiple of GROUP
# and at least SMALLEST_RUN bytes; the last core with work takes what is left, the ones behind it go to
# `done`. This is the partition in the host code of Cambricon's mlu-ops.
#
# In:  registers zero and group; n is the program's first parameter.
# Out: size, the number of the first element; store_left, the elements of the run.
# Uses: t, u, bytes.

# Who am I? Memory cores have the number behind the last core, and nothing to do.
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
