"""StreamJobs: what is seen of one, what follows from it, and what is told about it. Pure, all of it."""
