package ledger_test

import (
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// What every write changes at one of tells two ledgers apart.
func TestWhatMakesALedgerAnother(t *testing.T) {
	is := ledger.Ledger{Open: []ledger.Entry{{Run: "a"}}, Recent: []ledger.Entry{{}}, Totals: map[run.Result]int64{run.Ran: 1}}
	if !is.Same(is) {
		t.Fatal("it is not itself")
	}
	for what, edit := range map[string]func(*ledger.Ledger){
		"a claim":          func(l *ledger.Ledger) { l.Open = []ledger.Entry{{Run: "a"}, {Run: "b"}} },
		"another claim":    func(l *ledger.Ledger) { l.Open = []ledger.Entry{{Run: "b"}} },
		"a refusal":        func(l *ledger.Ledger) { l.Open = []ledger.Entry{{Run: "a", Refused: "quota"}} },
		"an end":           func(l *ledger.Ledger) { l.Recent = nil },
		"a count":          func(l *ledger.Ledger) { l.Totals = map[run.Result]int64{run.Ran: 2} },
		"the watermark":    func(l *ledger.Ledger) { l.Watermark = time.Unix(1, 0) },
		"a token":          func(l *ledger.Ledger) { l.Tokens = []string{"t"} },
		"a rule":           func(l *ledger.Ledger) { l.Rules = map[string]ledger.RuleState{"r": {}} },
		"a mark":           func(l *ledger.Ledger) { l.Seen = []ledger.ObjectCheckpoint{{}} },
		"a shard":          func(l *ledger.Ledger) { l.Shards = 1 },
		"a leftover":       func(l *ledger.Ledger) { l.Left = []ledger.Leftover{{}} },
		"the creation":     func(l *ledger.Ledger) { l.Created = true },
		"a target's state": func(l *ledger.Ledger) { l.TargetReady = "u" },
	} {
		other := is
		edit(&other)
		if is.Same(other) {
			t.Errorf("%s makes no difference", what)
		}
	}
}
