"""The comparison: jobs, table, figure and attention pictures across systems."""
