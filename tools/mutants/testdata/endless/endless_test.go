package endless

import "testing"

func TestDown(t *testing.T) {
	if got := Down(3); got != 3 {
		t.Error(got)
	}
}
