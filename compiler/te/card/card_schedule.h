// The schedules that a group of computes has on a card.
#ifndef COMPILER_TE_CARD_CARD_SCHEDULE_H_
#define COMPILER_TE_CARD_CARD_SCHEDULE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace polynao::te {

// Sizes and orders by name: {"tile", 4096}.
using CardChoice = std::map<std::string, int64_t, std::less<>>;

struct CardSchedule {
  CardChoice choice;
  double cycles = 0;  // by the cost model, which ranks schedules and predicts no cycles
};

}  // namespace polynao::te

#endif  // COMPILER_TE_CARD_CARD_SCHEDULE_H_
