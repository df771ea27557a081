package hibernate

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

// One look at ten thousand resources that are recorded, as they fall asleep and as they wake.
func BenchmarkALookAtTenThousand(b *testing.B) {
	seen := make([]Observation, 10_000)
	for i := range seen {
		seen[i] = Observation{ID: fmt.Sprintf("deployments.apps/shop/web-%05d", i), UID: fmt.Sprint("uid-", i), Awake: true, Ready: true, Before: json.RawMessage(`{"replicas":3}`)}
	}
	recorded := Record{Operation: Shutdown}.ToSleep(seen, evening).Record
	b.Run("shutdown", func(b *testing.B) {
		for b.Loop() {
			if s := recorded.ToSleep(seen, evening); len(s.Due) != len(seen) {
				b.Fatalf("%d are due", len(s.Due))
			}
		}
	})
	asleep := append([]Observation(nil), seen...)
	for i := range asleep {
		asleep[i].Awake, asleep[i].Ready, asleep[i].Asleep = false, false, true
	}
	slept := recorded.ToSleep(asleep, evening).Record
	b.Run("wake", func(b *testing.B) {
		for b.Loop() {
			if s := slept.ToWake(asleep, evening); len(s.Due) != len(seen) {
				b.Fatalf("%d are due", len(s.Due))
			}
		}
	})
}

// A look at a plan whose off-hours an exception hides for years.
func BenchmarkALookBehindAnException(b *testing.B) {
	for _, kind := range []ExceptionType{Suspend, Extend} {
		table := hidden(b, kind)
		now := time.Date(2026, 3, 2, 1, 2, 3, 0, time.UTC)
		b.Run(string(kind), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				table.At(now.Add(time.Duration(i) * time.Minute))
			}
		})
	}
}
