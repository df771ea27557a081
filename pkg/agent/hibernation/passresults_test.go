package hibernation

import (
	"testing"
	"time"
)

// A target whose world does not answer holds up no other of its plan, and goes on once it does.
func TestATargetThatDoesNotAnswerHoldsUpNoOther(t *testing.T) {
	night(t, oneToThree+appsAndDB+"execution: {strategy: {type: Parallel}}\n", func(w *world) {
		w.deployment("data", "db", 1)
		w.deployment("shop", "apps", 4)
		w.beds.turns = true
		w.beds.hang("db")
		w.until("01:00")
		w.after(20 * time.Second)
		w.has("data 1, orders 0, shop 0, web 0")
		w.beds.hang("")
		w.until("01:05")
		w.has("data 0, orders 0, shop 0, web 0")
		w.until("02:59")
		w.beds.hang("db")
		w.until("03:00")
		w.after(20 * time.Second)
		w.has("data 0, orders 3, shop 4, web 2")
		w.beds.hang("")
		w.until("03:15")
		w.has("data 1, orders 3, shop 4, web 2")
		w.closed()
	})
}
