/*
  A library without CUDA: the folder cuda is not compiled, and PETSc's iterations run.
*/
#include "deviceksp.h"

const KSPDeviceBackend KSPDeviceCUDA = {NULL};
