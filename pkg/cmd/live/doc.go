// Package live shows live views on the whole screen of a terminal, with scrolling, a filter, and
// keys for commands. The screen is a function of a model, which only messages change; commands run
// outside of it, as if they had been typed.
package live
