"""Topics: what is declared, what the broker has, and what follows from the difference. Pure, all of it."""
