# Y = scale * (X convolved with F) for one layer and one machine: what a person would write who tunes the
# kernel for the case. X and F are of $TYPE, sums i32, Y f16. Names in capitals are numbers of the layer and of
# the plan; expert_conv2d.cc defines them as constants.
#
# Shares: the clusters form a grid over the rows, columns and channels of the output; the cores of a cluster
# form a grid over the cluster's part. Shares differ by one row and one column at most. A share whose image
# does not fit NMEM is computed in passes.
# Filters: If all cores of a cluster need the same filters (BY_SMEM is 1), they load them into SMEM once, each
# core a part. All clusters do so at the same time, so the filters cross GMEM once if the card has a cache.
# After a barrier each core copies them to its WMEM, row after row of the filters (SLICES), and adds up the
# products of its first tile behind that, row by row: the first row of filters and the image rows that it
# needs are enough to start. If BY_SMEM is 0, each core loads its own filters from GMEM.
# Image: the pass's part of it stays in NMEM. One fill puts the zeros around it there. Rows come as tiles
# need them, each row once, AHEAD rows of the output before. Clusters begin SKEWS rows below the top of
# their shares and compute these rows last, so that they read different channels of GMEM.
# Tiles: ROWS rows of the pass. In a step
#     compute   conv, rescale (i)
#     io        store (i-1) | rows of the image (i+1)        in half of the cores the other way round
# and one sync.

# [expert conv begin]
.program expert.conv2d.$TYPE
.tensor X $TYPE any in
.tensor F $TYPE any in
.tensor Y f16 any out

.reg zero r0
.reg one r1
.reg x r2                       # in GMEM: image, filters and result of the block of channels
.reg f r3
.reg y r4
.reg tid r5
.reg first_row r6               # of this core's share, and the row behind it
.reg end_row r7
.reg first_column r8
.reg end_column r9
.reg row0 r10                   # of the pass, and how many
.reg rows r11
.reg column0 r12
.reg columns r13
.reg channels_left r14
.reg channels r15               # of the block, and as a multiple of 64
.reg padded r16
.reg slice r17                  # row of the filters
.reg image_row0 r18             # in X, of the first row that the pass reads; may be negative
.reg image_rows r19             # that the pass reads; how many are loaded, and how many are to be
.reg loaded r20
.reg want r21
.reg left r22                   # bytes from a row's start in NMEM to its first pixel of X
.reg from r23                   # address in GMEM of that pixel in the first row
.reg line r24                   # elements of a row that are in X
.reg return r25
.reg row r26                    # of the pass, where the tile starts
.reg n r27                      # rows of the tile
.reg source r28                 # of the tile, in NMEM
.reg pixels r29
.reg count r30
.reg to r31                     # where its result goes
.reg s_rows r32                 # the tile to store
.reg s_to r33
.reg y_line r34                 # elements of a row of a result in NMEM
.reg sums r35
.reg y_half r36                 # the result that is computed, and the one that is stored
.reg y_other r37
.reg width r38                  # of the image in NMEM
.reg kh r39
.reg kw r40
.reg ci r41
.reg stride r42
.reg dilation r43
.reg pitch r44
.reg bank r45
.reg scale r46
.reg filter r47
.reg lanes r48
.reg co r49
.reg out_line r50               # elements of a row of Y, of X, of the image in NMEM
.reg in_line r51
.reg image_line r52
.reg slice_rows r53             # of the filters
.reg skew r58                   # rows at the pass's top that come last
.reg loads_first r62            # order of this core in a step
.reg base r59                   # where the result of the pass's first row and column goes
.reg f_base r60                 # where this core copies filters from: 0 in SMEM, or f in GMEM
.reg share_channels r61         # of this core
.reg t r54
.reg u r55
.reg v r56
.reg w r57

$NUMBERS

  arg tid, 0
  arg f, 9
  arg y, 10
  li zero, 0
  li one, 1
  li channels_left, CO
  li channels, BLOCK
  li f_base, 0

  arg t, 1
  li u, CLUSTERS
  bge t, u, done

