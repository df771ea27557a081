package runs

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
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
	} {
		t.Run(name, func(t *testing.T) {
			s := newShares(12, 4)
			var leaves []func()
			for namespace, n := range c.taken {
				for range n {
					if leave, ok := s.take(namespace); ok {
						leaves = append(leaves, leave)
					}
				}
			}
			leave, got := s.take(c.asks)
			if got != c.want {
				t.Errorf("it gets one: %t", got)
			}
			if got {
				leave()
			}
			for _, leave := range leaves {
				leave()
			}
			if len(s.byNamespace) > 0 {
				t.Errorf("it remembers %v", s.byNamespace)
			}
			if _, ok := s.take(c.asks); !ok {
				t.Error("what was given back cannot be taken")
			}
		})
	}
}

func TestWhoWaitsForAPlaceGetsItWhenOneIsFreeOrGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShares(2, 1)
		leave, _ := s.take("shop")
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan string, 2)
		for name, ctx := range map[string]context.Context{"patient": t.Context(), "cut off": ctx} {
			go func() {
				_, ok := s.wait(ctx, "shop")
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
