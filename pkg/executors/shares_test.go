package executors

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestANamespaceTakesAFewPlacesAndLeavesTheOthersRoom(t *testing.T) {
	for name, c := range map[string]struct {
		taken map[string]int // places asked for before, by namespace
		asks  string
		want  bool
	}{
		"nobody is there":                             {asks: "shop", want: true},
		"it has as many as it may":                    {taken: map[string]int{"shop": 4}, asks: "shop"},
		"it has one fewer":                            {taken: map[string]int{"shop": 3}, asks: "shop", want: true},
		"another asks for many more":                  {taken: map[string]int{"noisy": 135}, asks: "shop", want: true},
		"so many others that nothing is left":         {taken: map[string]int{"a": 9, "b": 9, "c": 9}, asks: "shop"},
		"others have what they may, and some is left": {taken: map[string]int{"a": 9, "b": 9}, asks: "shop", want: true},
		"what is of no namespace takes all":           {taken: map[string]int{"": 12}, asks: "shop"},
		"what is of no namespace leaves one":          {taken: map[string]int{"": 11}, asks: "shop", want: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := NewShares(12, 4)
			var leaves []func()
			for namespace, n := range c.taken {
				for range n {
					if leave, ok := s.Take(namespace); ok {
						leaves = append(leaves, leave)
					}
				}
			}
			leave, got := s.Take(c.asks)
			if got != c.want {
				t.Errorf("it gets one: %t", got)
			}
			if got {
				leave()
			}
			for _, leave := range leaves {
				leave()
			}
			if s.Len() > 0 {
				t.Errorf("it remembers %v", s.byNamespace)
			}
			if _, ok := s.Take(c.asks); !ok {
				t.Error("what was given back cannot be taken")
			}
		})
	}
}

func TestWhoWaitsForAPlaceGetsItWhenOneIsFreeOrGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewShares(2, 1)
		leave, _ := s.Take("shop")
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan string, 2)
		for name, ctx := range map[string]context.Context{"patient": t.Context(), "cut off": ctx} {
			go func() {
				_, ok := s.Wait(ctx, "shop")
				got <- fmt.Sprint(name, " ", ok)
			}()
		}
		synctest.Wait()
		cancel()
		if first := <-got; first != "cut off false" {
			t.Errorf("first %s", first)
		}
		leave()
		if then := <-got; then != "patient true" {
			t.Errorf("then %s", then)
		}
	})
}

// What a namespace takes of its own part and cannot have of all goes back to it.
func TestWhoIsRefusedByAllKeepsNothingOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewShares(10, 6)
		others, shop := s.Open(""), s.Open("shop")
		for _, c := range []struct {
			others, asks int64
			want         bool
		}{{8, 3, false}, {8, 2, true}, {0, 7, false}, {0, 6, true}, {10, 1, false}, {0, 6, true}} {
			if !others.TryAcquire(c.others) {
				t.Fatal("something was not given back")
			}
			asks := map[string]func() bool{"now": func() bool { return shop.TryAcquire(c.asks) }, "within a second": func() bool {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				return shop.Acquire(ctx, c.asks) == nil
			}}
			for when, ask := range asks {
				got := ask()
				if got != c.want {
					t.Errorf("others have %d: it takes %d %s: %t", c.others, c.asks, when, got)
				}
				if got {
					shop.Release(c.asks)
				}
			}
			others.Release(c.others)
		}
		others.Close()
		if shop.Close(); s.Len() > 0 {
			t.Errorf("it remembers %v", s.byNamespace)
		}
	})
}
