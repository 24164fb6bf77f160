#include "fuzz.h"

Fuzz fuzz;

void FuzzSeed(uint64_t stream)
{
  uint64_t z = (uint64_t)fuzz.number * 0x9E3779B97F4A7C15ULL + (stream + 1) * 0xD1B54A32D192ED03ULL;

  z    = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z    = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  seed = (z ^ (z >> 31)) | 1;
}

void FuzzLog(const char *format, ...)
{
  const size_t n = strlen(fuzz.log);
  va_list      args;

  if (!fuzz.logging) return;
  va_start(args, format);
  (void)vsnprintf(fuzz.log + n, sizeof(fuzz.log) - n, format, args);
  va_end(args);
}

void FuzzReport(const char *format, ...)
{
  char    text[800];
  va_list args;

  va_start(args, format);
  (void)vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  fuzz.bad++;
  if (fuzz.bad > 3) return;
  fprintf(stderr,
          "FAILED %s: seed %" PetscInt_FMT
          ", rank %d of %d, type %s (running on %s): %s\n  case: %s\n  repeat: -n %d %s -type %s -seed %" PetscInt_FMT
          " -count 1\n",
          fuzz.program, fuzz.number, fuzz.rank, fuzz.size, fuzz.type, fuzz.running ? fuzz.running : "none", text,
          fuzz.log, fuzz.size, fuzz.program, fuzz.type, fuzz.number);
  fflush(stderr);
}

PetscErrorCode FuzzAgree(int *any)
{
  PetscFunctionBegin;
  if (fuzz.size > 1) PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, any, 1, MPI_INT, MPI_MAX, fuzz.comm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Keeps the message of an error instead of printing it */
static PetscErrorCode FuzzOnError(MPI_Comm comm, int line, const char *fun, const char *file, PetscErrorCode n,
                                  PetscErrorType p, const char *mess, void *ctx)
{
  if (p == PETSC_ERROR_INITIAL && !fuzz.error[0])
    (void)snprintf(fuzz.error, sizeof(fuzz.error), "error %d in %s (%s:%d): %s", (int)n, fun ? fun : "?",
                   file ? file : "?", line, mess ? mess : "");
  return n;
}

static PetscErrorCode FuzzOnSignal(int sig, void *ctx)
{
  FuzzReport("signal %d", sig);
  return PetscSignalHandlerDefault(sig, ctx);
}

static void FuzzOnAlarm(int sig)
{
  FuzzReport("%s%s%s",
             sig == SIGALRM   ? "no end"
             : sig == SIGABRT ? "abort, signal 6"
                              : "ended here",
             fuzz.error[0] ? " after " : "", fuzz.error);
  _exit(128 + sig);
}

/* Sanitizers end the program in their own way */
PETSC_EXTERN void __sanitizer_set_death_callback(void (*)(void)) __attribute__((weak));

static void FuzzOnDeath(void)
{
  FuzzReport("ended by a sanitizer, see above");
}

static PetscErrorCode FuzzOptions(PetscInt *first, PetscInt *count, PetscInt *seconds, PetscInt *failures)
{
  PetscInt  more = 0;
  PetscBool set, counted, timed;

  PetscFunctionBegin;
  fuzz.steps = 1000;
  fuzz.nonly = fuzz.nskip = 64;
  fuzz.limit              = 120;
  *first                  = 1;
  *failures               = 10;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-type", fuzz.type, sizeof(fuzz.type), NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-seed", first, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-first", &more, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-count", count, &counted));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-seconds", seconds, &timed));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-steps", &fuzz.steps, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-failures", failures, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-limit", &fuzz.limit, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-verbose", &fuzz.verbose, NULL));
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-ops", fuzz.only, &fuzz.nonly, &set));
  if (!set) fuzz.nonly = 0;
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-skip", fuzz.skip, &fuzz.nskip, &set));
  if (!set) fuzz.nskip = 0;
  *first += more;
  if (!counted) *count = timed ? PETSC_MAX_INT : 100;
  if (!timed) *seconds = PETSC_MAX_INT;
  PetscCheck(*count >= 0 && *first >= 0 && *first <= PETSC_MAX_INT - PetscMin(*count, 1), fuzz.comm, PETSC_ERR_USER,
             "-seed, -first and -count must not be negative");
  PetscCall(OnDevice(fuzz.type, &fuzz.device));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Runs cases until one of the limits is reached. After each case the ranks agree whether it failed and whether there is
   time left */
