# A core's run of the elements and its first tile; part of expert_binary.nasm and expert_unary.nasm. expert.cc
# replaces the numbers of the plan by constants.
#
# Partition: each core takes the same number of groups of 64 elements, or one more; the last group of all may be
# short. Cores without elements go to `done`, as memory cores do.
# Tiles: as large as NMEM allows. The first tile is shorter, by an amount that depends on the core's number in
# its cluster ($FIRST_TILES: four numbers of groups, 16 bits each); the last tile takes what is left. So the
# cores drift apart from the start, and GMEM serves the stores of some cores while others load. This hides most
# of the latency with which copies start.
#
# Out: first, the index of the run's first element; left, the number of elements of the run; size, those of
# the first tile; tile, those of the other tiles.
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
