#pragma once

#include <cuda_runtime_api.h>

int RuntimeLive(); // allocations and objects that have not been freed
