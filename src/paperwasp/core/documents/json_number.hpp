// Numbers as JSON, in the fewest digits that are read back as the same number, and in the form in which orjson writes them: a point in all
// of them, an exponent beyond sixteen digits before it or four zeros behind it.
#pragma once

#include <string>

namespace paperwasp {

// Appends a finite number.
void append_number(double value, std::string& to);
void append_number(float value, std::string& to);

}  // namespace paperwasp