# My share of the channels. Cores of a cluster that wait for one another at barriers have the same.
  li t, GRID_CHANNELS
  beq t, one, channels_known
  arg t, 1
  li u, CLUSTER_CHANNELS
  mod v, t, u
  muli v, v, CORE_CHANNELS
  li u, CORE_CHANNELS
  mod w, tid, u
  add v, v, w
  muli v, v, SHARE_CHANNELS
  sub channels_left, channels_left, v
  bge zero, channels_left, done
  li t, SHARE_CHANNELS
  min channels_left, channels_left, t
  min channels, channels, channels_left
  muli t, v, FILTER_BYTES
  add f, f, t
  muli v, v, 2
  add y, y, v
channels_known:
  mov share_channels, channels_left
  li return, share
  li u, CORES
  blt tid, u, clear
  li u, BY_SMEM
  beq u, zero, done             # the memory core has nothing to do
  jump share
clear:
  li t, FILL
  fill.$TYPE zero, zero, t
  jump to_smem

# My share: rows first_row to end_row - 1, columns likewise; none of the memory core.
share:
  arg x, 8
  arg t, 1
  li u, CLUSTER_CHANNELS
  div t, t, u
  li u, CLUSTER_COLUMNS
  div v, t, u
  mod w, t, u
  muli first_row, v, CORE_ROWS
  muli first_column, w, CORE_COLUMNS
  li u, CORE_CHANNELS
  div t, tid, u
  li u, CORE_COLUMNS
  div v, t, u
  mod w, t, u
  add first_row, first_row, v
  add first_column, first_column, w
  li u, LONGER_ROWS
  slt end_row, first_row, u
  addi end_row, end_row, SHARE_ROWS
  min u, first_row, u
  muli first_row, first_row, SHARE_ROWS
  add first_row, first_row, u
  add end_row, end_row, first_row
  li u, LONGER_COLUMNS
  slt end_column, first_column, u
  addi end_column, end_column, SHARE_COLUMNS
  min u, first_column, u
  muli first_column, first_column, SHARE_COLUMNS
  add first_column, first_column, u
  add end_column, end_column, first_column

  li co, CO
  li in_line, IN_LINE
  li image_line, IMAGE_LINE
  li ci, CI

block_begun:
  addi padded, channels, 63
  li t, 0 - 64
  and padded, padded, t
  mov row0, first_row
  mov column0, first_column
  li image_rows, 0
  li u, CORES
  bge tid, u, filters           # the memory core
  bge row0, end_row, filters    # cores without a share still bring their part of the filters
  bge column0, end_column, filters
  beq channels_left, share_channels, filled  # the first block's zeros are there since the start
  li t, FILL                    # others': the last pass had them in other places
  fill.$TYPE zero, zero, t
filled:
  li return, image_begun
  jump begin_pass
image_begun:
  sync.compute                  # of the fill
  muli want, row, STRIDE
  addi want, want, BEGUN_ROWS
  li return, numbers
  jump load_rows

# Constants of the following code; set here, where no unit waits for them.
numbers:
  arg t, 1
  add t, t, tid
  and loads_first, t, one
  li lanes, 64
  li sums, SUMS
  li width, IMAGE_WIDTH
  li kh, KH
  li slice_rows, SLICE_ROWS
  li filter, FILTER
  li bank, BANK
  li kw, KW
  li stride, STRIDE
  li dilation, DILATION
  li pitch, PITCH
  li scale, SCALE
  li out_line, OUT_LINE

filters:
  li u, BY_SMEM
  beq u, zero, filters_begun
  barrier.cluster
filters_begun:
  beq image_rows, zero, block_done

# The first tile, one row of the filters after the other if SLICES > 1.
  li slice, 0
  li return, load_slice
  jump to_wmem
