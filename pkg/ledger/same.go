package ledger

// Same compares two ledgers by what every write changes at one of.
func (l Ledger) Same(b Ledger) bool {
	if len(l.Open) != len(b.Open) || len(l.Recent) != len(b.Recent) || !l.Watermark.Equal(b.Watermark) || len(l.Tokens) != len(b.Tokens) ||
		len(l.Rules) != len(b.Rules) || len(l.Seen) != len(b.Seen) || len(l.Left) != len(b.Left) || l.Shards != b.Shards {
		return false
	}
	for i := range l.Open {
		if l.Open[i].Run != b.Open[i].Run || l.Open[i].Refused != b.Open[i].Refused {
			return false
		}
	}
	for r, n := range l.Totals {
		if b.Totals[r] != n {
			return false
		}
	}
	return l.Created == b.Created && l.TargetReady == b.TargetReady
}
