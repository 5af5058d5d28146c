// The cost of a mapping: what the first block needs, steps, each as long as its slowest part, and results at the end.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "compiler/mapping/mapping.h"
#include "isa/granularity.h"

namespace polynao::mapping {
namespace {

// Clusters that take turns stay in step, others drift apart, which the model does not see: on ten layers of ResNet-50
// and layers95 other mappings take 0.86 to 0.93 of its cycles, turns 0.93 to 1.05. A part of the difference is enough
// that turns are not preferred where they gain less than that.
constexpr double kInStep = 1.05;

// Copies of a block of weights to the tensor unit's banks; where between the filters of a bank are gaps, each group of
// lanes comes by itself.
int64_t CopiesOfBlock(const Mapping& m, const Shares& s) {
  if (s.weight_bytes != m.block * s.pitch) return s.lanes / isa::kTensorLanes;
  // In parts the last core has as many copies each time: of 728 channels 152 where others have 192.
  const int64_t last = s.cluster_channels - (s.steps / m.parts * m.across - 1) * m.block;
  return std::max(CopiesToBanks(m.block), m.parts > 1 ? CopiesToBanks(last) : 1);
}

// A cluster's share of GMEM's rate.
double ShareOf(const CardFacts& card, double clusters) {
  return std::min(card.link, card.gmem / clusters);
}

class StreamCost {
 public:
  StreamCost(const Layer& layer, const CardFacts& card, const Mapping& m)
      : layer_(layer),
        card_(card),
        m_(m),
        s_(SharesOf(layer, card, m)),
        cores_(static_cast<double>(card.cores)),
        share_(ShareOf(card, static_cast<double>(s_.clusters))),
        share_is_(share_ < card.link ? kGmem : kLink),
        latency_(card.latency + card.dram_latency),
        port_(std::min(card.memory_core_port, share_)),
        memory_core_(std::min({card.memory_core_port, card.link, card.gmem})),
        port_is_(port_ < share_ ? kMemoryCore : share_is_),
        block_bytes_(static_cast<double>(s_.weight_bytes)),
        core_image_(
            static_cast<double>(m.image_in_parts ? s_.part_image_bytes : s_.core_loaded_bytes)),
        copies_(static_cast<double>(CopiesOfBlock(m, s_))),
        blocks_(static_cast<double>(s_.steps / m.parts)),
        pieces_(static_cast<double>(m.pieces)),
        outputs_(static_cast<double>(s_.piece_pixels * m.block)),
        cluster_outputs_(static_cast<double>(s_.turn_rows * layer.columns * s_.cluster_channels)),
        steps_(static_cast<double>(s_.steps)),
        runs_(m.parts > 1 ? blocks_ : 1),
        is_alone_(WeightCopies(card, s_) == 1) {
    const bool whole_pixels = m.channel_clusters == 1;
    const bool whole_columns = s_.core_columns == layer.columns;
    cluster_segments_ = whole_pixels ? 1.0 : static_cast<double>(s_.turn_rows * layer.columns);
    if (layer.sub_pixels) cluster_segments_ = SubPixelSegments();
    core_segments_ = !whole_pixels && !layer.in_blocks ? static_cast<double>(s_.pixels)
                     : whole_columns                   ? 1.0
                                                       : static_cast<double>(s_.core_rows);
    const auto image_rows = static_cast<double>(layer.image_rows.LoadedOf(s_.core_rows));
    image_segments_ =
        m.image_in_parts ? static_cast<double>(s_.pixels)
        : layer.has_part_of_pixels()
            ? image_rows * static_cast<double>(layer.image_columns.LoadedOf(s_.core_columns))
        : whole_columns ? 1.0
                        : image_rows;
  }

  CostParts Parts() {
    cost_.Phase("before", 1), cost_.Lane();
    cost_.Add("program", kScalarUnit, kScalarCode);
    if (m_.turns > 1) {
      AddTurns();
      return cost_;
    }
    m_.weights_by_smem ? AddStepsBySmem() : AddStepsByCores();
    if (m_.parts > 1) AddWholeSums();
    AddResults();
    return cost_;
  }

