/*
  Tests the halo exchange on the device, on any number of ranks: `mpiexec -n 2 halo`. PETSc's options, and
    -transports host,nccl,auto   the transports to test; by default all that this machine supports: peer and nccl if each rank has its own GPU
    -seconds 1                   for random patterns, on each communicator
  Halos, sizes and values are random; ranks without rows or with an empty halo are frequent. The received values must be
  bitwise those that MPI moves between host arrays. Products that exchange the halo with peers must be exact. Without a
  GPU, only the lists are tested.
*/
#include "halo.cuh"
#include "peers.cuh"

// The lists, by MPI on host arrays
static PetscErrorCode TestLists(const Pattern &p, const char *name)
{
  PetscSF      lists;
  SpMVHaloList send, receive;
  char         reason[SPMV_HALO_TEXT];

  PetscFunctionBeginUser;
  PetscCall(SpMVHaloListsCreate(comm, p.layout, (PetscInt)p.halo_columns.size(), p.halo_columns.data(), &lists, &send,
                                &receive, reason));
  Check(!reason[0], "usable", name);
  Values x = p.X(1), out, in(p.halo_columns.size()), back(send.start[send.peers]), y = p.X(2), sent = p.Reverse(2);
  std::vector<MPI_Request> requests;
  const auto               exchange = [&](const SpMVHaloList &from, Values &a, const SpMVHaloList &to, Values &b) {
    requests.clear();
    for (int k = 0; k < to.peers; k++)
      MPI_Irecv(b.data() + to.start[k], (int)(to.start[k + 1] - to.start[k]), MPIU_SCALAR, to.rank[k], 5, comm,
                              &*requests.insert(requests.end(), MPI_REQUEST_NULL));
    for (int k = 0; k < from.peers; k++)
      MPI_Send(a.data() + from.start[k], (int)(from.start[k + 1] - from.start[k]), MPIU_SCALAR, from.rank[k], 5, comm);
    MPI_Waitall((int)requests.size(), requests.data(), MPI_STATUSES_IGNORE);
  };
  requests.reserve(2 * (size_t)size_);
  for (PetscInt i = 0; i < send.start[send.peers]; i++) out.push_back(x[send.index[i]]);
  bool ordered = true;
  for (int k = 1; k < send.peers; k++) ordered = ordered && send.rank[k] > send.rank[k - 1];
  exchange(send, out, receive, in);
  exchange(receive, sent, send, back);
  for (PetscInt i = 0; i < send.start[send.peers]; i++) y[send.index[i]] = y[send.index[i]] + back[i];
  Check(ordered, "peers ascend", name);
  Check(in == p.Halo(1), "lists forward", name);
  Check(y == p.Sums(2), "lists in reverse", name);
  PetscCall(PetscSFDestroy(&lists));
  PetscFunctionReturn(PETSC_SUCCESS);
}

