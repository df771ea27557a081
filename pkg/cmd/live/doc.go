// Package live shows on the whole screen of a terminal what a command follows: scrolled,
// filtered, and with keys for the commands that help. What is on the screen is a function of a
// model, which changes by messages alone; commands run outside of it, as if they had been typed.
package live