 private:
  // Rows of the result, or of what a cluster has of each pixel.
  double SubPixelSegments() const {
    const SubPixels& all = *layer_.sub_pixels;
    const SubPixels own = all.Run(s_.cluster_channels).value_or(all);
    if (own == all && !layer_.rows_apart) return 1;
    const int64_t rows = s_.turn_rows * own.rows;
    if (own.columns == all.columns && own.channels == all.channels)
      return static_cast<double>(rows);
    return static_cast<double>(rows * layer_.columns * own.columns);
  }

  // A load or store: what it waits for, then bytes, by what carries them.
  struct Transfer {
    double waits = 0, bytes = 0;
    std::string_view by;
    double cycles() const { return waits + bytes; }
  };
  static Transfer Longer(const Transfer& a, const Transfer& b) {
    return a.cycles() > b.cycles() ? a : b;
  }
  // Of `bytes` by each core, or by the memory core.
  Transfer ByCores(double bytes, double segments, double at_once) const {
    return ByCores(bytes, segments, at_once, cores_);
  }
  Transfer ByCores(double bytes, double segments, double at_once, double cores) const {
    const Transfer own = {card_.io_start + segments * latency_ / at_once, bytes / card_.io_port,
                          kIoDma};
    const Transfer shared = {card_.io_start + latency_, bytes * cores / share_, share_is_};
    if (segments <= std::max(1.0, at_once)) return Longer(own, shared);
    // Few segments in flight keep neither their trips nor GMEM busy all the time.
    const double both = std::hypot(own.cycles(), shared.cycles());
    return own.cycles() > shared.cycles() ? Transfer{both - own.bytes, own.bytes, own.by}
                                          : Transfer{both - shared.bytes, shared.bytes, shared.by};
  }
  // One of many after the other, by each core: they drift apart, so that one waits while others' bytes come.
  Transfer StreamByCores(double bytes, double cores) const {
    const Transfer own = {copies_ * (card_.io_start + latency_), bytes / card_.io_port, kIoDma};
    const Transfer shared = {0, bytes * cores / share_, share_is_};
    if (copies_ == 1) return Longer(own, shared);
    // The second one of a core waits behind others', too, which shows where trips take about as long as all bytes (of
    // 24x24x1024,728x1x1x1024 of f16 on mlu370 steps of 650 and 600 cycles take 930).
    const double both = std::cbrt(std::pow(own.cycles(), 3) + std::pow(shared.cycles(), 3));
    return {both - shared.bytes, shared.bytes, share_is_};
  }
  // Cores that have channels of the last block.
  double LastCores() const {
    const auto step = static_cast<double>(m_.across * m_.block);
    return cores_ * (static_cast<double>(s_.cluster_channels) - (blocks_ - 1) * step) / step;
  }
  // Its own port sends one segment after the other; GMEM serves those of other clusters meanwhile.
  Transfer ByMemoryCore(double bytes, double segments = 1, double at_once = 1) const {
    const double own = std::min(card_.memory_core_port, card_.link) * at_once;
    return Longer({card_.io_start + segments * latency_ / at_once, bytes / own, kMemoryCore},
                  {card_.io_start + latency_, bytes / port_, port_is_});
  }
  // One of many after the other: clusters drift apart, so that one waits while others' bytes come.
  Transfer StreamByMemoryCore(double bytes) const {
    return Longer({card_.io_start + latency_, bytes / memory_core_, kMemoryCore},
                  {0, bytes / port_, port_is_});
  }
  // A copy between SMEM and each core.
  Transfer ByMove(double bytes) const {
    return {card_.move_start + card_.smem_latency,
            bytes / std::min(card_.move_port, card_.smem / cores_), kMoveDma};
  }

  void Add(std::string_view what, const Transfer& t) {
    cost_.Add(what, kWaits, t.waits);
    cost_.Add(what, t.by, t.bytes);
  }
  void AddWaits(double times, double cycles) {
    cost_.Phase("waits", times), cost_.Lane(), cost_.Add("queues and barriers", kWaits, cycles);
  }

