package queue

import (
	"fmt"
	"testing"
	"time"
)

func TestSearchesOfANamespaceTakeNothingFromOthers(t *testing.T) {
	now := time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)
	s := NewSearches(func() time.Time { return now })
	shop := s.Of("shop")
	shop.Spend(searchAtOnce + 5*searchPerSecond)
	if left := s.Of("bank").Left(); left != searchAtOnce {
		t.Errorf("bank has %d left", left)
	}
	if left := s.Of("shop").Left(); left != -5*searchPerSecond {
		t.Errorf("shop has %d left", left)
	}
	if now = now.Add(7 * time.Second); shop.Left() != 2*searchPerSecond {
		t.Errorf("after seven seconds there are %d", shop.Left())
	}
	if now = now.Add(-time.Hour); shop.Left() != 2*searchPerSecond {
		t.Errorf("with the clock set back there are %d", shop.Left())
	}
	if now = now.Add(100 * time.Hour); shop.Left() != searchAtOnce {
		t.Errorf("after a long time there are %d", shop.Left())
	}
}

func TestBudgetsOfNamespacesThatSearchNothingAreNotKept(t *testing.T) {
	now := time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)
	s := NewSearches(func() time.Time { return now })
	s.Of("shop").Spend(searchAtOnce)
	bank := s.Of("bank") // as gates hold it, which search later
	for i := range 3 * mostBudgets {
		s.Of(fmt.Sprint("n", i)).Left()
	}
	if n := len(s.byNamespace); n > mostBudgets {
		t.Errorf("%d are kept", n)
	}
	if left := s.Of("shop").Left(); left != 0 {
		t.Errorf("shop has %d left", left)
	}
	if bank.Spend(searchAtOnce); s.Of("bank").Left() != 0 {
		t.Errorf("bank has another budget of %d", s.Of("bank").Left())
	}
}