// Ends the capture of a stream and runs the graph twice
static PetscErrorCode RunCaptured(cudaStream_t stream)
{
  cudaGraph_t     g;
  cudaGraphExec_t e;

  PetscFunctionBeginUser;
  PetscCallCUDA(cudaStreamEndCapture(stream, &g));
  PetscCallCUDA(cudaGraphInstantiate(&e, g, 0));
  for (int twice = 0; twice < 2; twice++) PetscCallCUDA(cudaGraphLaunch(e, stream));
  PetscCallCUDA(cudaStreamSynchronize(stream));
  PetscCallCUDA(cudaGraphExecDestroy(e));
  PetscCallCUDA(cudaGraphDestroy(g));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Several exchanges of one or two halos are queued before the host looks at any result. Each must see the x of its own
  round and must not overwrite data that the previous round has yet to read.
*/
static PetscErrorCode TestExchange(std::vector<const Pattern *> patterns, SpMVHaloType type, bool graph,
                                   cudaStream_t first, cudaStream_t second, const char *name)
{
  constexpr int                    rounds = 4;
  std::vector<SpMVHalo>            halos;
  std::vector<std::vector<Device>> x, in, back, y;
  std::vector<Device>              work;
  // only if MPI can read device memory, and only for a pattern that needs an exchange
  bool         petsc  = false;
  cudaStream_t stream = first;
  // Complex x need not be aligned to a complex number; in every other round it is not
  const auto x_of = [&](size_t h, int r) {
    return (PetscScalar *)((PetscReal *)work[h].p + (sizeof(PetscScalar) > sizeof(PetscReal) ? r % 2 : 0));
  };

  PetscFunctionBeginUser;
  for (const Pattern *p : patterns) {
    SpMVHalo halo;
    PetscCall(SpMVHaloCreate(comm, p->layout, (PetscInt)p->halo_columns.size(), p->halo_columns.data(), type, &halo));
    halos.push_back(halo);
    petsc = petsc || SpMVHaloUsesPetsc(halo);
    Check(!SpMVHaloUsesPetsc(halo) || type == SPMV_HALO_AUTO, SpMVHaloDescribe(halo), name);
    if (!SpMVHaloUsesPetsc(halo))
      Check((Exchange(halo).array == NULL) == p->halo_columns.empty(), "an array unless the halo is empty", name);
    x.emplace_back(), in.emplace_back(), back.emplace_back(), y.emplace_back();
    for (int r = 0; r < rounds; r++) {
      x.back().emplace_back(p->X(r));
      in.back().emplace_back(p->halo_columns.size());
      back.back().emplace_back(p->Reverse(r));
      y.back().emplace_back(p->X(r));
    }
    work.emplace_back((size_t)p->n);
  }
  PetscCallCUDA(cudaDeviceSynchronize()); // they were poisoned in another stream
  const auto forward = [&](int r) -> PetscErrorCode {
    for (size_t h = 0; h < halos.size(); h++) {
      PetscScalar *array = Exchange(halos[h]).array;
      PetscCall(Copy(x_of(h, r), x[h][r].p, work[h].n, stream));
      if (array) PetscCallCUDA(cudaMemsetAsync(array, 0xff, in[h][r].n * sizeof(PetscScalar), stream));
      PetscCall(Exchange(halos[h]).Begin(x_of(h, r), stream));
    }
    for (size_t h = 0; h < halos.size(); h++) {
      PetscCall(Exchange(halos[h]).End(stream));
      PetscCall(Copy(in[h][r].p, Exchange(halos[h]).array, in[h][r].n, stream));
      // the owner of x may now write to it
      PetscCallCUDA(cudaMemsetAsync(work[h].p, 0xff, work[h].n * sizeof(PetscScalar), stream));
    }
    return PETSC_SUCCESS;
  };
  const auto reverse = [&](int r) -> PetscErrorCode {
    for (size_t h = 0; h < halos.size(); h++) {
      PetscCall(Copy(Exchange(halos[h]).array, back[h][r].p, back[h][r].n, stream));
      PetscCall(Copy(y[h][r].p, x[h][r].p, x[h][r].n, stream)); // a graph runs twice
      PetscCall(Exchange(halos[h]).ReverseBegin(stream));
    }
    for (size_t h = 0; h < halos.size(); h++) PetscCall(Exchange(halos[h]).ReverseEnd(y[h][r].p, stream));
    return PETSC_SUCCESS;
  };
  if (!petsc) {
    for (int r = 0; r < rounds; r++) {
      if (graph) PetscCallCUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
      // like a program that changes streams between products without ordering them in any other way
      if (second) stream = r % 2 ? second : first;
      for (SpMVHalo &halo : halos) PetscCall(Exchange(halo).Enter(stream));
      PetscCall(forward(r));
      PetscCall(reverse(r));
      for (SpMVHalo &halo : halos) PetscCall(Exchange(halo).Leave(stream));
      if (graph) PetscCall(RunCaptured(stream));
    }
    PetscCallCUDA(cudaDeviceSynchronize());
    for (size_t h = 0; h < halos.size(); h++) {
      bool there = true, sums = true;
      for (int r = 0; r < rounds; r++) {
        there = there && in[h][r].Get() == patterns[h]->Halo(r);
        sums  = sums && y[h][r].Get() == patterns[h]->Sums(r);
      }
      Check(there, "forward", name);
      Check(sums, "reverse", name);
    }
  }
  for (SpMVHalo &halo : halos) PetscCall(SpMVHaloDestroy(&halo));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  A halo exchanges several columns of x, then one, and so on. All exchanges are queued before the host looks at a
  result. Between the columns of x there are other numbers, which must not be sent.
*/
static PetscErrorCode TestColumns(const Pattern &p, SpMVHaloType type, bool graph, cudaStream_t first,
                                  cudaStream_t second, const char *name)
{
  const std::vector<int> counts = {SPMV_HALO_COLUMNS, 1, 3, 2, SPMV_HALO_COLUMNS, 5};
  const size_t           rows = p.halo_columns.size(), ldx = (size_t)p.n + 3;
  const auto             seed = [](size_t r, int q) { return (uint64_t)(100 + 10 * r + q); };
  std::vector<Device>    x, in, one;
  Device                 work(ldx * SPMV_HALO_COLUMNS);
  SpMVHalo               halo;
  PetscBool              possible;
  PetscScalar           *array;
  PetscInt               ld;
  cudaStream_t           stream = first;

  PetscFunctionBeginUser;
  PetscCall(SpMVHaloCreate(comm, p.layout, (PetscInt)rows, p.halo_columns.data(), type, &halo));
  PetscCall(SpMVHaloSetUpColumns(halo, &possible));
  Check(possible != SpMVHaloUsesPetsc(halo), "several columns are possible", name);
  if (!possible) {
    PetscCall(SpMVHaloDestroy(&halo));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  array = Exchange(halo, true).array;
  ld    = Exchange(halo, true).ld;
  Check((array ? (size_t)ld : 0) == rows && (array == NULL) == (rows == 0),
        "an array for several columns unless the halo is empty", name);
  for (size_t r = 0; r < counts.size(); r++) {
    Values panel;
    for (int q = 0; q < counts[r]; q++) {
      for (PetscScalar v : p.X(seed(r, q))) panel.push_back(v);
      for (int k = 0; k < 3; k++) panel.push_back(Value(k, 99));
    }
    x.emplace_back(panel);
    in.emplace_back(rows * counts[r]);
    one.emplace_back(rows);
  }
  PetscCallCUDA(cudaDeviceSynchronize());
  for (size_t r = 0; r < counts.size(); r++) {
    if (graph) PetscCallCUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    if (second) stream = r % 2 ? second : first;
    PetscCall(Exchange(halo).Enter(stream));
    PetscCall(Exchange(halo, true).Enter(stream));
    PetscCall(Copy(work.p, x[r].p, x[r].n, stream));
    if (array) PetscCallCUDA(cudaMemsetAsync(array, 0xff, rows * SPMV_HALO_COLUMNS * sizeof(PetscScalar), stream));
    PetscCall(Exchange(halo, true).BeginColumns(counts[r], work.p, (PetscInt)ldx, stream));
    PetscCall(Exchange(halo, true).End(stream));
    PetscCall(Exchange(halo).Begin(work.p, stream));
    PetscCall(Copy(in[r].p, array, in[r].n, stream));
    PetscCall(Exchange(halo).End(stream));
    PetscCall(Copy(one[r].p, Exchange(halo).array, rows, stream));
    PetscCallCUDA(cudaMemsetAsync(work.p, 0xff, work.n * sizeof(PetscScalar), stream));
    PetscCall(Exchange(halo, true).Leave(stream));
    PetscCall(Exchange(halo).Leave(stream));
    if (graph) PetscCall(RunCaptured(stream));
  }
  PetscCallCUDA(cudaDeviceSynchronize());
  bool there = true, alone = true;
  for (size_t r = 0; r < counts.size(); r++) {
    Values want;
    for (int q = 0; q < counts[r]; q++) {
      for (PetscScalar v : p.Halo(seed(r, q))) want.push_back(v);
    }
    there = there && in[r].Get() == want;
    alone = alone && one[r].Get() == p.Halo(seed(r, 0));
  }
  Check(there, "several columns", name);
  Check(alone, "one column after several", name);
  PetscCall(SpMVHaloDestroy(&halo));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static std::vector<PetscInt> Rows(int kind)
{
  std::vector<PetscInt> rows;
  for (int r = 0; r < size_; r++) rows.push_back(kind == 0 || Int(4) ? 1 + Int(700) : 0);
  return rows;
}

static PetscErrorCode TestPattern(int kind, const std::vector<SpMVHaloType> &types, cudaStream_t stream,
                                  cudaStream_t other)
{
  static const char *const names[] = {"a band",  "anything",         "runs",           "few", "everything",
                                      "nothing", "one gives to all", "all give to one"};
  const int                chance = 1 + Int(100), band = 1 + Int(200);
  const uint64_t           salt = shared++;
  const auto               pick = [&](int which) {
    return [=](int r, PetscInt i) -> bool {
      switch (which) {
      case 0: return i % 97 < band;
      case 1: return (int)(Hash(i, salt + r) % 100) < chance;
      case 2: return (int)(Hash(i / 67, salt + r) % 100) < 50;
      case 3: return Hash(i, salt + r) % 211 == 0;
      case 4: return true;
      case 5: return false;
      case 6: return i < 300 && Hash(i, salt) % 3;
      default: return r == size_ - 1;
      }
    };
  };
  Pattern a, b;

  PetscFunctionBeginUser;
  PetscCall(a.Create(Rows(kind), pick(kind)));
  PetscCall(b.Create(Rows(1), pick(Int(8))));
  PetscCall(TestLists(a, names[kind]));
  for (SpMVHaloType type : types) {
    char name[96];
    PetscCall(PetscSNPrintf(name, sizeof(name), "%s, %s, salt %d", names[kind], SpMVHaloTypes[type], (int)salt));
    PetscCall(TestExchange({&a}, type, false, stream, NULL, name));
    PetscCall(TestExchange({&a, &b}, type, false, stream, NULL, name));
    PetscCall(TestExchange({&b}, type, false, stream, other, name));
    if (type == SPMV_HALO_NCCL || type == SPMV_HALO_PEER)
      PetscCall(TestExchange({&b, &a}, type, true, stream, NULL, name));
    PetscCall(TestColumns(a, type, false, stream, NULL, name));
    PetscCall(TestColumns(b, type, false, stream, other, name));
    if (type == SPMV_HALO_NCCL || type == SPMV_HALO_PEER) PetscCall(TestColumns(a, type, true, stream, NULL, name));
  }
  PetscCall(a.Destroy());
  PetscCall(b.Destroy());
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  int                       devices = 0;
  PetscInt                  count   = 5, chosen[5];
  PetscReal                 seconds = 1;
  PetscBool                 set;
  std::vector<SpMVHaloType> types;
  cudaStream_t              stream = NULL, other = NULL;
  MPI_Comm                  backward;

  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall((*SpMVCUDA.begin)());
  comm = PETSC_COMM_WORLD;
  MPI_Comm_rank(comm, &rank_);
  MPI_Comm_size(comm, &size_);
  if (cudaGetDeviceCount(&devices) != cudaSuccess) devices = 0;
  MPI_Allreduce(MPI_IN_PLACE, &devices, 1, MPI_INT, MPI_MIN, comm);
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-seconds", &seconds, NULL));
  PetscCall(PetscOptionsGetEnumArray(NULL, NULL, "-transports", SpMVHaloTypes, (PetscEnum *)chosen, &count, &set));
  if (set) {
    for (PetscInt k = 0; k < count; k++) types.push_back((SpMVHaloType)((int *)chosen)[k]);
  } else {
    types = {SPMV_HALO_HOST, SPMV_HALO_AUTO};
    if (devices >= size_) types.insert(types.end(), {SPMV_HALO_PEER, SPMV_HALO_NCCL});
  }
  if (!devices) {
    PetscCall(PetscPrintf(comm, "no GPU on every rank: the lists only\n"));
    types.clear();
    skipped++;
  } else {
    PetscCall(PetscDeviceInitialize(PETSC_DEVICE_CUDA));
    PetscCallCUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    PetscCallCUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  }

  // A transport that is not available fails on all ranks, with the reason, and no rank waits for another
  if (size_ > 1 && devices < size_) {
    Pattern  p;
    SpMVHalo halo = NULL;
    PetscCall(p.Create(Rows(0), [](int, PetscInt i) { return i % 7 == 0; }));
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    for (SpMVHaloType type : {SPMV_HALO_PEER, SPMV_HALO_NCCL}) {
      const PetscErrorCode error =
          SpMVHaloCreate(comm, p.layout, (PetscInt)p.halo_columns.size(), p.halo_columns.data(), type, &halo);
      Check(error == PETSC_ERR_SUP_SYS, "is refused", devices ? "one GPU for several ranks" : "no GPU");
      PetscCall(SpMVHaloDestroy(&halo));
    }
    PetscCall(PetscPopErrorHandler());
    PetscCall(
        SpMVHaloCreate(comm, p.layout, (PetscInt)p.halo_columns.size(), p.halo_columns.data(), SPMV_HALO_AUTO, &halo));
    PetscCall(PetscPrintf(comm, "auto: %s\n", SpMVHaloDescribe(halo)));
    if (!devices) Check(SpMVHaloUsesPetsc(halo), "leaves it to PETSc", "auto without a GPU");
    PetscCall(SpMVHaloDestroy(&halo));
    PetscCall(p.Destroy());
  }

  // Twice: another communicator, with the ranks in reverse order, which is freed again
  PetscCallMPI(MPI_Comm_split(PETSC_COMM_WORLD, 0, -rank_, &backward));
  for (MPI_Comm c : {PETSC_COMM_WORLD, backward}) {
    comm = c;
    MPI_Comm_rank(comm, &rank_);
    MPI_Comm held; // elsewhere PETSc's objects hold the communicator; the transports are freed with the last of them
    PetscCall(PetscCommDuplicate(comm, &held, NULL));
    const double until = MPI_Wtime() + (double)seconds;
    int          more  = 1;
    for (int k = 0; more; k++) {
      PetscCall(TestPattern(k % 8, types, stream, other));
      more = k < 7 || MPI_Wtime() < until;
      MPI_Bcast(&more, 1, MPI_INT, 0, comm);
    }
    PetscCall(PetscCommDestroy(&held));
  }
  PetscCallMPI(MPI_Comm_free(&backward));
  comm = PETSC_COMM_WORLD;
  MPI_Comm_rank(comm, &rank_);
  if (size_ > 1 && std::count(types.begin(), types.end(), SPMV_HALO_PEER)) PetscCall(TestPeers(stream, other));
  if (stream) PetscCallCUDA(cudaStreamDestroy(stream));
  if (other) PetscCallCUDA(cudaStreamDestroy(other));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%d passed, %d failed, %d skipped\n", passed, failed, skipped));
  PetscCall(PetscFinalize());
  return failed != 0;
}