  // Sums of a step.
  double SumsCycles() const {
    const auto results = static_cast<double>(s_.pixels * s_.lanes);
    const auto pitch = static_cast<double>(s_.pitch);
    double cycles =
        results * pitch / static_cast<double>(layer_.element_bytes) / layer_.macs_per_cycle;
    if (m_.parts > 1) {
      // Sums of four bytes are read and written again.
      cycles = std::max({cycles, results * (pitch / isa::kTensorLanes + 4) / card_.tensor_read,
                         results * 4 / card_.tensor_write});
    }
    return card_.tensor_start + cycles;
  }
  // Sums of a step, and what is done with them if they are whole.
  void AddCompute() {
    if (m_.image_in_parts && layer_.is_padded) {
      // The margins of each part.
      cost_.Add("padding", kVectorUnit, card_.vector_start + core_image_ / card_.vector_bytes);
    }
    cost_.Add("sums", kTensorUnit, SumsCycles());
    if (m_.parts == 1) AddElementwise();
  }
  // Elementwise work on sums that are whole, and their way out: one piece leaves while the next one is worked on.
  void AddWholeSums() {
    const auto add_out = [&] {
      AddMovedResults();
      if (m_.StoresBlocks(layer_)) Add("results", BlockStore());
    };
    cost_.Phase(m_.pieces == 1 ? "sums are whole" : "first piece", blocks_);
    cost_.Lane(), AddElementwise();
    if (m_.pieces > 1) {
      cost_.Phase("pieces", blocks_ * (pieces_ - 1));
      cost_.Lane(), AddElementwise(), cost_.Add("queues and barriers", kWaits, card_.drain);
      cost_.Lane(), add_out();
      cost_.Phase("last piece", blocks_), cost_.Lane();
    }
    add_out();
  }
  // Elementwise work of a step, and copies of what it loaded and of its results.
  void AddElementwise() {
    cost_.Add("elementwise", kVectorUnit, layer_.vector_cycles(s_.piece_pixels, s_.lanes));
    if (m_.results_by_smem || (m_.StoresBlocks(layer_) && s_.loaded_bytes == 0)) return;
    // A copy to where all channels of a pixel are; another one of what was loaded.
    const auto copies =
        static_cast<double>((m_.StoresBlocks(layer_) ? 0 : layer_.result_bytes) + s_.loaded_bytes);
    cost_.Add("copies", kVectorUnit,
              (s_.loaded_bytes > 0 ? 2 : 1) * card_.vector_start +
                  outputs_ * copies / card_.vector_bytes);
  }
  void AddMoved() {
    if (m_.parts == 1) AddMovedResults();
  }
  // Between SMEM and NMEM.
  void AddMovedResults() {
    if (!m_.results_by_smem) return;
    Add("results", OutputsByMove(layer_.result_bytes));
    if (s_.loaded_bytes > 0) Add("operands", OutputsByMove(s_.loaded_bytes));
  }

  // What is loaded once: the image and elementwise inputs. Cores fill margins with zeros before they load an image into
  // them, or while the memory core loads it.
  void AddImage() {
    cost_.Lane();
    if (layer_.is_padded) {
      const auto margins = static_cast<double>(m_.image_in_parts ? 0 : s_.core_image_bytes);
      cost_.Add("padding", kVectorUnit, card_.vector_start + margins / card_.vector_bytes);
      cost_.Add("padding", kWaits, card_.drain);
    }
    if (!m_.image_by_smem) {
      Add("image", ByCores(core_image_, image_segments_, card_.strided_reads));
    }
    if (!m_.results_by_smem) {
      for (int64_t bytes : layer_.loaded) {
        Add("operands", ByCores(cluster_outputs_ * static_cast<double>(bytes) / cores_,
                                core_segments_, card_.strided_reads));
      }
    }
    cost_.Lane();
    if (m_.image_by_smem) {
      Add("image", ByMemoryCore(static_cast<double>(s_.cluster_loaded_bytes)));
    }
    if (m_.results_by_smem) {
      for (int64_t bytes : layer_.loaded) {
        Add("operands", ByMemoryCore(cluster_outputs_ * static_cast<double>(bytes),
                                     cluster_segments_, card_.strided_reads));
      }
    }
  }
  // Before the first sums, beside the first weights.
  void AddImageToCores() {
    cost_.Lane();
    if (m_.image_by_smem) {
      cost_.Add("image", kWaits, card_.barrier);
      Add("image", ImageToCore());
    }
    cost_.Lane();
    if (m_.parts > 1) {
      const auto sums = static_cast<double>(s_.pixels * s_.lanes * 4);
      cost_.Add("zeros", kVectorUnit, blocks_ * (card_.vector_start + sums / card_.vector_bytes));
    }
  }
  void AddVectors(int64_t count) {
    cost_.Add("vectors of channels", kWaits,
              static_cast<double>(count) * (card_.io_start + latency_));
  }

