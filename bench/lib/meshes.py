#!/usr/bin/env -S python3 -B
"""Matrices of finite elements on unstructured meshes, as programs assemble them. Benchmarks call them mesh:NAME:

  meshes.py [-out FOLDER] [-scale 1] [-jobs N] [KIND...]   # writes NAME.petsc, in PETSc's binary format (default: all kinds)
  meshes.py -check                                         # compares element matrices and constraints with what is known of them

Triangles and tetrahedra are Delaunay's, of jittered points of a lattice, P1 and P2; hexahedra are boxes that are refined around a sphere, with
hanging nodes. The values are integrals over the elements, of the Poisson equation, elasticity, Stokes' equations (Taylor-Hood) and curl-curl with mass
(edge elements), with a coefficient that jumps at x = 1/2. -scale 1 is for a GPU, 0.25 (a quarter of the points) for a core. Needs numpy and scipy,
which are installed in build/ if the system has none; what pyamg's classical coarsening makes of a matrix is left out where pyamg is not installed.

A name consists of the kind, the order of the nodes (natural: the generator's, rcm, random) and, if values are given at x = 0, rows (their rows have the
diagonal alone, and their columns no other entry) or cut (without these rows and columns). Hanging nodes have rows with the diagonal alone.
"""

import argparse
import functools
import multiprocessing
import os
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.environ.setdefault("OMP_NUM_THREADS", "1")  # each process makes a matrix of its own
try:
    import numpy as np
    import scipy.sparse as sp
    from scipy.sparse.csgraph import reverse_cuthill_mckee
    from scipy.spatial import ConvexHull, Delaunay
except ImportError:
    python = subprocess.run([os.path.join(ROOT, "bench/lib/python"), "numpy", "scipy", "pyamg"], stdout=subprocess.PIPE, text=True).stdout.strip()
    if python in ("", "python3", sys.executable):
        sys.exit("bench/lib/meshes.py needs numpy and scipy")
    os.execv(python, [python, "-B", *sys.argv])

LAMBDA, MU = 1.2, 0.8

# ---------------------------------------------------------------------------------------------------------------------
# Simplices: basis functions in barycentric coordinates. A gradient is the sum over the coordinates k of a derivative
# D[k] times the gradient G[k] of the coordinate, which is constant in an element


def points(dim):
    """A quadrature rule that is exact for polynomials of degree 2: points in barycentric coordinates; the weights are equal"""
    b = (1 - (dim + 2) ** -0.5) / (dim + 1)
    return np.full((dim + 1, dim + 1), b) + (1 - (dim + 1) * b) * np.eye(dim + 1)


def edges_of(dim):
    return [(a, b) for a in range(dim + 1) for b in range(a + 1, dim + 1)]


def basis(dim, degree):
    """At the quadrature points: the functions [q,i] and their derivatives [q,i,k]. P2 has the vertices' functions, then those of the edges"""
    q = points(dim)
    one = np.eye(dim + 1)
    if degree == 1:
        return q, np.broadcast_to(one, (dim + 1,) + one.shape)
    value = [l * (2 * l - 1) for l in q.T] + [4 * q[:, a] * q[:, b] for a, b in edges_of(dim)]
    slope = [(4 * l - 1)[:, None] * one[k] for k, l in enumerate(q.T)]
    slope += [4 * (q[:, a, None] * one[b] + q[:, b, None] * one[a]) for a, b in edges_of(dim)]
    return np.stack(value, 1), np.stack(slope, 1)