load_slice:
  add want, row, n
  muli want, want, STRIDE
  addi want, want, REACH_SLICE - STRIDE
  muli t, slice, DILATION
  add want, want, t
  li return, wait_slice
  jump load_rows
wait_slice:
  sync.io
  sync.move
  bne slice, zero, next_slice
  conv.$TYPE sums, source, zero, n, columns, padded, width, slice_rows, kw, ci, stride, stride, dilation, dilation, pitch, bank
  jump slice_begun
next_slice:
  muli v, slice, SLICE_BYTES
  muli t, slice, SLICE_IMAGE_BYTES
  add t, t, source
  conv_acc.$TYPE sums, t, v, n, columns, padded, width, slice_rows, kw, ci, stride, stride, dilation, dilation, pitch, bank
slice_begun:
  addi slice, slice, 1
  li t, SLICES
  bge slice, t, scaled
  li return, load_slice
  jump to_wmem

next_pass_begun:
  sync
next_tile:
  conv.$TYPE sums, source, zero, n, columns, padded, width, kh, kw, ci, stride, stride, dilation, dilation, pitch, bank
scaled:
  rescale.f16.i32 y_half, sums, scale, count
  beq loads_first, zero, store
  add want, row, n
  addi want, want, ROWS + AHEAD
  muli want, want, STRIDE
  addi want, want, REACH_H - STRIDE
  li return, store
  jump load_rows
store:
  beq s_rows, zero, stored
  memcpy3d.f16.gmem.nmem.async s_to, y_other, channels, columns, co, padded, s_rows, out_line, y_line
stored:
  mov s_rows, n
  mov s_to, to
  add row, row, n
  blt row, rows, next_size
  mov rows, skew                # now the rows at the top; the image rows below them are in NMEM
  li skew, 0
  muli image_rows, rows, STRIDE
  li loaded, 0
  li row, 0
next_size:
  sub n, rows, row
  li u, ROWS
  min n, n, u
  addi want, row, ROWS + AHEAD
  muli want, want, STRIDE
  addi want, want, REACH_H - STRIDE
  li return, loaded_next
  jump load_rows
loaded_next:
  muli source, row, TILE_BYTES
  mul pixels, n, columns
  mul count, pixels, padded
  muli to, row, OUT_LINE_BYTES
  add to, to, base
  mov t, y_half
  mov y_half, y_other
  mov y_other, t
  sync
  blt zero, n, next_tile
  memcpy3d.f16.gmem.nmem.async s_to, y_other, channels, columns, co, padded, s_rows, out_line, y_line

  add column0, column0, columns
  blt column0, end_column, next_pass
  mov column0, first_column
  addi row0, row0, PASS_ROWS
  bge row0, end_row, block_done
next_pass:
  sync
  li t, FILL
  fill.$TYPE zero, zero, t
  li return, new_pass
  jump begin_pass
new_pass:
  sync.compute
  add want, row, n
  muli want, want, STRIDE
  addi want, want, REACH_H - STRIDE
  li return, next_pass_begun
  jump load_rows

block_done:
  sub channels_left, channels_left, channels
  bge zero, channels_left, done
  muli t, channels, FILTER_BYTES
  add f, f, t
  muli t, channels, 2
  add y, y, t
  li t, BY_SMEM
  beq t, zero, next_block
  barrier.cluster               # SMEM is free
next_block:
  min channels, channels, channels_left
  li return, block_begun
  jump to_smem
done:
  halt