  // The memory core loads blocks of all cores, each core copies its part to WMEM.
  Transfer BlockToSmem() const {
    return ByMemoryCore(static_cast<double>(m_.across) * block_bytes_);
  }
  // Each filter takes whole bursts of the port.
  Transfer BlockToWmem() const {
    Transfer move = ByMove(static_cast<double>(m_.block * s_.pitch));
    move.waits *= copies_;
    return move;
  }
  // A load while something is copied from SMEM. Both meet at SMEM's port, which takes bursts in turn: while cores copy,
  // the memory core has its burst's part of a round.
  Transfer LoadBeside(const Transfer& copy) const {
    const double round = card_.io_burst + cores_ * card_.move_burst;
    const double meanwhile = copy.cycles() * card_.smem * card_.io_burst / round;
    const double rest = static_cast<double>(m_.across) * block_bytes_ - meanwhile;
    if (rest <= 0) return {0, 0, kMemoryCore};
    return {card_.io_start, rest / memory_core_, kMemoryCore};
  }
  void AddLoadAndCopy() {
    cost_.Lane(), Add("weights", StreamByMemoryCore(static_cast<double>(m_.across) * block_bytes_));
    if (m_.image_in_parts && !m_.image_by_smem) {
      cost_.Add("image", share_is_, core_image_ * cores_ / share_);
    }
    AddResultsMeanwhile();
    cost_.Lane(), Add("weights to WMEM", BlockToWmem());
    AddMovedImagePart();
    Add("weights", LoadBeside(BlockToWmem()));
    if (m_.image_in_parts && !LoadsBeforeSums()) {
      cost_.Lane(), AddImagePart(static_cast<double>(m_.across) * block_bytes_ / port_);
    }
  }
  // A part of an image with margins that a core loads by itself has one place: it comes when the sums before it are
  // done, if weights come by SMEM.
  bool LoadsBeforeSums() const {
    return m_.image_in_parts && !m_.image_by_smem && m_.weights_by_smem && layer_.is_padded;
  }
  // The same where each pixel is a segment, which takes SMEM's port at least one cycle; all cores' do.
  Transfer ByMove(double bytes, double pixel_bytes) const {
    Transfer move = ByMove(bytes);
    const double pixels = bytes / pixel_bytes;
    move.bytes = std::max({move.bytes, pixels * std::ceil(pixel_bytes / card_.smem) * cores_,
                           pixels * card_.smem_latency / card_.move_outstanding});
    return move;
  }
  // What a core needs first of an image in SMEM.
  Transfer ImageToCore() const {
    if (m_.image_in_parts) return ByMove(core_image_, static_cast<double>(s_.part_pixel_bytes));
    if (!layer_.has_part_of_pixels()) return ByMove(core_image_);
    return ByMove(core_image_, static_cast<double>(layer_.input_channels * layer_.element_bytes));
  }
  // Elements of a step's results, or of what is computed with them, so many bytes each.
  Transfer OutputsByMove(int64_t element_bytes) const {
    const double bytes = outputs_ * static_cast<double>(element_bytes);
    const int64_t lanes = std::min(s_.lanes, s_.cluster_channels);
    return lanes == s_.cluster_channels ? ByMove(bytes)
                                        : ByMove(bytes, static_cast<double>(lanes * element_bytes));
  }
  void AddMovedImagePart() {
    if (m_.image_in_parts && m_.image_by_smem) Add("image", ImageToCore());
  }
  // Short segments, which wait for one another and besides for GMEM, which serves others for `meanwhile` cycles: few
  // segments in flight keep neither busy all the time.
  void AddImagePart(double meanwhile = 0) {
    if (!m_.image_in_parts || m_.image_by_smem) return;
    const double waits = card_.io_start + image_segments_ * latency_ / card_.strided_reads;
    const double bytes = core_image_ * cores_ / share_;
    if (meanwhile == 0) {
      Add("image", {waits, bytes, share_is_});
      return;
    }
    const double served = meanwhile + bytes;
    Add("image", {std::hypot(waits, served) - served, served, share_is_});
  }
  void AddCopy() { cost_.Lane(), Add("weights to WMEM", BlockToWmem()); }

