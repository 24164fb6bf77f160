"""What the papers print, as numbers; docs/results/paper.md compares it with what is measured here"""

# Table III of the SELL-P paper, seconds on a K40c of CSR of MKL (two Xeon E5-2670), CSR, ELLPACK, SELL-P, and cuSPARSE's CSR and HYB
TABLE_III = {
    "audikw_1": [4.55e-02, 8.94e-02, 3.56e-02, 7.02e-03, 7.08e-03, 8.79e-03],
    "bone010": [2.45e-02, 5.10e-02, 5.50e-03, 4.28e-03, 6.15e-03, 3.80e-03],
    "boneS10": [1.32e-02, 4.16e-02, 5.45e-03, 3.93e-03, 5.21e-03, 3.43e-03],
    "bmw3_2": [4.70e-03, 1.19e-02, 6.62e-03, 9.93e-04, 1.50e-03, 9.86e-04],
    "bmwcra_1": [4.60e-03, 1.19e-02, 4.63e-03, 9.01e-04, 9.53e-04, 8.79e-04],
    "cage10": [4.72e-05, 7.45e-05, 3.72e-05, 3.35e-05, 3.45e-05, 6.44e-05],
    "cant": [1.48e-03, 4.61e-03, 4.56e-04, 3.44e-04, 5.51e-04, 3.94e-04],
    "crankseg_2": [5.25e-03, 1.60e-02, 2.23e-02, 1.12e-03, 1.23e-03, 1.48e-03],
    "Cube_Coup_dt0": [4.87e-02, 1.39e-01, 1.22e-02, 9.77e-03, 1.68e-02, 9.18e-03],
    "dielFilterV2real": [2.06e-02, 4.45e-02, 1.05e-02, 6.14e-03, 6.46e-03, 5.99e-03],
    "F1": [1.31e-02, 3.08e-02, 1.63e-02, 2.73e-03, 2.77e-03, 3.18e-03],
    "Fault_639": [1.08e-02, 2.92e-02, 1.51e-02, 2.53e-03, 3.48e-03, 2.12e-03],
    "Hook_1498": [2.41e-02, 5.71e-02, 1.25e-02, 6.60e-03, 7.52e-03, 6.46e-03],
    "inline_1": [1.41e-02, 4.15e-02, 3.01e-02, 3.49e-03, 3.55e-03, 3.85e-03],
    "ldoor": [1.78e-02, 4.43e-02, 6.75e-03, 4.11e-03, 5.71e-03, 4.39e-03],
    "m_t1": [3.67e-03, 1.03e-02, 2.10e-03, 8.27e-04, 8.64e-04, 1.02e-03],
    "ML_Geer": [4.23e-02, 1.29e-01, 9.62e-03, 8.60e-03, 9.62e-03, 8.19e-03],
    "pwtk": [4.47e-03, 1.30e-02, 3.37e-03, 9.31e-04, 1.53e-03, 8.94e-04],
    "shipsec1": [1.15e-03, 2.49e-03, 8.74e-04, 4.74e-04, 4.52e-04, 4.48e-04],
    "Trefethen_20000": [1.15e-04, 5.12e-04, 5.29e-05, 6.47e-05, 8.12e-05, 6.71e-05],
}
# Its Table I, entries: on 11 matrices fewer than in the collection today
TABLE_I = {
    "audikw_1": 77651847, "bone010": 47851783, "boneS10": 40878708, "bmw3_2": 11288630, "bmwcra_1": 10641602, "cage10": 150645, "cant": 4007383,
    "crankseg_2": 14148858, "Cube_Coup_dt0": 124406070, "dielFilterV2real": 48538952, "F1": 26837113, "Fault_639": 27245944, "Hook_1498": 59374451,
    "inline_1": 36816170, "ldoor": 42493817, "m_t1": 9753570, "ML_Geer": 110686677, "pwtk": 11524432, "shipsec1": 3568176, "Trefethen_20000": 554466,
}  # fmt: skip
# Table 3 of the EVC-HYB paper: Isplit, entries stored in ELL and in vCSR, zeros added in percent, the best of cuSPARSE
TABLE_3 = {
    "pdb1HYS": (19936, 1922112, 2720768, 6.86, "CSR"),
    "pwtk": (217888, 11633280, 3456, 0.02, "HYB"),
    "TSOPF_RS_b2383": (21728, 98976, 16220544, 0.92, "HYB"),
    "rma10": (46752, 2365664, 13088, 0.20, "CSR"),
    "audikw_1": (844096, 58302912, 21392800, 2.63, "CSR"),
    "cage14": (1505728, 27128544, 3648, 0.01, "HYB"),
    "shipsec1": (140864, 7813824, 1280, 0.02, "HYB"),
    "webbase-1M": (999232, 2768192, 353120, 0.51, "HYB"),
    "raefsky3": (21184, 1488384, 1536, 0.08, "HYB"),
    "cop20k_A": (121184, 2624960, 768, 0.05, "HYB"),
    "msdoor": (415840, 20239808, 2208, 0.01, "HYB"),
    "ldoor": (952192, 46522368, 1056, 0.00, "HYB"),
    "scircuit": (170944, 954272, 7744, 0.32, "HYB"),
    "torso1": (113376, 1020384, 7501152, 0.06, "CSR"),
    "Stanford": (281728, 2283392, 35040, 0.26, "HYB"),
    "pre2": (658240, 5476288, 494176, 0.19, "HYB"),
    "mac_econ_fwd500": (206496, 1273952, 256, 0.06, "HYB"),
    "dc1": (116768, 595776, 172160, 0.20, "HYB"),
    "indochina-2004": (7345728, 126110176, 69171328, 0.60, "CSR"),
    "web-Google": (916352, 5093728, 15808, 0.09, "HYB"),
    "Stanford_Berkeley": (678400, 3638208, 4028832, 1.10, "HYB"),
    "RM07R": (311776, 24249408, 13792384, 1.54, "CSR"),
}
SMALL = 60e6  # bytes of values and columns: no matrix of Table III has between 50 and 90 MB, and a device's L2 cache holds the smaller ones

MATRICES = list(TABLE_III) + [m for m in TABLE_3 if m not in TABLE_III]  # the 38 of the two papers on formats