# The pass from row0, column0 on: its size, its image, its first tile.
begin_pass:
  sub rows, end_row, row0
  li t, PASS_ROWS
  min rows, rows, t
  sub columns, end_column, column0
  li t, PASS_COLUMNS
  min columns, columns, t
  muli image_row0, row0, STRIDE
  addi image_row0, image_row0, 0 - PAD_H
  addi image_rows, rows, -1
  muli image_rows, image_rows, STRIDE
  addi image_rows, image_rows, REACH_H
  muli t, column0, STRIDE
  addi t, t, 0 - PAD_W          # the first column, in X
  addi u, columns, -1
  muli u, u, STRIDE
  addi u, u, REACH_W
  add u, u, t                   # behind the last one
  max v, t, zero
  sub left, v, t
  muli left, left, PIXEL_BYTES
  li w, W
  min u, u, w
  sub line, u, v
  muli line, line, CI
  muli from, image_row0, W
  add from, from, v
  muli from, from, PIXEL_BYTES
  add from, from, x
  arg t, 1
  li u, 3
  and t, t, u
  muli t, t, 16
  li skew, SKEWS
  shr skew, skew, t
  li t, 0xffff
  and skew, skew, t
  addi t, rows, -1
  min skew, skew, t
  mov row, skew
  muli loaded, row, STRIDE
  muli source, row, TILE_BYTES
  li n, ROWS
  sub t, rows, row
  min n, n, t
  mul pixels, n, columns
  mul count, pixels, padded
  mul y_line, columns, padded
  li s_rows, 0
  muli base, row0, WO
  add base, base, column0
  mul base, base, co
  muli base, base, 2
  add base, base, y
  muli to, row, OUT_LINE_BYTES
  add to, to, base
  li y_half, Y_HALF
  li y_other, Y_OTHER
  jump_register return

# Rows loaded .. want - 1 of the pass's image; those that are in X.
load_rows:
  min want, want, image_rows
  sub t, zero, image_row0
  max t, t, loaded
  li u, H
  sub u, u, image_row0
  min u, u, want
  max loaded, loaded, want
  sub u, u, t
  bge zero, u, rows_loaded
  bge zero, line, rows_loaded
  muli v, t, IMAGE_LINE_BYTES
  add v, v, left
  muli w, t, IN_LINE_BYTES
  add w, w, from
  memcpy.$TYPE.nmem.gmem.async v, w, line, u, image_line, in_line
rows_loaded:
  jump_register return

# This core's part of the filters, from GMEM to SMEM: every CORES-th piece of PIECE elements, so that the cores
# read from all channels of GMEM all the time. The last piece may be short.
to_smem:
  li t, BY_SMEM
  bne t, zero, part_to_smem
  mov f_base, f                 # no SMEM on the way: to_wmem copies from GMEM
  jump_register return
part_to_smem:
  li t, CORES
  bge tid, t, at_smem
  muli w, tid, PIECE            # where my first piece begins
  muli t, channels, FILTER
  sub t, t, w                   # elements from there on
  bge zero, t, at_smem
  muli w, w, BYTES
  add v, f, w
  addi u, t, PIECES_LINE - PIECE
  li slice, PIECES_LINE
  div u, u, slice               # whole pieces
  li one, PIECE
  memcpy.$TYPE.smem.gmem.async w, v, one, u, slice, slice
  li one, 1
  muli slice, u, PIECES_LINE
  sub t, t, slice               # elements of the last one, if it is not whole
  bge zero, t, at_smem
  muli u, u, PIECES_LINE_BYTES
  add w, w, u
  add v, v, u
  memcpy.$TYPE.smem.gmem.async w, v, t, one, zero, zero
at_smem:
  jump_register return

# Row `slice` of the filters (all rows, if SLICES is 1), from SMEM or GMEM to WMEM: filter c to bank c % 64 as
# number c / 64. First whole groups of 64 filters, then the other filters.
to_wmem:
  muli w, slice, SLICE_BYTES
  li u, SLICE
  div t, channels, lanes
  li v, FILTER_GROUP
  add count, f_base, w
  memcpy3d.$TYPE.wmem.$FROM.async w, count, u, lanes, bank, filter, t, pitch, v
  muli v, t, FILTER_GROUP_BYTES
  add v, v, count
  muli count, t, PITCH_BYTES
  add w, w, count
  mod t, channels, lanes
  memcpy.$TYPE.wmem.$FROM.async w, v, u, t, bank, filter
  mul count, pixels, padded
  jump_register return
# [expert conv end]