  // Of the block before, while this one is computed.
  bool StoresMeanwhile() const { return layer_.in_blocks && m_.parts == 1; }
  Transfer BlockStore() const {
    const bool is_part = s_.lanes < layer_.channels && !layer_.in_blocks;
    const double segments = is_part ? static_cast<double>(s_.piece_pixels)
                            : layer_.in_blocks
                                ? core_segments_ * static_cast<double>(s_.lanes / isa::kTensorLanes)
                                : core_segments_;
    return ByCores(outputs_ * static_cast<double>(layer_.result_bytes), segments,
                   card_.store_segments);
  }
  // GMEM serves both.
  void AddResultsMeanwhile() {
    if (!StoresMeanwhile()) return;
    const double bytes = outputs_ * static_cast<double>(layer_.result_bytes);
    cost_.Add("results", share_is_, bytes * cores_ / share_);
  }

  // The memory core loads the image first, cores then the rest; step 0 loads, step 1 loads and copies.
  void AddStepsBySmem() {
    cost_.Phase("image", 1), AddImage();
    const bool is_behind = m_.image_by_smem || m_.results_by_smem;
    if (is_behind) cost_.Phase("first weights", 1);
    AddImageToCores();
    cost_.Lane(), AddVectors(layer_.channel_vectors);
    cost_.Lane(), Add("weights", BlockToSmem());
    if (!is_behind) cost_.Add("image", share_is_, core_image_ * cores_ / share_);
    if (m_.image_by_smem) {
      cost_.Lane(), Add("image", ImageToCore());
      Add("weights", LoadBeside(ImageToCore()));
    }
    const double wait = card_.drain + card_.barrier;
    if (is_alone_) {
      // Copies to WMEM wait for the sums before them.
      const auto add_rest = [&] {
        AddCopy();
        cost_.Add("queues and barriers", kWaits, card_.drain);
        AddCompute(), AddMoved();
      };
      AddWaits(steps_, wait);
      cost_.Phase("steps", steps_ - 1), AddLoadAndCopy(), add_rest();
      cost_.Phase("last step", 1), add_rest();
      return;
    }
    // A part of an image that is in SMEM comes behind the copy of the next weights, and the sums wait for it.
    const auto add_step = [&] {
      cost_.Lane();
      if (m_.image_in_parts && m_.image_by_smem) {
        Add("weights to WMEM", BlockToWmem()), AddMovedImagePart();
      }
      if (LoadsBeforeSums()) AddImagePart();
      AddCompute(), AddMoved();
    };
    const double in_run = steps_ / runs_;
    AddWaits(steps_ + runs_, wait);
    if (runs_ > 1) {
      cost_.Phase("first weights of a block", runs_ - 1), AddFirstOfBlock(BlockToSmem());
    }
    cost_.Phase("second load", runs_), in_run > 1 ? AddLoadAndCopy() : AddCopy();
    if (in_run > 2) cost_.Phase("steps", runs_ * (in_run - 2)), AddLoadAndCopy(), add_step();
    if (in_run > 1) cost_.Phase("last step but one", runs_), AddCopy(), add_step();
    cost_.Phase("last step", runs_), add_step();
  }
  // Nothing is computed meanwhile.
  void AddFirstOfBlock(const Transfer& weights) {
    cost_.Lane(), Add("weights", weights), AddImagePart();
    cost_.Lane(), AddMovedImagePart();
  }

