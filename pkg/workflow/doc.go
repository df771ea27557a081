// Package workflow advances a run: a pure function of its journal says what it does
// next, and others put into the journal what came of it.
//
// Of the core it imports run and what stands below that, and no ledger.
package workflow
