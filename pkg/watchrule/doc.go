// Package watchrule follows the objects that a plan's watch rules are about, and says
// which changes ask for a run.
//
// Of the core it imports ledger and what stands below that, and no workflow.
package watchrule