  // Each core loads its own weights.
  void AddStepsByCores() {
    Transfer load = ByCores(block_bytes_, 1, 1, blocks_ > 1 ? cores_ : LastCores());
    load.waits *= copies_;
    cost_.Phase("image", 1), AddImage();
    cost_.Phase("first weights", 1), AddImageToCores();
    // Of whole sums the last vector comes while the last products are added (compiler/passes/late_loads.h).
    const int64_t late = blocks_ == 1 && !is_alone_ && layer_.channel_vectors > 0 ? 1 : 0;
    cost_.Lane(), AddVectors(layer_.channel_vectors - late), Add("weights", load);
    if (is_alone_) {
      AddWaits(1, card_.drain);
      cost_.Phase("steps", steps_), cost_.Lane(), AddCompute(), AddMoved();
      cost_.Add("queues and barriers", kWaits, 3 * card_.drain);
      cost_.Phase("loads between", steps_ - 1), cost_.Lane(), Add("weights", load);
      AddImagePart(), AddMovedImagePart();
      return;
    }
    AddWaits(steps_ + runs_, card_.drain);
    const auto add_steps = [&](std::string_view phase, double times, double cores) {
      if (times == 0) return;
      cost_.Phase(phase, times);
      cost_.Lane(), Add("weights", StreamByCores(block_bytes_, cores)), AddImagePart();
      AddResultsMeanwhile();
      cost_.Lane(), AddMovedImagePart(), AddMoved();
      cost_.Lane(), AddCompute();
    };
    // Of the last block, whose weights are fewer, those of one step or, in parts, of all but the first.
    const double of_last = LastCores() == cores_ ? 0
                           : m_.parts > 1        ? static_cast<double>(m_.parts - 1)
                                                 : std::min(1.0, steps_ - 1);
    add_steps("steps", steps_ - runs_ - of_last, cores_);
    add_steps("last weights", of_last, LastCores());
    if (runs_ > 1) {
      const double even = runs_ - 1 - (of_last > 0 ? 1 : 0);
      if (even > 0) cost_.Phase("first weights of a block", even), AddFirstOfBlock(load);
      if (of_last > 0) {
        cost_.Phase("first weights of the last", 1);
        AddFirstOfBlock(ByCores(block_bytes_, 1, 1, LastCores()));
      }
    }
    cost_.Phase("last step", runs_), cost_.Lane(), AddCompute(), AddMoved();
    if (late > 0) cost_.Lane(), AddVectors(late);
  }

  // ---- turns

