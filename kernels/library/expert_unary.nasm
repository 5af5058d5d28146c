# Y = op X or Y = X op value, element by element, for one number of elements and one machine: what a person
# would write who tunes the kernel for the case. expert.cc replaces $OP, $VALUE, $TYPE, $BYTES and the numbers
# of the plan.
#
# Partition and tiles: expert_partition.nasm, which the loader inserts at its name.
# Plan: the plan of expert_binary.nasm with one buffer in each half of NMEM, computed in place. So tiles are
# twice as large.

# [expert unary begin]
.program expert.$OP.$TYPE
.tensor X $TYPE any in
.tensor Y $TYPE any out

.reg zero r0
.reg one r1
.reg x r2                       # next addresses in GMEM
.reg y r3
.reg operand r4
.reg first r5
.reg left r6                    # elements of this core's run not yet loaded
.reg size r7                    # of the tile in `here`
.reg next r8                    # of the tile that comes into `other`
.reg tile r9
.reg here r10                   # halves of NMEM
.reg other r11
.reg rounded r12
.reg t r13
.reg u r14

$PARTITION
  li one, 1
  muli t, first, $BYTES
  arg x, 8
  add x, x, t
  li here, 0
  memcpy.$TYPE.nmem.gmem.async here, x, size, one, zero, zero
  arg y, 9
  add y, y, t
  li operand, $SCALAR
  li other, $BUFFER_BYTES
  sub left, left, size
  sync.io
  bge zero, left, last

next_tile:
  muli t, size, $BYTES
  add x, x, t
  min next, left, tile
  memcpy.$TYPE.nmem.gmem.async other, x, next, one, zero, zero
  $OP.$TYPE here, here, $VALUEsize       # only the last tile is no whole number of groups
  sub left, left, next
  sync.compute
  memcpy.$TYPE.gmem.nmem y, here, size, one, zero, zero
  add y, y, t
  mov size, next
  mov t, here
  mov here, other
  mov other, t
  blt zero, left, next_tile

last:
  addi rounded, size, GROUP - 1
  li t, 0 - GROUP
  and rounded, rounded, t
  $OP.$TYPE here, here, $VALUErounded
  sync.compute
  memcpy.$TYPE.gmem.nmem.async y, here, size, one, zero, zero
done:
  halt
# [expert unary end]
