"""What users hold: the array, its methods, the functions by name, traced functions and graphs."""