  // The last turn may have fewer rows.
  double OfATurn(double bytes) const {
    return bytes * static_cast<double>(s_.cluster_rows) /
           static_cast<double>(m_.turns * s_.turn_rows);
  }
  double TurnLoadedBytes() const {
    return OfATurn(static_cast<double>(s_.cluster_loaded_bytes) +
                   cluster_outputs_ * static_cast<double>(s_.loaded_bytes));
  }
  double TurnStoredBytes() const {
    return OfATurn(cluster_outputs_ * static_cast<double>(layer_.result_bytes));
  }
  // What a cluster's memory core brings for a turn, one transfer after the other, while GMEM serves other clusters.
  void AddTurnLoads() {
    const auto add = [&](std::string_view what, double bytes, double segments) {
      Add(what, {card_.io_start + segments * latency_, bytes / memory_core_, kMemoryCore});
    };
    cost_.Lane();
    add("image", static_cast<double>(s_.cluster_loaded_bytes), 1);
    for (int64_t bytes : layer_.loaded) {
      add("operands", cluster_outputs_ * static_cast<double>(bytes),
          1 + (cluster_segments_ - 1) / card_.strided_reads);
    }
  }
  // Cores store.
  void AddTurnStores() {
    const auto storing = static_cast<double>(s_.storing_cores);
    const double segments = 1 + (cluster_segments_ - 1) / storing;
    cost_.Lane();
    Add("results", {card_.io_start + segments * latency_ / card_.store_segments,
                    TurnStoredBytes() / storing / card_.io_port, kIoDma});
  }
  // Of a core for a turn: what its blocks of channels need besides the image, each while the one before is computed.
  // What is alone comes with the image, a step ahead where there are no guards.
  bool FetchesOperands() const { return s_.loaded_bytes > 0 && s_.steps == 1 && s_.equal_turns; }
  bool FetchesImage() const { return !layer_.is_padded && s_.equal_turns; }
  void AddFetch() {
    cost_.Lane();
    if (FetchesImage()) Add("image", ImageToCore());
    if (FetchesOperands()) Add("operands", OutputsByMove(s_.loaded_bytes));
  }
  void AddTurnOfCore() {
    cost_.Lane();
    if (layer_.is_padded) {
      cost_.Add("padding", kVectorUnit,
                card_.vector_start + static_cast<double>(s_.core_image_bytes) / card_.vector_bytes);
    }
    if (!FetchesImage()) Add("image", ImageToCore());
    const bool has_operands = s_.loaded_bytes > 0 && !FetchesOperands();
    const Transfer operands = OutputsByMove(s_.loaded_bytes);
    const Transfer results = OutputsByMove(layer_.result_bytes);
    const auto add_operands = [&] {
      if (has_operands) Add("operands", operands);
    };
    const double moved = results.cycles() + (has_operands ? operands.cycles() : 0);
    const double computed =
        SumsCycles() + layer_.vector_cycles(s_.piece_pixels, s_.lanes) + 2 * card_.drain;
    add_operands();
    for (int64_t block = 0; block < s_.steps; ++block) {
      if (block + 1 == s_.steps || computed > moved) {
        AddCompute();
        cost_.Add("queues and barriers", kWaits, 2 * card_.drain);
      } else {
        add_operands(), Add("results", results);
      }
    }
    Add("results", results);
  }
  // SMEM's port: while cores move, it leaves GMEM's transfers their burst's part of a round.
  void AddPort(bool loads, bool fetches, bool computes, bool stores) {
    const auto blocks = static_cast<double>(s_.steps);
    double moved = 0;
    if (FetchesImage() ? fetches : computes) moved += ImageToCore().bytes;
    if (FetchesOperands() ? fetches : computes) {
      moved += blocks * OutputsByMove(s_.loaded_bytes).bytes;
    }
    if (computes) moved += blocks * OutputsByMove(layer_.result_bytes).bytes;
    const double bytes = (loads ? TurnLoadedBytes() : 0) + (stores ? TurnStoredBytes() : 0);
    // Clusters begin their steps together.
    cost_.Lane(), Add("bytes", {card_.io_start + latency_, bytes / share_, share_is_});
    const double left = card_.io_burst / (card_.io_burst + cores_ * card_.move_burst);
    cost_.Lane(), cost_.Add("bytes", kMemoryCore, bytes / memory_core_);
    cost_.Add("moved meanwhile", kMoveDma, moved * (1 - left));
  }
  // A core's weights come once, beside the first rows. In each step behind that one turn is loaded, the one before
  // goes to the cores, the one before that is computed, and another's results leave.
  void AddTurns() {
    cost_.Phase("weights", 1);
    AddTurnLoads();
    cost_.Lane(), AddVectors(layer_.channel_vectors);
    cost_.Add("weights", kWaits, card_.io_start + latency_);
    cost_.Add("weights", share_is_,
              (static_cast<double>(s_.cluster_channels * layer_.filter_bytes) * cores_ /
                   static_cast<double>(m_.across) +
               TurnLoadedBytes()) /
                  share_);
    const int64_t fetch = FetchesImage() || FetchesOperands() ? 1 : 0, turns = m_.turns;
    const int64_t steps = turns + fetch + 2;
    AddWaits(static_cast<double>(steps), card_.drain + card_.barrier);
    struct Step {
      bool loads, fetches, computes, stores;
      bool operator==(const Step&) const = default;
    };
    const auto step_at = [&](int64_t at) {
      const auto has = [&](int64_t behind) { return at >= behind && at < turns + behind; };
      return Step{has(0), fetch == 1 && has(1), has(1 + fetch), has(2 + fetch)};
    };
    for (int64_t at = 1, next = 1; at < steps; at = next) {
      const Step step = step_at(at);
      while (next < steps && step_at(next) == step) ++next;
      cost_.Phase(step.computes ? "turns"
                  : step.stores ? "after"
                                : "first turn",
                  static_cast<double>(next - at) * kInStep);
      if (step.loads) AddTurnLoads();
      if (step.fetches) AddFetch();
      if (step.computes) AddTurnOfCore();
      if (step.stores) AddTurnStores();
      AddPort(step.loads, step.fetches, step.computes, step.stores);
    }
  }

