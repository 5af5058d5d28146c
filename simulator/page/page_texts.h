// The style and the script of the report page.
#ifndef SIMULATOR_PAGE_PAGE_TEXTS_H_
#define SIMULATOR_PAGE_PAGE_TEXTS_H_

#include <string_view>

namespace polynao::simulator {

std::string_view PageStyle();
std::string_view PageScript();

}  // namespace polynao::simulator

#endif  // SIMULATOR_PAGE_PAGE_TEXTS_H_
