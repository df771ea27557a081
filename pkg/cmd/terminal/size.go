package terminal

// Size is how much a terminal shows; zero where that is not known.
type Size struct{ Columns, Lines int }