  void AddResults() {
    if (m_.StoresBlocks(layer_)) {
      if (!StoresMeanwhile()) return;
      cost_.Phase("results", 1), cost_.Lane();
      Add("results", BlockStore());
      return;
    }
    cost_.Phase("after", 1), cost_.Lane();
    const double bytes = cluster_outputs_ * static_cast<double>(layer_.result_bytes);
    if (m_.results_by_smem) {
      cost_.Add("queues and barriers", kWaits, card_.drain + card_.barrier);
      Add("results", ByMemoryCore(bytes, cluster_segments_, card_.memory_core_stores));
    } else {
      Add("results", ByCores(bytes / cores_, core_segments_, card_.store_segments));
    }
  }

  const Layer& layer_;
  const CardFacts& card_;
  const Mapping& m_;
  const Shares s_;
  const double cores_;
  const double share_;  // bytes of GMEM a cycle for each cluster
  const std::string_view share_is_;
  const double latency_;
  const double port_;         // of the memory core, of its share
  const double memory_core_;  // of the memory core alone
  const std::string_view port_is_;
  const double block_bytes_, core_image_;  // of a step
  const double copies_;                    // that bring a block
  const double blocks_;                    // of channels
  const double pieces_;
  const double outputs_, cluster_outputs_;  // of a step, or piece, of a core; of a cluster
  const double steps_;
  // Of steps in which loads overlap sums: between blocks whose sums are in parts none do.
  const double runs_;
  const bool is_alone_;  // WMEM has room for one block
  double cluster_segments_ = 1, core_segments_ = 1, image_segments_ = 1;
  CostParts cost_;
};

}  // namespace

CostParts CostOf(const Layer& layer, const CardFacts& card, const Mapping& m) {
  return StreamCost(layer, card, m).Parts();
}

double AtLeast(const Layer& layer, const CardFacts& card, const Mapping& m) {
  const Shares s = SharesOf(layer, card, m);
  const auto clusters = static_cast<double>(s.clusters);
  const auto cores = static_cast<double>(card.cores);
  const double share = ShareOf(card, clusters);
  // The image comes before the last block of weights, and results leave behind it.
  const double image =
      m.image_by_smem ? static_cast<double>(s.cluster_loaded_bytes)
                      : cores * static_cast<double>(m.image_in_parts ? s.part_image_bytes * m.parts
                                                                     : s.core_loaded_bytes);
  const auto turns = static_cast<double>(m.turns);
  const int64_t channels = s.cluster_channels;
  const auto weights = static_cast<double>(channels * layer.filter_bytes);
  const double copies = m.weights_by_smem ? 1 : cores / static_cast<double>(m.across);
  const double fetched = m.weights_by_smem ? weights / static_cast<double>(m.across) /
                                                 std::min(card.move_port, card.smem / cores)
                                           : 0;
  const auto results =
      static_cast<double>(s.cluster_rows * layer.columns * channels * layer.result_bytes);
  const double sums = turns * static_cast<double>(s.pixels * (channels / m.across)) *
                      static_cast<double>(layer.filter_pitch) /
                      static_cast<double>(layer.element_bytes) / layer.macs_per_cycle;
  // Blocks of results leave while others are computed, and all turns but the last.
  const double meanwhile = layer.in_blocks ? results : results * (turns - 1) / turns;
  return std::max({(turns * image + weights * copies + meanwhile) / share, fetched, sums}) +
         (results - meanwhile) / share;
}

}  // namespace polynao::mapping