static PetscErrorCode FuzzCases(PetscErrorCode (*one)(void), PetscInt *bad)
{
  PetscInt       first, count = 0, seconds = 0, failures, k = 0;
  PetscLogDouble begin, now_;
  double         time;

  PetscFunctionBegin;
  PetscCall(FuzzOptions(&first, &count, &seconds, &failures));
  PetscCall(PetscTime(&begin));
  now_ = begin;
  PetscCall(PetscPushErrorHandler(FuzzOnError, NULL));
  PetscCall(PetscPushSignalHandler(FuzzOnSignal, NULL));
  signal(SIGALRM, FuzzOnAlarm);
  signal(SIGTERM, FuzzOnAlarm);
  signal(SIGABRT, FuzzOnAlarm); /* the C library detected corrupted memory */
  if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(FuzzOnDeath);
  for (; k < count && *bad < failures; k++) {
    PetscErrorCode ierr;
    int            any[2];

    fuzz.number = first + k;
    fuzz.log[0] = fuzz.error[0] = 0;
    fuzz.bad                    = 0;
    fuzz.logging                = PETSC_TRUE;
    alarm((unsigned int)fuzz.limit);
    ierr = (*one)();
    if (ierr) FuzzReport("the case could not go on: %s", fuzz.error);
    PetscCall(PetscTime(&now_));
    any[0] = fuzz.bad > 0;
    any[1] = now_ - begin >= (PetscLogDouble)seconds;
    if (fuzz.size > 1) PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, any, 2, MPI_INT, MPI_MAX, fuzz.comm));
    *bad += any[0];
    if (ierr)
      PetscCheck(fuzz.size == 1, PETSC_COMM_SELF, PETSC_ERR_PLIB,
                 "seed %" PetscInt_FMT " left the ranks out of step: %s", fuzz.number, fuzz.error);
    if (any[1]) {
      k++;
      break;
    }
  }
  alarm(0);
  if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(NULL);
  signal(SIGALRM, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  signal(SIGABRT, SIG_DFL);
  PetscCall(PetscPopSignalHandler());
  PetscCall(PetscPopErrorHandler());
  time = (double)(now_ - begin);
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &fuzz.checks, 1, MPIU_INT64, MPI_SUM, fuzz.comm));
  PetscCall(PetscPrintf(fuzz.comm,
                        "%s: type %s on the %s, %d ranks: %" PetscInt_FMT " cases, seeds %" PetscInt_FMT
                        " to %" PetscInt_FMT ", %" PetscInt64_FMT " rows compared, %.1f seconds, %" PetscInt_FMT
                        " failed\n",
                        fuzz.program, fuzz.type, fuzz.device ? "device" : "host", fuzz.size, k, first, first + k - 1,
                        fuzz.checks, time, *bad));
  for (PetscInt q = 0; q < fuzz.nonly; q++) PetscCall(PetscFree(fuzz.only[q]));
  for (PetscInt q = 0; q < fuzz.nskip; q++) PetscCall(PetscFree(fuzz.skip[q]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int FuzzMain(int argc, char **argv, const char *program, const char *type, PetscErrorCode (*one)(void))
{
  PetscInt       bad = 0;
  PetscErrorCode ierr;

  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(PetscSpMVInitializePackage());
  fuzz.program = program;
  fuzz.comm    = PETSC_COMM_WORLD;
  PetscCall(PetscStrncpy(fuzz.type, type, sizeof(fuzz.type)));
  PetscCallMPI(MPI_Comm_size(fuzz.comm, &fuzz.size));
  PetscCallMPI(MPI_Comm_rank(fuzz.comm, &fuzz.rank));
  ierr = FuzzCases(one, &bad);
  if (ierr) MPI_Abort(PETSC_COMM_WORLD, 3);
  PetscCall(PetscFinalize());
  return bad ? 1 : 0;
}
