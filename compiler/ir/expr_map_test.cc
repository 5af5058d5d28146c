#include "compiler/ir/expr_map.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace polynao::ir {
namespace {

TEST(ExprMapTest, FindsWhatWasAdded) {
  Context c;
  // Keys of several pages, far apart, the first and the last of a page among them.
  std::vector<Expr> all;
  for (int i = 0; i < 2000; ++i) all.push_back(c.I32(i));
  ExprMap<std::string> map;
  EXPECT_EQ(map.Find(all[0]), nullptr);
  EXPECT_EQ(map.Find(all[1999]), nullptr);
  for (const int i : {0, 63, 64, 127, 1000, 1999}) {
    EXPECT_TRUE(map.TryAdd(all[i], std::to_string(i)).second) << i;
    EXPECT_FALSE(map.TryAdd(all[i], "other").second) << i;
  }
  const std::string& first = map.At(all[0]);
  int found = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::string* value = map.Find(all[i]);
    found += value != nullptr;
    if (value != nullptr) EXPECT_EQ(*value, std::to_string(i));
  }
  EXPECT_EQ(found, 6);
  // What was made later, and where nothing was.
  EXPECT_FALSE(map.Contains(c.I32(99999)));
  EXPECT_EQ(map.Set(c.I32(99999), "new"), "new");
  EXPECT_EQ(map.Set(all[64], "again"), "again");
  EXPECT_EQ(map.At(all[64]), "again");
  EXPECT_EQ(&first, &map.At(all[0])) << "references stay";
}

TEST(ExprMapTest, Clear) {
  Context c;
  ExprMap<int> map;
  map.Clear();
  const Expr a = c.I32(1), b = c.NewVar("b");
  for (int round = 0; round < 3; ++round) {
    EXPECT_FALSE(map.Contains(a));
    map.Set(a, round);
    EXPECT_EQ(map.At(a), round);
    EXPECT_FALSE(map.Contains(b));
    map.Clear();
  }
}

}  // namespace
}  // namespace polynao::ir
