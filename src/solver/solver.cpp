// Solver.
