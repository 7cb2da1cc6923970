/* What differs between architectures. */
#pragma once

#if defined(__TARGET_ARCH_x86)
#include "x86.h"
#else
#error "no register layout for this architecture"
#endif