class Simplices:
    """Points, elements, and what integrals over them need"""

    def __init__(self, dim, n):
        random = np.random.default_rng(7)
        k = round(n ** (1 / dim))
        lattice = np.stack(np.meshgrid(*[np.arange(k)] * dim, indexing="ij"), -1).reshape(-1, dim)
        self.dim, self.x = dim, (lattice + 0.5 + 0.6 * (random.random(lattice.shape) - 0.5)) / k
        t = np.sort(Delaunay(self.x).simplices, 1)  # so that an edge has the same direction in all elements
        side = self.x[t[:, 1:]] - self.x[t[:, :1]]
        volume = np.abs(np.linalg.det(side)) / (2 if dim == 2 else 6)
        flat = volume < 1e-6 / len(self.x)
        self.t, self.volume = t[~flat], volume[~flat]
        inverse = np.linalg.inv(side[~flat])
        self.G = np.concatenate([-inverse.sum(2, keepdims=True), inverse], 2).transpose(0, 2, 1)  # element, coordinate k, direction
        self.jump = np.where(self.x[self.t].mean(1)[:, 0] > 0.5, 1.0, 7.3)

    @functools.cached_property
    def edges(self):
        """The ends of each edge, and the edges of each element"""
        n, of = len(self.x), edges_of(self.dim)
        pairs = np.concatenate([self.t[:, e] for e in of])
        code, place = np.unique(pairs[:, 0].astype(np.int64) * n + pairs[:, 1], return_inverse=True)
        return np.stack([code // n, code % n], 1), place.reshape(len(of), -1).T

    def nodes(self, degree):
        """The nodes of each element, and their positions"""
        if degree == 1:
            return self.t, self.x
        ends, of = self.edges
        return np.concatenate([self.t, len(self.x) + of], 1), np.concatenate([self.x, self.x[ends].mean(1)])

    def products(self):
        """Inner products of the gradients of the coordinates, [e,k,l]"""
        return self.G @ self.G.transpose(0, 2, 1)

    def poisson(self, degree):
        slope = basis(self.dim, degree)[1]
        reference = np.einsum("qik,qjl->klij", slope, slope) / len(slope)
        n = reference.shape[-1]
        return ((self.jump * self.volume)[:, None] * self.products().reshape(len(self.t), -1) @ reference.reshape(-1, n * n)).reshape(-1, n, n)

    def elasticity(self, degree):
        """Unknowns of a node are consecutive"""
        slope = basis(self.dim, degree)[1]
        n, d = slope.shape[1], self.dim
        reference = (np.einsum("qik,qjl->klij", slope, slope) / len(slope)).reshape(-1, n * n)
        K = np.empty((len(self.t), n, d, n, d))
        scale = (self.jump * self.volume)[:, None]
        same = (scale * self.products().reshape(len(self.t), -1) @ reference).reshape(-1, n, n)
        for a in range(d):
            for b in range(d):
                g = scale * np.einsum("ek,el->ekl", self.G[:, :, a], self.G[:, :, b]).reshape(len(self.t), -1)
                H = (g @ reference).reshape(-1, n, n)  # the integral of a derivative in a times one in b
                K[:, :, a, :, b] = LAMBDA * H + MU * (H.transpose(0, 2, 1) + (same if a == b else 0))
        return K

    def divergence(self):
        """Of P2 velocities, times P1 pressures: [e,p,i,direction]"""
        value, slope = basis(self.dim, 1)[0], basis(self.dim, 2)[1]
        reference = np.einsum("qp,qik->pik", value, slope) / len(slope)
        return np.einsum("e,pik,eka->epia", -self.volume, reference, self.G, optimize=True)

    def edge_elements(self):
        """Whitney's functions W = l_a grad l_b - l_b grad l_a: curl-curl, and mass"""
        gg, G, d = self.products(), self.G, self.dim
        pairs = edges_of(d)
        mass = (np.ones((d + 1, d + 1)) + np.eye(d + 1)) / ((d + 1) * (d + 2))  # of the coordinates
        C, M = (np.empty((len(self.t), len(pairs), len(pairs))) for _ in range(2))
        curl = [2 * np.cross(G[:, a], G[:, b]) for a, b in pairs]
        for i, (a, b) in enumerate(pairs):
            for j, (p, q) in enumerate(pairs):
                C[:, i, j] = self.jump * self.volume * np.einsum("ed,ed->e", curl[i], curl[j])
                M[:, i, j] = self.volume * (mass[a, p] * gg[:, b, q] - mass[a, q] * gg[:, b, p] - mass[b, p] * gg[:, a, q] + mass[b, q] * gg[:, a, p])
        return C, M


# ---------------------------------------------------------------------------------------------------------------------
# Hexahedra


class Hexahedra:
    """k^3 boxes, of which those near a sphere are divided in eight, twice. A node in the middle of an edge or a face of a larger box hangs: its value is the mean of the
    vertices of this edge or face"""

    SIDES = np.array([1.0, 0.8, 1.3])  # for a box, entries of neighbors along an edge would be 0

    def __init__(self, n):
        k = next(k for k in range(4, 1000) if k**3 + 100 * k**2 >= n)
        corner, size = 4 * np.stack(np.meshgrid(*[np.arange(k)] * 3, indexing="ij"), -1).reshape(-1, 3), np.full(k**3, 4)
        for near in (1.9 / k, 0.5 / k):  # so that neighbors have at most twice the size
            middle = (corner + size[:, None] / 2) / (4 * k) - 0.5
            chosen = np.abs(np.linalg.norm(middle, axis=1) - 0.3) < near
            half = size[chosen] // 2
            parts = (corner[chosen][:, None] + half[:, None, None] * self.corners()).reshape(-1, 3)
            corner, size = np.concatenate([corner[~chosen], parts]), np.concatenate([size[~chosen], np.repeat(half, 8)])
        vertex = corner[:, None] + size[:, None, None] * self.corners()
        code = self.code(vertex, k).ravel()
        self.of, first, place = np.unique(code, return_index=True, return_inverse=True)
        order = np.argsort(np.argsort(first))  # numbered in the order in which the cells first name them
        self.t, self.size = order[place].reshape(-1, 8), size / (4 * k)
        self.n, self.k, self.corner = len(self.of), k, corner
        x = np.stack([self.of // (4 * k + 1) ** 2, self.of // (4 * k + 1) % (4 * k + 1), self.of % (4 * k + 1)], 1) / (4 * k)
        self.x = np.empty_like(x)
        self.x[order] = x * self.SIDES
        self.jump = np.where(self.x[self.t].mean(1)[:, 0] > 0.5, 1.0, 7.3)
        self.hanging(size, order)

    @staticmethod
    def corners():
        return np.stack(np.meshgrid(*[[0, 1]] * 3, indexing="ij"), -1).reshape(8, 3)

    @staticmethod
    def code(at, k):
        return (at[..., 0].astype(np.int64) * (4 * k + 1) + at[..., 1]) * (4 * k + 1) + at[..., 2]

    def hanging(self, size, order):
        """self.C: all nodes' values from those of the nodes that do not hang"""
        vertices = self.corners()
        parents, kids = {2: [], 4: []}, {2: [], 4: []}
        for middle in np.stack(np.meshgrid(*[[0, 1, 2]] * 3, indexing="ij"), -1).reshape(27, 3):
            free = np.flatnonzero(middle == 1)
            if len(free) not in (1, 2):
                continue
            ends = [v for v, at in enumerate(vertices) if all(at[a] == middle[a] // 2 for a in range(3) if a not in free)]
            at = self.code(self.corner + size[:, None] * middle // 2, self.k)
            place = np.minimum(np.searchsorted(self.of, at), self.n - 1)
            found = (self.of[place] == at) & (size > 1)
            kids[len(ends)].append(order[place[found]])
            parents[len(ends)].append(self.t[found][:, ends])
        C = sp.csr_matrix((self.n, self.n))
        hangs = np.zeros(self.n, bool)
        for n in (2, 4):  # the middle of an edge of a small cube may be that of a face of a larger one: the first constraint counts
            kid, which = np.unique(np.concatenate(kids[n]), return_index=True)
            parent = np.concatenate(parents[n])[which][~hangs[kid]]
            kid = kid[~hangs[kid]]
            hangs[kid] = True
            C = C + sp.csr_matrix((np.full(parent.size, 1 / n), (np.repeat(kid, n), parent.ravel())), shape=C.shape)
        C = C + sp.diags((~hangs).astype(float))
        while hangs[C.indices].any():  # parents that hang themselves
            C = (C @ C).tocsr()
            C.eliminate_zeros()
        self.C, self.hangs = C.tocsr(), hangs

    @staticmethod
    def gradients():
        """Of the trilinear functions of the unit cube at Gauss' points: [q,i,direction]"""
        g = 0.5 + np.array([-0.5, 0.5]) / 3**0.5
        at = np.stack(np.meshgrid(g, g, g, indexing="ij"), -1).reshape(8, 3)
        value = np.stack([1 - at, at])  # [0 or 1, q, direction]
        slope = np.empty((8, 8, 3))
        for i, c in enumerate(Hexahedra.corners()):
            for a in range(3):
                slope[:, i, a] = (2 * c[a] - 1) * np.prod([value[c[b], :, b] for b in range(3) if b != a], 0)
        return slope / Hexahedra.SIDES

    def poisson(self):
        s = self.gradients()
        return (self.jump * self.size * self.SIDES.prod())[:, None, None] * np.einsum("qia,qja->ij", s, s) / 8

    def elasticity(self):
        s = self.gradients()
        K = LAMBDA * np.einsum("qia,qjb->iajb", s, s) + MU * np.einsum("qib,qja->iajb", s, s) + MU * np.einsum("qid,qjd,ab->iajb", s, s, np.eye(3))
        return (self.jump * self.size * self.SIDES.prod())[:, None, None, None, None] * K / 8


# ---------------------------------------------------------------------------------------------------------------------
# Matrices


def assemble(K, rows, columns, shape):
    """The sum of element matrices [e,i,j]"""
    m, n = rows.shape[1], columns.shape[1]
    at = np.repeat(rows, n, 1).ravel().astype(np.int32), np.tile(columns, (1, m)).ravel().astype(np.int32)
    return sp.coo_matrix((K.ravel(), at), shape=shape).tocsr()


def assemble_nodes(K, t, n):
    """The sum of element matrices [e,i,a,j,b], a and b the unknowns of a node: the places of a node's blocks are looked for once"""
    m, dof = t.shape[1], K.shape[2]
    code = (np.repeat(t, m, 1).astype(np.int64) * n + np.tile(t, (1, m))).ravel()
    code, place = np.unique(code, return_inverse=True)
    blocks = np.empty((len(code), dof, dof))
    for a in range(dof):
        for b in range(dof):
            blocks[:, a, b] = np.bincount(place.ravel(), K[:, :, a, :, b].ravel(), len(code))
    start = np.searchsorted(code, np.arange(n + 1, dtype=np.int64) * n)
    return sp.bsr_matrix((blocks, (code % n).astype(np.int32), start.astype(np.int32)), shape=(dof * n, dof * n)).tocsr()


def unknowns(nodes, dof):
    nodes = np.asarray(nodes)
    return (nodes[..., None] * dof + np.arange(dof)).reshape(*nodes.shape[:-1], -1)


def pattern(t, n):
    return assemble(np.ones((len(t), t.shape[1] ** 2), np.int8), t, t, (n, n))


def ordered(graph, order):
    """The nodes in their new order"""
    if order == "rcm":
        return reverse_cuthill_mckee(graph, True)
    return np.random.default_rng(11).permutation(graph.shape[0]) if order == "random" else np.arange(graph.shape[0])


def finish(A, graph, x, order, bc, dof, hangs=None):
    """Orders the nodes, of which `graph` is the pattern and x the positions, and constrains them"""
    q = unknowns(ordered(graph, order), dof)
    A = A[q][:, q]
    out = np.zeros(A.shape[0], bool) if hangs is None else np.repeat(hangs, dof)[q]
    if bc:
        out |= np.repeat(x[:, 0] < 1.2 * len(x) ** (-1 / x.shape[1]), dof)[q]
    if bc == "cut":
        A = A[~out][:, ~out]
    elif out.any():
        A, fixed = A.tocoo(), np.flatnonzero(out)
        keep = ~(out[A.row] | out[A.col])  # entries that are 0 by chance stay
        at = np.concatenate([A.row[keep], fixed]), np.concatenate([A.col[keep], fixed])
        A = sp.coo_matrix((np.concatenate([A.data[keep], np.ones(len(fixed))]), at), shape=A.shape).tocsr()
    return A


def simplices(dim, degree, dof, variants):
    def make(n):
        mesh = Simplices(dim, n)
        t, x = mesh.nodes(degree)
        A = assemble(mesh.poisson(degree), t, t, (len(x),) * 2) if dof == 1 else assemble_nodes(mesh.elasticity(degree), t, len(x))
        graph = A if dof == 1 else pattern(t, len(x))
        for order, bc in variants:
            yield order, bc, finish(A, graph, x, order, bc, dof)

    return make


def hexahedra(dof, variants):
    def make(n):
        mesh = Hexahedra(n)
        A = assemble(mesh.poisson(), mesh.t, mesh.t, (mesh.n,) * 2) if dof == 1 else assemble_nodes(mesh.elasticity(), mesh.t, mesh.n)
        C = sp.kron(mesh.C, sp.eye(dof), "csr")
        A = (C.T @ A @ C).tocsr()
        for order, bc in variants:
            yield order, bc, finish(A, pattern(mesh.t, mesh.n), mesh.x, order, bc, dof, mesh.hangs)

    return make


def nedelec(n):
    mesh = Simplices(3, n)
    C, M = mesh.edge_elements()
    ends, t = mesh.edges
    A = assemble(C + M, t, t, (len(ends),) * 2)
    for order, bc in ORDERS[1:] + FIXED[:1]:
        yield order, bc, finish(A, A, mesh.x[ends].mean(1), order, bc, 1)


def taylor_hood(n):
    """The whole matrix, velocities first, and its blocks"""
    mesh = Simplices(3, n)
    t, x = mesh.nodes(2)
    n, p = len(x), len(mesh.x)
    q = ordered(pattern(t, n), "rcm")
    u = unknowns(q, 3)
    A = assemble_nodes(mesh.elasticity(2), t, n)[u][:, u]
    B = assemble(mesh.divergence(), mesh.t, unknowns(t, 3), (p, 3 * n))[q[q < p]][:, u]  # pressures in the order of their vertices
    for part, block in (("velocity", A), ("divergence", B), ("gradient", B.T), ("stokes", sp.bmat([[A, B.T], [B, None]]))):
        yield part, "", block.tocsr()


def classical(n):
    """Interpolations and coarse operators of pyamg's hierarchy"""
    try:
        import pyamg
    except ImportError:
        print("meshes.py: pyamg is not installed: no matrices of classical coarsening", flush=True)
        return
    levels = pyamg.ruge_stuben_solver(next(simplices(3, 1, 1, FIXED[1:])(n))[2], max_coarse=500).levels
    for k, level in enumerate(levels[:-1]):
        yield f"interpolation{k + 1}", "", sp.csr_matrix(level.P)
        yield f"coarse{k + 1}", "", sp.csr_matrix(levels[k + 1].A)


ORDERS = [("natural", ""), ("rcm", ""), ("random", "")]
FIXED = [("rcm", "rows"), ("rcm", "cut")]
KINDS = {  # points at -scale 1, how the matrices are made
    "elastic-tet1": (125000, simplices(3, 1, 3, ORDERS[1:] + FIXED)),
    "tet1": (405000, simplices(3, 1, 1, ORDERS + FIXED)),
    "tri1": (1000000, simplices(2, 1, 1, ORDERS[1:])),
    "elastic-hex": (100000, hexahedra(3, ORDERS[:1])),
    "elastic-tet2": (17000, simplices(3, 2, 3, ORDERS[1:2])),
    "taylor-hood": (15000, taylor_hood),
    "tet2": (60000, simplices(3, 2, 1, ORDERS[1:])),
    "nedelec": (60000, nedelec),
    "elastic-tri1": (300000, simplices(2, 1, 2, ORDERS[1:2])),
    "tri2": (220000, simplices(2, 2, 1, ORDERS[1:])),
    "hex": (300000, hexahedra(1, ORDERS)),
    "classical": (200000, classical),
}


def write(A, path):
    """PETSc's binary format, the columns of a row ascending"""
    A.sort_indices()
    with open(path + ".new", "wb") as f:
        np.array([1211216, *A.shape, A.nnz], ">i4").tofile(f)
        for array, kind in ((np.diff(A.indptr), ">i4"), (A.indices, ">i4"), (A.data, ">f8")):
            array.astype(kind).tofile(f)
    os.replace(path + ".new", path)


def make(job):
    kind, scale, folder = job
    begin, names = time.time(), []
    for order, bc, A in KINDS[kind][1](KINDS[kind][0] * scale):
        names.append("-".join(filter(None, (kind, order, bc))))
        write(A, os.path.join(folder, names[-1] + ".petsc"))
    print(f"{time.time() - begin:5.1f} s  " + " ".join(names), flush=True)


# ---------------------------------------------------------------------------------------------------------------------
# Checks


def same(what, got, wanted, tolerance=1e-10):
    error = np.abs(np.asarray(got, float) - wanted).max()
    print(f"{'ok    ' if error < tolerance else 'FAILED'} {what}: {error:.1e}")
    return error < tolerance


def check_simplices(dim):
    mesh, right = Simplices(dim, 300), []
    area = (mesh.jump * mesh.volume).sum()
    right.append(same(f"{dim}-D: the elements fill their hull", mesh.volume.sum(), ConvexHull(mesh.x).volume, 1e-6))
    for degree in (1, 2):
        what = f"{dim}-D, P{degree}"
        t, x = mesh.nodes(degree)
        A = assemble(mesh.poisson(degree), t, t, (len(x),) * 2)
        right.append(same(f"{what}: rows of the Poisson matrix add up to 0", A @ np.ones(len(x)), 0))
        right.append(same(f"{what}: energy of x", x[:, 0] @ (A @ x[:, 0]), area))
        at = mesh.x[mesh.t][:, :, 0]
        square = (4 * mesh.jump * mesh.volume * ((at**2).sum(1) + at.sum(1) ** 2)).sum() / ((dim + 1) * (dim + 2))
        if degree == 2:
            right.append(same(f"{what}: energy of x^2", x[:, 0] ** 2 @ (A @ x[:, 0] ** 2), square))
        E = assemble_nodes(mesh.elasticity(degree), t, len(x))
        right.append(same(f"{what}: elasticity is symmetric", abs(E - E.T).max(), 0))
        for a in range(dim):
            move, stretch, turn = np.zeros((3, len(x), dim))
            move[:, a] = 1
            stretch[:, a] = x[:, a]
            turn[:, a], turn[:, a - 1] = x[:, a - 1], -x[:, a]
            right.append(same(f"{what}: forces of a rigid body, {a}", np.stack([E @ move.ravel(), E @ turn.ravel()]), 0))
            right.append(same(f"{what}: energy of a stretched body, {a}", stretch.ravel() @ (E @ stretch.ravel()), (LAMBDA + 2 * MU) * area))
    t, x = mesh.nodes(2)
    B = assemble(mesh.divergence(), mesh.t, unknowns(t, dim), (len(mesh.x), dim * len(x)))
    share = np.bincount(mesh.t.ravel(), np.repeat(mesh.volume, dim + 1)) / (dim + 1)
    right.append(same(f"{dim}-D, Taylor-Hood: divergence of the position", B @ x.ravel(), -dim * share))
    return right


def check_edges():
    mesh = Simplices(3, 300)
    ends, t = mesh.edges
    C, M = (assemble(K, t, t, (len(ends),) * 2) for K in mesh.edge_elements())
    difference = sp.csr_matrix((np.tile([-1.0, 1.0], len(ends)), (np.repeat(np.arange(len(ends)), 2), ends.ravel())))
    along, middle = mesh.x[ends[:, 1]] - mesh.x[ends[:, 0]], mesh.x[ends].mean(1)
    turn = (np.stack([-middle[:, 1], middle[:, 0], 0 * middle[:, 0]], 1) * along).sum(1)
    return [same("edge elements: curl of gradients", abs(C @ difference).max() / abs(C).max(), 0),
            same("edge elements: mass of a constant field", along[:, 0] @ (M @ along[:, 0]), mesh.volume.sum()),
            same("edge elements: energy of a rotation", turn @ (C @ turn), 4 * (mesh.jump * mesh.volume).sum())]  # fmt: skip


def check_hexahedra():
    mesh, free = Hexahedra(9000), 2 ** np.arange(3)
    C, x, area = mesh.C, mesh.x, (mesh.jump * mesh.size**3).sum() * mesh.SIDES.prod()
    A = C.T @ assemble(mesh.poisson(), mesh.t, mesh.t, (mesh.n,) * 2) @ C
    E = assemble_nodes(mesh.elasticity(), mesh.t, mesh.n)
    odd = np.stack(np.meshgrid(*[np.arange(5)] * 3, indexing="ij"), -1).reshape(-1, 3)
    odd = odd[(odd % 2).any(1) & (odd % 4 == 0).any(1)]
    quarters = mesh.corner[mesh.size == mesh.size.max()][:, None] + odd  # of the faces of the largest boxes
    turn = np.stack([-x[:, 1], x[:, 0], 0 * x[:, 0]], 1).ravel()
    stretch = np.stack([x[:, 0], 0 * x[:, 0], 0 * x[:, 0]], 1).ravel()
    return [same("hexahedra: the elements fill the box", (mesh.size**3).sum(), 1),
            same("hexahedra: three sizes", len(np.unique(mesh.size)), 3), same("hexahedra: nodes hang", mesh.hangs.any(), True),
            same("hexahedra: neighbors have at most twice the size", np.isin(mesh.code(quarters, mesh.k), mesh.of), 0),
            same("hexahedra: constraints keep linear functions", C @ (x @ free), x @ free),
            same("hexahedra: rows of the Poisson matrix add up to 0", A @ np.ones(mesh.n), 0), same("hexahedra: energy of x", x[:, 0] @ (A @ x[:, 0]), area),
            same("hexahedra: forces of a rigid body", E @ turn, 0), same("hexahedra: energy of a stretched body", stretch @ (E @ stretch), (LAMBDA + 2 * MU) * area)]  # fmt: skip


def main():
    p = argparse.ArgumentParser(prog="bench/lib/meshes.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                epilog="kinds: " + ", ".join(KINDS))  # fmt: skip
    p.add_argument("kinds", nargs="*", metavar="KIND", help="default: all")
    p.add_argument("-out", default=os.environ.get("MESHES") or os.path.join(ROOT, "build/meshes"), help="default: build/meshes, or MESHES")
    p.add_argument("-scale", type=float, default=1.0)
    p.add_argument("-jobs", type=int, default=os.cpu_count(), help="processes; each needs up to 8 GB at -scale 1")
    p.add_argument("-check", action="store_true")
    args = p.parse_args()
    if args.check:
        right = check_simplices(2) + check_simplices(3) + check_edges() + check_hexahedra()
        sys.exit(0 if all(right) else 1)
    unknown = [k for k in args.kinds if k not in KINDS]
    if unknown:
        p.error(f"no kind is called {', '.join(unknown)}; there are {', '.join(KINDS)}")
    os.makedirs(args.out, exist_ok=True)
    with multiprocessing.Pool(args.jobs) as pool:
        pool.map(make, [(k, args.scale, args.out) for k in KINDS if not args.kinds or k in args.kinds], 1)


if __name__ == "__main__":
    main()
