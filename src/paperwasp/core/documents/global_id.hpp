// The global ids of documents.
#pragma once

#include <array>
#include <string_view>

namespace paperwasp {

// Bytes 0-3 of the MD5 of the location, then bytes 4-11 of that of the id.
std::array<char, 12> global_id_of(std::string_view location, std::string_view id);

}  // namespace paperwasp
