# C = A op B, element by element, for one number of elements and one machine: what a person would write who
# tunes the kernel for the case. expert.cc replaces $OP, $TYPE, $BYTES and the numbers of the plan.
#
# Partition and tiles: expert_partition.nasm, which the loader inserts at its name.
# Plan: three stages, all between GMEM and NMEM, on two halves of NMEM. A half is [x | y]; the result replaces
# x; tiles are as large as a half allows. While tile i+1 is loaded into one half, tile i is computed in the
# other, and its store queues up behind that load. So one wait for the io queue ends a step:
#     io       load a, load b (i+1) | store (i)
#     compute  op (i)
# Nothing waits for the last store. Plans of four and five stages (by way of SMEM and the memory core) move the
# same bytes through GMEM, which is the bottleneck, and add barriers, which drain all queues of a cluster.

# [expert binary begin]
.program expert.$OP.$TYPE
.tensor A $TYPE any in
.tensor B $TYPE any in
.tensor C $TYPE any out

.reg zero r0
.reg one r1
.reg a r2                       # next addresses in GMEM
.reg b r3
.reg c r4
.reg first r5
.reg left r6                    # elements of this core's run not yet loaded
.reg size r7                    # of the tile in [x | y]
.reg next r8                    # of the tile that comes into the other half
.reg tile r9
.reg x r10
.reg y r11
.reg x_next r12
.reg y_next r13
.reg rounded r14
.reg t r15
.reg u r16

$PARTITION
  li one, 1
  muli t, first, $BYTES
  arg a, 8
  add a, a, t
  li x, 0
  memcpy.$TYPE.nmem.gmem.async x, a, size, one, zero, zero
  arg b, 9
  add b, b, t
  li y, $BUFFER_BYTES
  memcpy.$TYPE.nmem.gmem.async y, b, size, one, zero, zero
  arg c, 10
  add c, c, t
  li x_next, $BUFFER_BYTES + $BUFFER_BYTES
  add y_next, x_next, y
  sub left, left, size
  sync.io
  bge zero, left, last

next_tile:
  muli t, size, $BYTES
  add a, a, t
  add b, b, t
  min next, left, tile
  memcpy.$TYPE.nmem.gmem.async x_next, a, next, one, zero, zero
  memcpy.$TYPE.nmem.gmem.async y_next, b, next, one, zero, zero
  $OP.$TYPE x, x, y, size       # only the last tile is no whole number of groups
  sub left, left, next
  sync.compute
  memcpy.$TYPE.gmem.nmem c, x, size, one, zero, zero
  add c, c, t
  mov size, next
  mov t, x
  mov x, x_next
  mov x_next, t
  mov t, y
  mov y, y_next
  mov y_next, t
  blt zero, left, next_tile

last:
  addi rounded, size, GROUP - 1
  li t, 0 - GROUP
  and rounded, rounded, t
  $OP.$TYPE x, x, y, rounded
  sync.compute
  memcpy.$TYPE.gmem.nmem.async c, x, size, one, zero, zero
done:
  halt
# [expert binary end]
