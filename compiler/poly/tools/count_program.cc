#include "compiler/poly/tools/count_program.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <tuple>
#include <utility>

#include "base/status.h"
#include "compiler/ir/type.h"
#include "compiler/poly/calculator/count.h"
#include "compiler/poly/isl/isl_tools.h"
#include "compiler/poly/model/dependences.h"
#include "compiler/poly/model/extract.h"
#include "compiler/poly/model/scop.h"

namespace polynao::poly {
namespace {

// Counts in one part.
class PartCounter {
 public:
  PartCounter(const Scop& scop, const ProgramCountOptions& options)
      : scop_(scop), options_(options), context_(scop.context.intersect(scop.assumed)) {}

  PartCount Count();

 private:
  // The sum of the sets' numbers of elements less that of `without`, where the context holds.
  SymbolicCount Sum(const std::vector<isl::set>& sets, const std::vector<isl::set>& without = {});
  std::vector<FlowCount> CountFlows();
  // { S0[i, j] -> [floor(i/32), floor(j/32)] }.
  isl::map Tiles(const Statement& statement) const;

  const Scop& scop_;
  const ProgramCountOptions& options_;
  const isl::set context_;  // { : what is known of the parameters }
};

SymbolicCount PartCounter::Sum(const std::vector<isl::set>& sets,
                               const std::vector<isl::set>& without) {
  // What the arguments say: { : n = 10 }.
  isl_set* fixed = context_.copy();
  bool is_fixed = true;
  for (int i = 0; i < isl_set_dim(context_.get(), isl_dim_param); ++i) {
    const auto it = options_.arguments.find(isl_set_get_dim_name(context_.get(), isl_dim_param, i));
    is_fixed &= it != options_.arguments.end();
    if (is_fixed) fixed = isl_set_fix_si(fixed, isl_dim_param, i, it->second);
  }
  const isl::set arguments = isl::manage(fixed);
  // The sum where `known` holds.
  auto sum = [&](const isl::set& known) -> absl::StatusOr<IslPwQuasiPolynomial> {
    IslPwQuasiPolynomial total(isl_pw_qpolynomial_from_qpolynomial(
        isl_qpolynomial_zero_on_domain(isl_set_get_space(context_.get()))));
    for (const isl::set& set : sets) {
      ASSIGN_OR_RETURN(IslPwQuasiPolynomial count, CountElements(set.intersect_params(known)));
      total = IslPwQuasiPolynomial(isl_pw_qpolynomial_add(total.release(), count.release()));
    }
    for (const isl::set& set : without) {
      ASSIGN_OR_RETURN(IslPwQuasiPolynomial count, CountElements(set.intersect_params(known)));
      total = IslPwQuasiPolynomial(isl_pw_qpolynomial_sub(total.release(), count.release()));
    }
    total = IslPwQuasiPolynomial(isl_pw_qpolynomial_coalesce(
        isl_pw_qpolynomial_gist_params(total.release(), context_.copy())));
    return total;
  };
  SymbolicCount result;
  scop_.isl->Allow(options_.max_operations);
  const absl::Status status = Guarded(*scop_.isl, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const IslPwQuasiPolynomial total, sum(context_));
    result.text = ToString(total);
    return absl::OkStatus();
  });
  if (!status.ok()) {
    // Where the operations are spent, each function of isl has an error of its own.
    result.text = scop_.isl->IsSpent() ? "not counted: isl needs more operations than it is allowed"
                                       : StrCat("not counted: ", std::string(status.message()));
  }
  if (is_fixed) {
    scop_.isl->Allow(options_.max_operations);
    (void)Guarded(*scop_.isl, [&]() -> absl::Status {
      ASSIGN_OR_RETURN(const IslPwQuasiPolynomial total, sum(arguments));
      ASSIGN_OR_RETURN(const isl::val value, ValueAt(total, options_.arguments));
      if (value.is_int() && value.cmp_si(INT64_MAX) <= 0) {
        result.value = isl_val_get_num_si(value.get());
      }
      return absl::OkStatus();
    });
  }
  scop_.isl->Allow(0);
  return result;
}

isl::map PartCounter::Tiles(const Statement& statement) const {
  std::string from, to;
  for (size_t i = 0; i < statement.iterators.size(); ++i) {
    const int64_t size = options_.tile[std::min(i, options_.tile.size() - 1)];
    StrAppend(&from, i == 0 ? "" : ", ", "i", i);
    StrAppend(&to, i == 0 ? "" : ", ", "floor(i", i, "/", size, ")");
  }
  return isl::map(scop_.isl->ctx(), StrCat("{ ", statement.name, "[", from, "] -> [", to, "] }"));
}

std::vector<FlowCount> PartCounter::CountFlows() {
  std::vector<FlowCount> flows;
  for (const isl::map& flow : MapsOf(ComputeDependences(scop_).flow)) {
    FlowCount count{.producer = DomainName(flow), .consumer = RangeName(flow)};
    if (count.producer == count.consumer) continue;
    const Statement& consumer = *scop_.Find(count.consumer);
    // { [tile] -> S0[i, j] }
    const isl::map needed =
        flow.reverse().apply_domain(Tiles(consumer).intersect_domain(consumer.domain)).coalesce();
    count.needed = Sum({needed.wrap()});
    count.recomputed = Sum({needed.wrap()}, {needed.range().coalesce()});
    flows.push_back(std::move(count));
  }
  std::sort(flows.begin(), flows.end(), [](const FlowCount& a, const FlowCount& b) {
    return std::tie(a.producer, a.consumer) < std::tie(b.producer, b.consumer);
  });
  return flows;
}

