# A core's run of the elements and its first tile, for the expert kernels: put into expert_binary.nasm and
# expert_unary.nasm. The numbers of the plan are constants, which expert.cc puts in.
#
# Partition: the groups of 64 elements are shared out evenly, so runs differ by one group at most; the
# last group of all may be short. Cores without elements go to `done`, as memory cores do.
# Tiles: as large as NMEM allows, but the first one is shorter by a part that depends on the core's number
# in its cluster ($FIRST_TILES, 16 bits for each of four numbers of groups), and the last one takes what
# is left. So the cores drift apart from the start, and GMEM serves the stores of some while others load:
# most of what the start of a copy costs is hidden by other cores.
#
# Out: first, the number of the run's first element; left, the elements of the run; size, those of the
# first tile; tile, those of the following ones.
# Uses: t, u.

# [expert binary unary begin]
.equ GROUP 64

  arg t, 0
  li u, $CORES
  bge t, u, done
  li size, $FIRST_TILES
  li left, 3
  and left, t, left
  muli left, left, 16
  shr size, size, left
  li left, 0xffff
  and size, size, left
  muli size, size, GROUP
  arg first, 1                  # this core's number on the card, then the first group and element
  muli first, first, $CORES
  add first, first, t
  li u, $LONGER_RUNS
  slt left, first, u
  min u, first, u
  muli first, first, $RUN_GROUPS
  add first, first, u
  muli first, first, GROUP
  addi left, left, $RUN_GROUPS
  muli left, left, GROUP
  li u, $COUNT
  sub u, u, first
  min left, left, u
  bge zero, left, done
  min size, size, left
  li tile, $TILE
# [expert binary unary end]
