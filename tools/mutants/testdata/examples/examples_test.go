package examples

import "testing"

func TestLarge(t *testing.T) {
	most := 100
	if testing.Short() {
		most = 10
	}
	for n := range most {
		if Large(n) != (n/50 == 1) {
			t.Fatal(n)
		}
	}
}
