// The part of the emulator's state that ALE's own serialization omits.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ale/ale_interface.hpp"

namespace rem {

// Initializes members that ALE leaves uninitialized until the first action.
void initialize(ale::ALEInterface& ale);

void save_hidden_state(ale::ALEInterface& ale, std::vector<uint8_t>& out);

// Call right after restoring ALE's own state. Throws if the bytes are not what `save_hidden_state` writes for the same
// game; the emulator's state is then invalid.
void load_hidden_state(ale::ALEInterface& ale, const uint8_t* bytes, std::size_t size);

}  // namespace rem
