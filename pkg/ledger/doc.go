// Package ledger holds the record of a plan's slots and requests: which are open, how
// each ended, what runs left behind, and what was seen of watched objects. No slot
// starts twice because the ledger knows it.
//
// Of the core it imports run and what stands below that.
package ledger
