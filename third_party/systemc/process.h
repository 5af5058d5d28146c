// SC_METHOD and SC_THREAD as IEEE 1666-2023 has them: a module needs no SC_HAS_PROCESS, which SystemC 3.0 calls
// deprecated. For files that use them, after or instead of <systemc>.
#ifndef THIRD_PARTY_SYSTEMC_PROCESS_H_
#define THIRD_PARTY_SYSTEMC_PROCESS_H_

#include <systemc>
#include <type_traits>

// SystemC 2.3 takes the module's type from this name, which SC_HAS_PROCESS would declare; 3.0 finds the type itself.
#if IEEE_1666_SYSTEMC < 202301L
#define SC_CURRENT_USER_MODULE std::remove_reference_t<decltype(*this)>
#endif

#endif  // THIRD_PARTY_SYSTEMC_PROCESS_H_