PartCount PartCounter::Count() {
  PartCount part;
  part.name = scop_.name;
  struct Sets {
    int element_bytes = 0;
    std::vector<isl::set> reads, writes;
    isl::set footprint;
    std::vector<isl::set> tiles;  // { [tile -> element] }, of one statement each
  };
  std::map<std::string, Sets> arrays;
  for (const Statement& statement : scop_.statements) {
    const isl::map tiles = Tiles(statement).intersect_domain(statement.domain);
    part.statements.push_back(
        {statement.name, Sum({statement.domain}), Sum({tiles.range().coalesce()})});
    std::map<std::string, isl::map> by_tile;  // { tile -> element }
    for (const Access& access : statement.accesses) {
      const isl::map accessed = access.map.intersect_domain(statement.domain);
      const std::string name = RangeName(access.map);
      Sets& sets = arrays[name];
      sets.element_bytes = ir::ByteSize(access.buffer->type);
      (access.is_write ? sets.writes : sets.reads).push_back(accessed.domain());
      const isl::set range = accessed.range();
      sets.footprint = sets.footprint.is_null() ? range : sets.footprint.unite(range);
      const isl::map tile = accessed.apply_domain(tiles);
      const auto [it, is_new] = by_tile.emplace(name, tile);
      if (!is_new) it->second = it->second.unite(tile);
    }
    for (const auto& [name, map] : by_tile) {
      arrays[name].tiles.push_back(map.coalesce().wrap());
    }
  }
  for (const auto& [name, sets] : arrays) {
    ArrayCount count;
    count.name = name;
    count.element_bytes = sets.element_bytes;
    count.reads = Sum(sets.reads);
    count.writes = Sum(sets.writes);
    count.footprint = Sum({sets.footprint.coalesce()});
    count.tile_volume = Sum(sets.tiles);
    part.arrays.push_back(std::move(count));
  }
  part.flows = CountFlows();
  return part;
}

std::string WithValue(const SymbolicCount& count) {
  return count.value ? StrCat(*count.value, "   ", count.text) : count.text;
}

}  // namespace

std::optional<int64_t> ArrayCount::FootprintBytes() const {
  if (!footprint.value) return std::nullopt;
  return *footprint.value * element_bytes;
}

std::optional<int64_t> ArrayCount::VolumeBytes() const {
  if (!tile_volume.value) return std::nullopt;
  return *tile_volume.value * element_bytes;
}

std::optional<double> ArrayCount::Reuse() const {
  if (!reads.value || !writes.value || !footprint.value || *footprint.value == 0) {
    return std::nullopt;
  }
  return static_cast<double>(*reads.value + *writes.value) / static_cast<double>(*footprint.value);
}

absl::StatusOr<std::vector<PartCount>> CountProgram(const ir::Function& function,
                                                    const ProgramCountOptions& options) {
  for (int64_t size : options.tile) {
    if (size < 1) return InvalidInput("expected a tile size of at least 1, found ", size);
  }
  if (options.tile.empty()) return InvalidInput("expected a tile size, found none");
  ASSIGN_OR_RETURN(const Extraction extraction, Extract(function));
  std::set<std::string> parameters;
  for (const Scop& scop : extraction.scops) {
    for (const Parameter& parameter : scop.parameters) parameters.insert(parameter.name);
  }
  for (const auto& [name, value] : options.arguments) {
    if (!parameters.contains(name)) {
      return InvalidInput("expected a parameter of a static control part of '", function.name,
                          "', found '", name, "'");
    }
  }
  std::vector<PartCount> parts;
  for (const Scop& scop : extraction.scops) {
    ASSIGN_OR_RETURN(PartCount part, Guarded(*scop.isl, [&]() -> absl::StatusOr<PartCount> {
                       return PartCounter(scop, options).Count();
                     }));
    parts.push_back(std::move(part));
  }
  return parts;
}

std::string ToString(const std::vector<PartCount>& parts) {
  std::string text;
  for (const PartCount& part : parts) {
    StrAppend(&text, "part '", part.name, "':\n");
    for (const StatementCount& s : part.statements) {
      StrAppend(&text, "  ", s.name, "\n    instances    ", WithValue(s.instances),
                "\n    tiles        ", WithValue(s.tiles), "\n");
    }
    for (const ArrayCount& a : part.arrays) {
      StrAppend(&text, "  ", a.name, ", ", a.element_bytes, " bytes an element\n    reads        ",
                WithValue(a.reads), "\n    writes       ", WithValue(a.writes),
                "\n    footprint    ", WithValue(a.footprint), "\n    tile volume  ",
                WithValue(a.tile_volume), "\n");
      if (const auto reuse = a.Reuse()) {
        char number[32];
        std::snprintf(number, sizeof number, "%.2f", *reuse);
        StrAppend(&text, "    footprint ", *a.FootprintBytes(), " bytes, ");
        if (const auto volume = a.VolumeBytes()) {
          StrAppend(&text, "moved by tiles ", *volume, " bytes, ");
        }
        StrAppend(&text, number, " accesses an element\n");
      }
    }
    for (const FlowCount& f : part.flows) {
      StrAppend(&text, "  ", f.producer, " for tiles of ", f.consumer, "\n    needed       ",
                WithValue(f.needed), "\n    recomputed   ", WithValue(f.recomputed), "\n");
    }
  }
  return text;
}

}  // namespace polynao::poly
